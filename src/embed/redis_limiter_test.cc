#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "stint/redis.h"
#include "tests/integration/cluster_servers.h"
#include "tests/integration/redis_testing.h"
#include "tests/integration/sentinel_servers.h"

namespace stint {
namespace {

using namespace std::chrono_literals;
using redis_testing::RedisServer;

std::vector<Policy> ten_a_day() {
  return {{.id = "day", .limits = {requests_per(24h, 10)}},
          {.id = "slots", .limits = {in_flight(2)}}};
}

Limiter make(RedisServer& server, const std::vector<Policy>& policies) {
  RedisOptions redis;
  redis.url = server.url();
  redis.timeout = 5s;
  redis.connect_wait = 10s;
  return create_redis_limiter(policies, redis).value();
}

TEST(RedisLimiter, TwoShareOneLimit) {
  RedisServer server;
  const std::vector<Policy> policies = {{.id = "day", .limits = {requests_per(24h, 10)}}};
  Limiter first = make(server, policies);
  Limiter second = make(server, policies);
  int admitted = 0;
  for (int i = 0; i < 20; ++i) {
    auto admission = (i % 2 == 0 ? first : second).admit({});
    ASSERT_TRUE(admission);
    if (!admission->admitted()) continue;
    ++admitted;
    EXPECT_TRUE(admission->reservation.commit());
  }
  EXPECT_EQ(admitted, 10);
  EXPECT_EQ(first.list("*")->buckets.size(), 1U);
  EXPECT_EQ(second.reset("*").removed, 1U);
  EXPECT_TRUE(first.admit({})->admitted());
}

TEST(RedisLimiter, CallbacksComeOnItsOwnThread) {
  RedisServer server;
  Limiter limiter = make(server, ten_a_day());
  std::atomic<bool> called{false};
  std::thread::id where;
  limiter.admit({}, {}, [&](Result<Admission> admission) {
    EXPECT_TRUE(admission && admission->admitted());
    where = std::this_thread::get_id();
    called = true;
    called.notify_one();
  });
  called.wait(false);
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(RedisLimiter, ADroppedReservationFreesItsSlot) {
  RedisServer server;
  Limiter limiter = make(server, ten_a_day());
  for (int i = 0; i < 5; ++i) {
    auto admission = limiter.admit({});
    ASSERT_TRUE(admission && admission->admitted());
  }  // each releases its slot
  EXPECT_EQ(limiter.stats().held, 0U);
}

TEST(RedisLimiter, WithoutAServerTheOutageRuleDecides) {
  RedisOptions redis;
  redis.url = "redis://127.0.0.1:1";
  auto policies = ten_a_day();
  policies[0].on_store_error = OnStoreError::deny;
  Limiter denying = create_redis_limiter(policies, redis).value();
  const auto denied = denying.admit({});
  ASSERT_TRUE(denied);
  EXPECT_EQ(denied->decision.outcome, Outcome::undecided);
  Limiter local = create_redis_limiter(ten_a_day(), redis).value();
  EXPECT_TRUE(local.admit({})->admitted());
}

TEST(RedisLimiter, SaysWhichOptionIsWrong) {
  RedisOptions redis;
  redis.url = "http://h";
  EXPECT_EQ(create_redis_limiter({}, redis).error().field, "redis.url");
  redis.url = "redis://h";
  redis.key_prefix = "{a}";
  EXPECT_EQ(create_redis_limiter({}, redis).error().field, "redis.key_prefix");
  redis.key_prefix = "a";
  redis.timeout = 0ms;
  EXPECT_EQ(create_redis_limiter({}, redis).error().field, "redis.timeout");
  redis.timeout = 50ms;
  redis.replicas = 0;
  EXPECT_EQ(create_redis_limiter({}, redis).error().field, "redis.replicas");
  redis.replicas = 1;
  LimiterOptions options;
  options.clock = &system_clock();
  EXPECT_EQ(create_redis_limiter({}, redis, options).error().field, "clock");
  redis.sentinels = {"redis://s:26379", "s:26379"};
  EXPECT_EQ(create_redis_limiter({}, redis).error().field, "redis.sentinels");
  redis.cluster_nodes = {"redis://n"};
  EXPECT_EQ(create_redis_limiter({}, redis).error().field, "redis.url");
  redis.url.clear();
  EXPECT_EQ(create_redis_limiter({}, redis).error().field, "redis.sentinels");
  redis.sentinels.clear();
  redis.cluster_nodes = {"redis://n/1"};
  EXPECT_EQ(create_redis_limiter({}, redis).error().field, "redis.cluster_nodes");
}

std::string url_of(const RedisServer& server) {
  return "redis://127.0.0.1:" + std::to_string(server.port());
}

void expect_ten_admitted(const RedisOptions& redis) {
  Limiter first = create_redis_limiter(ten_a_day(), redis).value();
  Limiter second = create_redis_limiter(ten_a_day(), redis).value();
  int admitted = 0;
  for (int i = 0; i < 20; ++i) {
    auto admission = (i % 2 == 0 ? first : second).admit({});
    ASSERT_TRUE(admission);
    admitted += admission->admitted();
    if (admission->admitted()) EXPECT_TRUE(admission->reservation.commit());
  }
  EXPECT_EQ(admitted, 10);
}

TEST(RedisLimiter, BehindSentinels) {
  redis_testing::SentinelServers servers;
  RedisOptions redis;
  redis.url = std::string("redis://") + redis_testing::SentinelServers::kName;
  for (const std::size_t i : {0U, 1U, 2U}) redis.sentinels.push_back(url_of(servers.sentinel(i)));
  redis.timeout = 5s;
  redis.connect_wait = 10s;
  expect_ten_admitted(redis);
}

TEST(RedisLimiter, InACluster) {
  redis_testing::ClusterServers servers;
  RedisOptions redis;
  redis.cluster_nodes = {url_of(servers.node(4))};
  redis.timeout = 5s;
  redis.connect_wait = 10s;
  expect_ten_admitted(redis);
}

}  // namespace
}  // namespace stint
