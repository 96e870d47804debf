#include "redis/slots.h"

#include <gtest/gtest.h>

#include <string>

#include "redis/reply.h"

namespace stint::redis {
namespace {

CallResult reply(std::string_view resp) { return Reply::parse(resp); }
CallResult error(std::string_view text) { return std::unexpected(classify(text)); }

TEST(Slots, AreThoseOfRedis) {
  EXPECT_EQ(slot_of("123456789"), 0x31C3 % 16384);  // of the specification
  // By CLUSTER KEYSLOT.
  EXPECT_EQ(slot_of("foo"), 12182);
  EXPECT_EQ(slot_of("bar"), 5061);
  EXPECT_EQ(slot_of(""), 0);
  EXPECT_EQ(slot_of("\xff\x00\x80"), slot_of_key("\xff\x00\x80"));
}

TEST(Slots, OnlyTheTagOfAKeyCounts) {
  EXPECT_EQ(slot_of_key("{foo}"), slot_of("foo"));
  EXPECT_EQ(slot_of_key("stint:rl:1:{foo}:leases"), slot_of("foo"));
  EXPECT_EQ(slot_of_key("a{foo}b{bar}"), slot_of("foo"));
  EXPECT_EQ(slot_of_key("a{{foo}}"), slot_of("{foo"));
  EXPECT_EQ(slot_of_key("a}{foo}"), slot_of("foo"));
  // No tag, or an empty one: all of it.
  for (const std::string_view whole : {"foo", "foo{bar", "foo}bar{", "{}foo", "{}{foo}", "a{}b"}) {
    EXPECT_EQ(slot_of_key(whole), slot_of(whole)) << whole;
  }
}

CallResult info(std::string_view state, std::string_view epoch) {
  const std::string text =
      "my_cluster_state:none\r\ncluster_state:" + std::string(state) +
      "\r\ncluster_slots_ok:16384\r\ncluster_current_epoch:" + std::string(epoch) + "\r\n";
  return reply("$" + std::to_string(text.size()) + "\r\n" + text + "\r\n");
}

const NodePlace kAsked{"10.0.0.9", 7000};

TEST(ReadSlots, TakesMastersAndReplicas) {
  // As Redis 7 sends it; without the fourth field as Redis 6.2 does.
  const auto answer = read_slots(
      info("ok", "6"),
      reply("*2\r\n"
            "*4\r\n:0\r\n:5460\r\n"
            "*4\r\n$8\r\n10.0.0.1\r\n:6379\r\n$1\r\na\r\n*2\r\n$8\r\nhostname\r\n$1\r\nh\r\n"
            "*4\r\n$8\r\n10.0.0.4\r\n:6380\r\n$1\r\nd\r\n*0\r\n"
            "*3\r\n:5461\r\n:16383\r\n*3\r\n$8\r\n10.0.0.2\r\n:6379\r\n$1\r\nb\r\n"),
      kAsked);
  ASSERT_TRUE(answer) << answer.error();
  EXPECT_TRUE(answer->ok);
  EXPECT_EQ(answer->epoch, 6);
  ASSERT_EQ(answer->ranges.size(), 2U);
  EXPECT_EQ(answer->ranges[0].first, 0);
  EXPECT_EQ(answer->ranges[0].last, 5460);
  EXPECT_EQ(answer->ranges[0].master, (NodePlace{"10.0.0.1", 6379}));
  ASSERT_EQ(answer->ranges[0].replicas.size(), 1U);
  EXPECT_EQ(answer->ranges[0].replicas[0], (NodePlace{"10.0.0.4", 6380}));
  EXPECT_EQ(answer->ranges[1].last, 16383);
  EXPECT_TRUE(answer->ranges[1].replicas.empty());
}

TEST(ReadSlots, ANodeThatDoesNotKnowItsNameIsTheOneThatWasAsked) {
  for (const std::string_view host : {"$0\r\n\r\n", "$-1\r\n"}) {
    const auto answer = read_slots(
        info("ok", "1"),
        reply("*1\r\n*3\r\n:0\r\n:1\r\n*3\r\n" + std::string(host) + ":7001\r\n$1\r\na\r\n"),
        kAsked);
    ASSERT_TRUE(answer);
    ASSERT_EQ(answer->ranges.size(), 1U);
    EXPECT_EQ(answer->ranges[0].master, (NodePlace{"10.0.0.9", 7001}));
  }
}

TEST(ReadSlots, ANameThatIsMissingHasAnAddressBesideItOrNone) {
  const auto answer = read_slots(
      info("ok", "1"),
      reply("*2\r\n"
            "*3\r\n:0\r\n:1\r\n*4\r\n$1\r\n?\r\n:7001\r\n$1\r\na\r\n*2\r\n$2\r\nip\r\n$8\r\n"
            "10.0.0.3\r\n"
            "*3\r\n:2\r\n:3\r\n*4\r\n$1\r\n?\r\n:7001\r\n$1\r\na\r\n*0\r\n"),
      kAsked);
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->ranges.size(), 1U) << "nobody can go to the other";
  EXPECT_EQ(answer->ranges[0].master, (NodePlace{"10.0.0.3", 7001}));
}

TEST(ReadSlots, SaysWhetherTheClusterWorks) {
  EXPECT_TRUE(read_slots(info("ok", "6"), reply("*0\r\n"), kAsked)->ok);
  EXPECT_FALSE(read_slots(info("fail", "6"), reply("*0\r\n"), kAsked)->ok);
}

TEST(ReadSlots, SaysWhatIsWrong) {
  EXPECT_EQ(
      read_slots(error("ERR This instance has cluster support disabled"), reply("*0\r\n"), kAsked)
          .error(),
      "ERR This instance has cluster support disabled");
  EXPECT_EQ(read_slots(info("ok", "1"), error("NOPERM no"), kAsked).error(), "NOPERM no");
  EXPECT_FALSE(read_slots(info("ok", "x"), reply("*0\r\n"), kAsked));
  for (const std::string_view bad :
       {"+OK\r\n", "*1\r\n:1\r\n", "*1\r\n*3\r\n:5\r\n:4\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:-1\r\n:3\r\n*2\r\n$1\r\na\r\n:1\r\n"}) {
    EXPECT_FALSE(read_slots(info("ok", "1"), reply(bad), kAsked)) << bad;
  }
}

std::string redirection(std::string_view error) {
  const auto read = read_redirection(classify(error), kAsked);
  if (!read) return "none";
  return (read->ask ? "ask " : "moved ") + std::to_string(read->slot) + " " + read->to.host + " " +
         std::to_string(read->to.port);
}

TEST(Redirections, AreRead) {
  EXPECT_EQ(redirection("MOVED 3999 127.0.0.1:6381"), "moved 3999 127.0.0.1 6381");
  EXPECT_EQ(redirection("ASK 16383 redis-2.local:7000"), "ask 16383 redis-2.local 7000");
  EXPECT_EQ(redirection("MOVED 0 ::1:6381"), "moved 0 ::1 6381");
  EXPECT_EQ(redirection("MOVED 3999 :6381"), "moved 3999 10.0.0.9 6381") << "where it was asked";
  // As a script of Redis 6.2 and one of 7.0 pass it on.
  EXPECT_EQ(redirection("ERR Error running script (call to f_1): @user_script:3: MOVED 7 h:1 "),
            "moved 7 h 1");
  EXPECT_EQ(redirection("MOVED 7 h:1 script: 1, on @user_script:3."), "moved 7 h 1");
}

TEST(Redirections, OtherErrorsAreNone) {
  for (const std::string_view error :
       {"MOVED", "MOVED 1", "MOVED x h:1", "MOVED 16384 h:1", "MOVED 1 h", "MOVED 1 h:0",
        "MOVED 1 h:65536", "MOVED 1 ?:7000", "TRYAGAIN Multiple keys request during rehashing",
        "CLUSTERDOWN The cluster is down", "ERR MOVED 1 h:1"}) {
    EXPECT_EQ(redirection(error), "none") << error;
  }
}

}  // namespace
}  // namespace stint::redis
