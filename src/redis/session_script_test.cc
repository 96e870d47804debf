// The handshake, and scripts that the server does not know.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "redis/session.h"
#include "redis/session_testing.h"

namespace stint::redis {
namespace {

using State = Session::State;

constexpr std::string_view kTime = "*2\r\n$10\r\n1700000000\r\n$6\r\n123456\r\n";
constexpr std::string_view kNoScript = "-NOSCRIPT No matching script. Please use EVAL.\r\n";

class Handshake : public SessionFixture {
 protected:
  SessionOptions everything() {
    SessionOptions all = options();
    all.username = "alice";
    all.password = "s e\r\ncret";
    all.client_name = "stint-1";
    all.database = 3;
    all.scripts = {&script, &other};
    return all;
  }
  Outcome a;
};

TEST_F(Handshake, SendsAllOfItAtOnce) {
  open(everything());
  EXPECT_EQ(session->state(), State::handshaking);
  EXPECT_EQ(session->next_tick(), now + ms(1000));
  EXPECT_EQ(sent(), (Sent{"AUTH alice s e\r\ncret", "CLIENT SETNAME stint-1", "SELECT 3", "TIME",
                          "SCRIPT LOAD return 1", "SCRIPT LOAD return 2"}));
  const Duration sent_at = now;
  now += ms(7);
  receive("+OK\r\n+OK\r\n+OK\r\n" + std::string(kTime) + "$40\r\n" + script.sha1() + "\r\n");
  EXPECT_EQ(session->state(), State::handshaking);
  receive("$40\r\n" + other.sha1() + "\r\n");
  EXPECT_EQ(session->state(), State::ready);
  ASSERT_TRUE(session->server_time());
  EXPECT_EQ(session->server_time()->store_time.time_since_epoch(),
            std::chrono::microseconds(1'700'000'000'123'456));
  EXPECT_EQ(session->server_time()->sent_at, sent_at);
  EXPECT_EQ(session->server_time()->received_at, sent_at + ms(7));
}

TEST_F(Handshake, APasswordAloneIsThatOfTheDefaultUser) {
  SessionOptions with = options();
  with.password = "secret";
  open(with);
  EXPECT_EQ(sent(), (Sent{"AUTH secret", "TIME"}));
}

TEST_F(Handshake, CallsWaitForNothing) {
  open(everything());
  call(a, "a");
  EXPECT_EQ(a.text(), "not_run unavailable");
  EXPECT_EQ(a.result->error().text, "not logged in yet");
  EXPECT_EQ(results, 0);
}

TEST_F(Handshake, ARefusedLoginIsAFaultOfConfiguration) {
  open(everything());
  EXPECT_EQ(sent().size(), 6U);
  receive("-WRONGPASS invalid username-password pair or user is disabled.\r\n-NOAUTH x\r\n");
  EXPECT_EQ(session->state(), State::broken);
  EXPECT_EQ(session->fault().reason, Reason::configuration);
  EXPECT_EQ(session->fault().code, "WRONGPASS");
  ASSERT_EQ(configuration.size(), 1U);
  EXPECT_EQ(configuration[0],
            "AUTH: WRONGPASS invalid username-password pair or user is disabled.");
}

TEST_F(Handshake, AnyOtherRefusalEndsItToo) {
  struct Case {
    std::string replies;
    std::string text;
    bool configuration;
  };
  const std::string ok = "+OK\r\n";
  const std::vector<Case> cases{
      {"-LOADING Redis is loading\r\n", "AUTH: LOADING Redis is loading", false},
      {"-ERR max number of clients reached\r\n", "AUTH: ERR max number of clients reached", false},
      {ok + ok + "-ERR DB index is out of range\r\n", "SELECT: ERR DB index is out of range", true},
      {ok + ok + ok + "-NOPERM no permissions\r\n", "TIME: NOPERM no permissions", true},
      {ok + ok + ok + "+now\r\n", "TIME: an answer that is no time", false},
      {ok + ok + ok + "*2\r\n$2\r\n-1\r\n$1\r\n0\r\n", "TIME: an answer that is no time", false},
      {ok + ok + ok + "*2\r\n$1\r\n1\r\n:1000000\r\n", "TIME: an answer that is no time", false},
      {ok + ok + ok + std::string(kTime) + "-ERR Error compiling script (new function): x\r\n",
       "SCRIPT LOAD: ERR Error compiling script (new function): x", true},
  };
  for (const Case& one : cases) {
    configuration.clear();
    open(everything());
    EXPECT_EQ(sent().size(), 6U);
    receive(one.replies);
    EXPECT_EQ(session->state(), State::broken) << one.text;
    EXPECT_EQ(session->fault().text, one.text);
    EXPECT_EQ(configuration.size(), one.configuration ? 1U : 0U) << one.text;
  }
}

TEST_F(Handshake, AConnectionWithoutItsNameIsGoodEnough) {
  SessionOptions with = options();
  with.client_name = "x";
  open(with);
  EXPECT_EQ(sent().size(), 2U);
  receive("-NOPERM this user has no permissions to run 'client|setname'\r\n" + std::string(kTime));
  EXPECT_EQ(session->state(), State::ready);
  EXPECT_EQ(configuration.size(), 1U);
}

TEST_F(Handshake, HasADeadline) {
  open(everything());
  EXPECT_EQ(sent().size(), 6U);
  receive("+OK\r\n");
  advance(ms(999));
  EXPECT_EQ(session->state(), State::handshaking);
  advance(ms(1));
  EXPECT_EQ(session->state(), State::broken);
  EXPECT_EQ(session->fault().reason, Reason::timed_out);
}

class NoScript : public SessionFixture {
 protected:
  void SetUp() override { open_ready(); }
  [[nodiscard]] static std::string loaded() { return "$40\r\n" + std::string(40, 'a') + "\r\n"; }
  Outcome a, b, c;
};

TEST_F(NoScript, IsTaughtAndCalledAgain) {
  call(a, "a");
  EXPECT_EQ(sent(), Sent{evalsha("a")});
  receive(kNoScript);
  EXPECT_TRUE(a.pending());
  EXPECT_EQ(sent(), (Sent{"SCRIPT LOAD return 1", evalsha("a")}));
  receive(loaded() + "+one\r\n");
  EXPECT_EQ(a.text(), "one");
  EXPECT_EQ(results, 1) << "only the last answer is a result";
}

TEST_F(NoScript, OneLoadIsEnoughForAllThatWereInLine) {
  call(a, "a");
  ping(b);
  call(c, "c");
  EXPECT_EQ(sent().size(), 3U);
  receive(std::string(kNoScript) + "+pong\r\n" + std::string(kNoScript));
  EXPECT_EQ(b.text(), "pong");
  EXPECT_EQ(sent(), (Sent{"SCRIPT LOAD return 1", evalsha("a"), evalsha("c")}));
  receive(loaded() + "+one\r\n+three\r\n");
  EXPECT_EQ(a.text(), "one");
  EXPECT_EQ(c.text(), "three");
}

TEST_F(NoScript, ALoadThatIsUnderWayServesThoseThatFailMeanwhile) {
  call(a, "a");
  call(b, "b");
  EXPECT_EQ(sent().size(), 2U);
  receive(kNoScript);
  EXPECT_EQ(sent(), (Sent{"SCRIPT LOAD return 1", evalsha("a")}));
  receive(kNoScript);
  EXPECT_EQ(sent(), Sent{evalsha("b")});
  receive(loaded() + "+one\r\n+two\r\n");
  EXPECT_EQ(a.text(), "one");
  EXPECT_EQ(b.text(), "two");
}

TEST_F(NoScript, EachScriptHasItsOwnLoad) {
  call(a, "a");
  call(other, b, "b");
  EXPECT_EQ(sent().size(), 2U);
  receive(std::string(kNoScript) + std::string(kNoScript));
  EXPECT_EQ(sent(), (Sent{"SCRIPT LOAD return 1", evalsha("a"), "SCRIPT LOAD return 2",
                          "EVALSHA " + other.sha1() + " 1 b"}));
}

TEST_F(NoScript, FlushedAgainAndAgainItIsTaughtAgainUpToABound) {
  call(a, "a", ms(1'000'000));
  EXPECT_EQ(sent().size(), 1U);
  for (unsigned i = 0; i < Session::kMostRepairs; ++i) {
    receive(kNoScript);
    ASSERT_TRUE(a.pending()) << i;
    ASSERT_EQ(sent(), (Sent{"SCRIPT LOAD return 1", evalsha("a")}));
    receive(loaded());
  }
  receive(kNoScript);
  EXPECT_EQ(a.text(), "not_run rejected");
  EXPECT_EQ(a.result->error().code, "NOSCRIPT");
}

TEST_F(NoScript, WhoMayNotTeachIsToldWhy) {
  call(a, "a");
  EXPECT_EQ(sent().size(), 1U);
  receive(kNoScript);
  EXPECT_EQ(sent().size(), 2U);
  receive("-NOPERM this user has no permissions to run 'script|load'\r\n" + std::string(kNoScript));
  EXPECT_EQ(a.text(), "not_run configuration");
  EXPECT_EQ(a.result->error().text,
            "SCRIPT LOAD of first: NOPERM this user has no permissions to run 'script|load'");
  EXPECT_EQ(configuration.size(), 1U);

  // Later it may: the failure is not remembered against the next call.
  call(b, "b");
  EXPECT_EQ(sent().size(), 1U);
  receive(kNoScript);
  EXPECT_EQ(sent().size(), 2U);
  receive(loaded() + "+two\r\n");
  EXPECT_EQ(b.text(), "two");
}

TEST_F(NoScript, TheDeadlineStaysThatOfTheCall) {
  call(a, "a", ms(50));
  EXPECT_EQ(sent().size(), 1U);
  now += ms(30);
  receive(kNoScript);
  EXPECT_EQ(session->next_tick(), now + ms(20));
  EXPECT_EQ(sent().size(), 2U);
  advance(ms(20));
  EXPECT_EQ(a.text(), "unknown timed_out");
  receive(loaded() + "+late\r\n");
  EXPECT_EQ(a.answers, 1);
}

TEST_F(NoScript, ARepairThatIsNotSentInTimeDidNothing) {
  call(a, "a", ms(50));
  EXPECT_EQ(sent().size(), 1U);
  receive(kNoScript);
  advance(ms(50));
  EXPECT_EQ(a.text(), "not_run timed_out");
  EXPECT_EQ(sent(), Sent{"SCRIPT LOAD return 1"});
  receive(loaded());
  EXPECT_EQ(session->state(), State::ready);
}

TEST_F(NoScript, IsSentAgainAsItWasThoughOthersWereTakenOutBeforeIt) {
  call(a, "a-that-is-too-late", ms(10));
  call(b, "b", ms(100));
  advance(ms(10));
  EXPECT_EQ(a.text(), "not_run timed_out");
  EXPECT_EQ(sent(), Sent{evalsha("b")});
  receive(kNoScript);
  EXPECT_EQ(sent(), (Sent{"SCRIPT LOAD return 1", evalsha("b")}));
}

TEST_F(NoScript, AfterTheDeadlineNothingIsSentAgain) {
  call(a, "a", ms(50));
  EXPECT_EQ(sent().size(), 1U);
  now += ms(50);  // the reply is read before the timer fires
  receive(kNoScript);
  EXPECT_EQ(a.text(), "not_run rejected");
  EXPECT_FALSE(session->has_output());
}

TEST_F(NoScript, ALossDuringTheRepairTellsWhatIsCertain) {
  call(a, "a");
  call(b, "b");
  EXPECT_EQ(sent().size(), 2U);
  receive(kNoScript);
  EXPECT_EQ(sent().size(), 2U);
  receive(kNoScript);
  session->lost(Reason::lost, "reset");
  EXPECT_EQ(a.text(), "unknown lost") << "sent again, and perhaps run";
  EXPECT_EQ(b.text(), "not_run lost") << "refused once, and not sent again yet";
}

TEST_F(NoScript, ACommandMayAnswerSoWithoutBeingRepaired) {
  ping(a);
  EXPECT_EQ(sent().size(), 1U);
  receive(kNoScript);
  EXPECT_EQ(a.text(), "not_run rejected");
}

}  // namespace
}  // namespace stint::redis
