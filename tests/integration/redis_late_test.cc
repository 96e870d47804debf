// What nobody waits for any more is not counted, or counted at most once, and never given back.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "tests/integration/redis_store_testing.h"

namespace stint::redis_testing {
namespace {

constexpr Duration kTimeout = std::chrono::milliseconds{100};

using RedisLate = RedisStoreTest;

TEST_F(RedisLate, CallsThatAStoppedServerRunsWhenItWakesChangeNothing) {
  Told told;
  StoreRig::Options options = patient();
  options.store.timeout = kTimeout;
  options.store.calls_in_flight = 128;
  options.store.hooks = told.hooks();
  const auto replica = rig(std::move(options));
  const auto set = limits({requests_per(kLong, 1000), in_flight(1000)});
  Call held = call_of({{"q:a", set}});
  ASSERT_EQ(acquire(*replica, held), Outcome::admitted);

  std::deque<Call> calls;
  for (int i = 0; i < 100; ++i) calls.push_back(call_of({{"p:a", set}}));
  server_.pause();
  Answers answers;
  // Each is a call of its own, and written at once; a settlement among them.
  for (Call& call : calls) replica->store().acquire(call.record(), answers.expect());
  const auto settled = give_back(*replica, held);
  answers.wait();
  EXPECT_FALSE(settled) << "nobody can say that it was done";
  for (const Call& call : calls) {
    EXPECT_EQ(call.record().outcome, Outcome::undecided);
    EXPECT_EQ(call.record().error.code, ErrorCode::unavailable);
  }
  // All, unless this machine was so slow that the breaker opened meanwhile.
  const std::size_t written = told.unknown_charges();
  EXPECT_GE(written, 50U);
  let_pass(10 * kTimeout);
  server_.resume();
  ASSERT_TRUE(replica->wait_until_degraded(false));
  EXPECT_GE(script_calls(), static_cast<std::int64_t>(written)) << "they have run";
  EXPECT_EQ(stored("p:a"), std::nullopt);
  EXPECT_EQ(leases("p:a"), 0);
  EXPECT_EQ(used("q:a"), 1);
  EXPECT_EQ(leases("q:a"), 1);
  EXPECT_EQ(told.unknown_charges(), written);
}

TEST_F(RedisLate, ADroppedReplyCountsAtMostOnceAndIsNeverGivenBack) {
  Told told;
  Gate gate(server_.port());
  StoreRig::Options options = patient_through(gate);
  options.store.timeout = kTimeout;
  options.store.hooks = told.hooks();
  const auto replica = rig(std::move(options));
  const auto set = limits({requests_per(kLong, 1000), in_flight(1000)});
  gate.drop_replies();
  std::deque<Call> calls;
  for (int i = 0; i < 50; ++i) {
    calls.push_back(call_of({{"p:a", set}}));
    EXPECT_EQ(acquire(*replica, calls.back()), Outcome::undecided);
  }
  const std::int64_t then = used("p:a");
  EXPECT_GE(then, 1) << "they did arrive";
  EXPECT_EQ(static_cast<std::size_t>(then), told.unknown_charges());
  gate.pass();
  gate.close_all();
  ASSERT_TRUE(replica->wait_until_degraded(false));
  Call next = call_of({{"p:a", set}});
  EXPECT_EQ(acquire(*replica, next), Outcome::admitted);
  EXPECT_EQ(used("p:a"), then + 1);
  EXPECT_EQ(leases("p:a"), then + 1);
}

class RedisCancelled : public RedisStoreTest, public ::testing::WithParamInterface<OnStoreError> {};

TEST_P(RedisCancelled, WhatQueuesIsNotSentAndNotCounted) {
  StoreRig::Options options = patient();
  options.store.calls_in_flight = 1;
  const auto replica = rig(std::move(options));
  const auto set = limits({requests_per(kLong, 1000), in_flight(1000)});
  const std::atomic<bool> cancelled{true};
  std::deque<Call> calls;
  for (int i = 0; i < 20; ++i) {
    calls.push_back(call_of({{"p:a", set}}, GetParam()));
    // Also behind some that are not.
    if (i % 3 == 2) calls.back().record().cancelled = &cancelled;
  }
  Answers answers;
  server_.pause();
  for (Call& call : calls) replica->store().acquire(call.record(), answers.expect());
  server_.resume();
  answers.wait();
  for (int i = 0; i < 20; ++i) {
    Call& call = calls[static_cast<std::size_t>(i)];
    if (i % 3 != 2) {
      EXPECT_EQ(call.record().outcome, Outcome::admitted) << i;
      continue;
    }
    EXPECT_EQ(call.record().outcome, Outcome::undecided) << i;
    EXPECT_EQ(call.record().error.code, ErrorCode::unavailable) << i;
    EXPECT_FALSE(call.bucket().charged) << i;
    EXPECT_EQ(call.slot().charged.amount, 0) << i;
  }
  EXPECT_EQ(used("p:a"), 14);
  EXPECT_EQ(leases("p:a"), 14);
  EXPECT_EQ(replica->store().stats().buckets, 0U) << "nor in this process";
}

INSTANTIATE_TEST_SUITE_P(Rules, RedisCancelled,
                         ::testing::Values(OnStoreError::deny, OnStoreError::local));

}  // namespace
}  // namespace stint::redis_testing
