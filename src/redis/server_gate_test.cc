// A real Redis server behind a gate that breaks the connection in every way.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "redis/server.h"
#include "redis/server_testing.h"
#include "tests/integration/redis_testing.h"

namespace stint::redis {
namespace {

using Kind = ServerEvent::Kind;
using std::chrono::milliseconds;

class BehindAGate : public ::testing::Test {
 protected:
  ServerOptions options() {
    ServerOptions made = options_for(gate.port());
    made.scripts = {&count};
    made.connect_timeout = milliseconds(200);
    return made;
  }
  void start() {
    client.emplace(options());
    client->server->start();
    client->wait_until_available();
  }
  std::int64_t counted(std::string_view key = "load") {
    return redis.command({"GET", key}).number().value_or(0);
  }

  redis_testing::RedisServer redis;
  redis_testing::Gate gate{redis.port()};
  const Script count{"count", "return redis.call('INCR', KEYS[1])"};
  std::optional<TestClient> client;
};

TEST_F(BehindAGate, ADroppedReplyLeavesTheFateUnknown) {
  start();
  gate.drop_replies();
  EXPECT_EQ(told(client->call(count, "a", milliseconds(50))), "unknown timed_out");
  std::int64_t runs = counted("a");
  for (int i = 0; i < 10000 && runs == 0; ++i) runs = counted("a");  // the gate may be slow
  EXPECT_EQ(runs, 1) << "it did run";
  client->wait_for_event(Kind::lost);
  gate.pass();
  client->wait_until_available();
  EXPECT_EQ(told(client->call(count, "a")), "2");
}

TEST_F(BehindAGate, ALateReplyGoesToNobody) {
  start();
  gate.delay(milliseconds(100));
  EXPECT_EQ(told(client->call(count, "a", milliseconds(60))), "unknown timed_out");
  EXPECT_EQ(told(client->call(count, "b", std::chrono::seconds(10))), "1");
  EXPECT_EQ(told(client->call(count, "a", std::chrono::seconds(10))), "2");
  EXPECT_EQ(client->count(Kind::lost), 0) << client->told();
}

TEST_F(BehindAGate, AReplyCutInTheMiddle) {
  start();
  gate.cut_after(2);
  EXPECT_EQ(told(client->call(count, "a")), "unknown lost");
  EXPECT_EQ(client->count(Kind::lost), 1);
  client->wait_until_available();
  EXPECT_EQ(told(client->call(count, "a")), "2");
}

TEST_F(BehindAGate, CorruptRepliesEndTheConnection) {
  start();
  gate.corrupt();
  EXPECT_EQ(told(client->call(count, "a")), "unknown protocol");
  client->wait_for_event(Kind::lost);
  client->wait_for_event(Kind::connect_failed);
  EXPECT_FALSE(client->server->available());
  gate.pass();
  client->wait_until_available();
}

TEST_F(BehindAGate, ARefusedConnectionIsTriedAgainAndAgain) {
  gate.refuse();
  client.emplace(options());
  client->server->start();
  client->wait_for_event(Kind::breaker_opened);
  EXPECT_EQ(client->count(Kind::connect_failed), 3);
  EXPECT_EQ(told(client->call(count, "a")), "not_run unavailable");
  gate.pass();
  client->wait_until_available();
  EXPECT_EQ(gate.accepted(), 1U);
}

TEST_F(BehindAGate, AStalledLoginIsGivenUp) {
  gate.stall();
  client.emplace(options());
  client->server->start();
  client->wait_for_event(Kind::connect_failed);
  EXPECT_EQ(client->text_of(Kind::connect_failed), "the login took too long");
  gate.pass();
  client->wait_until_available();
}

TEST_F(BehindAGate, AStallWhileItWorksOpensTheBreaker) {
  start();
  gate.stall();
  client->time_out(count, 3);
  EXPECT_EQ(client->count(Kind::breaker_opened), 1);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(told(client->call(count, "a")), "not_run unavailable");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5)) << "nobody waits";
  gate.pass();
  client->wait_until_available();
}

TEST_F(BehindAGate, ClosedConnectionsUnderLoad) {
  start();
  Load load(*client, count, 3000, std::chrono::seconds(10));
  int closed = 0;
  load.on_answer = [&](int answers) {
    if (answers % 500 == 250 && client->server->available()) {
      gate.close_all();
      ++closed;
    }
  };
  load.run(20);
  client->wait_until_available();
  EXPECT_GE(closed, 1);
  EXPECT_GE(counted(), load.good);
  EXPECT_LE(counted(), load.good + load.unknown);
}

TEST_F(BehindAGate, CutRepliesUnderLoad) {
  start();
  Load load(*client, count, 3000, std::chrono::seconds(10));
  load.on_answer = [&](int answers) {
    if (answers % 500 == 250) gate.cut_after(static_cast<std::size_t>(answers % 37));
  };
  load.run(20);
  gate.pass();
  client->wait_until_available();
  EXPECT_GE(client->count(Kind::lost), 1);
  EXPECT_GE(counted(), load.good);
  EXPECT_LE(counted(), load.good + load.unknown);
}

TEST_F(BehindAGate, ARequestLargerThanAllBuffers) {
  start();
  const std::string large(8'000'000, 'x');
  EXPECT_EQ(told(client->command({"SET", "large", large})), "OK");
  EXPECT_EQ(client->command({"GET", "large"}).value().text(), large);
  EXPECT_EQ(told(client->call(count, "a")), "1");
}

}  // namespace
}  // namespace stint::redis
