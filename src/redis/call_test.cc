// Error replies as they are, from Redis 6.2 and 7.0, and what is known of the data after them.
#include "redis/call.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stint::redis {
namespace {

struct Case {
  std::string text;
  std::string code;
  Fate fate;
  Reason reason;
};

void check(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    const CallError error = classify(one.text);
    EXPECT_EQ(error.code, one.code) << one.text;
    EXPECT_EQ(error.fate, one.fate) << one.text;
    EXPECT_EQ(error.reason, one.reason) << one.text;
    EXPECT_EQ(error.text, one.text);
  }
}

TEST(Classify, WhatIsAnsweredBeforeAScriptRunsDidNothing) {
  check({
      {"NOSCRIPT No matching script. Please use EVAL.", "NOSCRIPT", Fate::not_run,
       Reason::rejected},
      {"LOADING Redis is loading the dataset in memory", "LOADING", Fate::not_run,
       Reason::rejected},
      {"BUSY Redis is busy running a script.", "BUSY", Fate::not_run, Reason::rejected},
      {"MOVED 3999 127.0.0.1:6381", "MOVED", Fate::not_run, Reason::rejected},
      {"ASK 3999 127.0.0.1:6381", "ASK", Fate::not_run, Reason::rejected},
      {"TRYAGAIN Multiple keys request during rehashing of slot", "TRYAGAIN", Fate::not_run,
       Reason::rejected},
      {"CLUSTERDOWN The cluster is down", "CLUSTERDOWN", Fate::not_run, Reason::rejected},
      {"CROSSSLOT Keys in request don't hash to the same slot", "CROSSSLOT", Fate::not_run,
       Reason::rejected},
      {"MASTERDOWN Link with MASTER is down", "MASTERDOWN", Fate::not_run, Reason::rejected},
      {"READONLY You can't write against a read only replica.", "READONLY", Fate::not_run,
       Reason::rejected},
      {"MISCONF Redis is configured to save RDB snapshots", "MISCONF", Fate::not_run,
       Reason::rejected},
      {"OOM command not allowed when used memory > 'maxmemory'.", "OOM", Fate::not_run,
       Reason::rejected},
      {"NOREPLICAS Not enough good replicas to write.", "NOREPLICAS", Fate::not_run,
       Reason::rejected},
      {"NOAUTH Authentication required.", "NOAUTH", Fate::not_run, Reason::configuration},
      {"WRONGPASS invalid username-password pair", "WRONGPASS", Fate::not_run,
       Reason::configuration},
      {"NOPERM this user has no permissions to run the 'evalsha' command", "NOPERM", Fate::not_run,
       Reason::configuration},
  });
}

TEST(Classify, WhatAScriptPassesOnMayHaveBeenItsSecondWrite) {
  check({
      {"WRONGTYPE Operation against a key holding the wrong kind of value script: 2b0, on "
       "@user_script:1.",
       "WRONGTYPE", Fate::unknown, Reason::configuration},
      {"ERR Error running script (call to f_2b0): @user_script:1: WRONGTYPE Operation against a "
       "key",
       "WRONGTYPE", Fate::unknown, Reason::configuration},
      {"ERR user_script:1: Script attempted to access nonexistent global variable 'foo' script: "
       "2b0,"
       " on @user_script:1.",
       "ERR", Fate::unknown, Reason::configuration},
      {"ERR Error running script (call to f_2b0): @enable_strict_lua:15: user_script:1: Script "
       "attempted to access nonexistent global variable 'foo'",
       "ERR", Fate::unknown, Reason::configuration},
      {"NOPERM The user executing the script can't run this command script: 2b0, on "
       "@user_script:2.",
       "NOPERM", Fate::unknown, Reason::configuration},
      {"ERR Error running script (call to f_2b0): @user_script: 1: -NOPERM The user executing the "
       "script can't run this command or subcommand",
       "NOPERM", Fate::unknown, Reason::configuration},
  });
}

TEST(Classify, AScriptIsRefusedItsFirstWriteOnly) {
  check({
      {"READONLY You can't write against a read only replica. script: 2b0, on @user_script:1.",
       "READONLY", Fate::not_run, Reason::rejected},
      {"ERR Error running script (call to f_2b0): @user_script: 1: @user_script: 1: -READONLY You "
       "can't write against a read only replica.",
       "READONLY", Fate::not_run, Reason::rejected},
      {"OOM command not allowed when used memory > 'maxmemory'. script: 2b0, on @user_script:1.",
       "OOM", Fate::not_run, Reason::rejected},
  });
}

TEST(Classify, OthersHaveAnUnknownFate) {
  check({
      {"ERR unknown command 'EVALSHA'", "ERR", Fate::unknown, Reason::configuration},
      {"ERR DB index is out of range", "ERR", Fate::unknown, Reason::configuration},
      {"ERR max number of clients reached", "ERR", Fate::unknown, Reason::rejected},
      {"EXECABORT Transaction discarded", "EXECABORT", Fate::unknown, Reason::rejected},
      {"my own words", "", Fate::unknown, Reason::rejected},
      {"NOSCRIPTS", "NOSCRIPTS", Fate::unknown, Reason::rejected},
      {"MOVEd", "", Fate::unknown, Reason::rejected},
      {"", "", Fate::unknown, Reason::rejected},
  });
}

TEST(Failure, IsWhatSaysThatAServerIsIll) {
  const auto failure = [](std::string_view text) { return is_failure(classify(text)); };
  EXPECT_TRUE(failure("LOADING x"));
  EXPECT_TRUE(failure("READONLY x"));
  EXPECT_TRUE(failure("WRONGTYPE x"));
  EXPECT_TRUE(failure("ERR x"));
  for (const std::string_view normal : {"NOSCRIPT x", "MOVED 1 h:1", "ASK 1 h:1", "TRYAGAIN x"}) {
    EXPECT_FALSE(failure(normal)) << normal;
  }
  CallError error;
  for (const Reason reason : {Reason::timed_out, Reason::lost, Reason::protocol}) {
    error.reason = reason;
    EXPECT_TRUE(is_failure(error)) << to_string(reason);
  }
  for (const Reason reason : {Reason::unavailable, Reason::stopped}) {
    error.reason = reason;
    EXPECT_FALSE(is_failure(error)) << to_string(reason);
  }
}

}  // namespace
}  // namespace stint::redis
