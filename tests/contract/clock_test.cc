// The store's time is set back, or jumps: nothing wraps, nobody is locked out, and a step gives
// away one extra window at most.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/contract/store_contract.h"

namespace stint::store {
namespace {

STINT_STORE_CONTRACT(Clock);

std::vector<Limit> windowed(std::int64_t quota) {
  return {requests_per(kMinute, quota), requests_per(kMinute, quota, Algorithm::sliding_window),
          requests_per(kMinute, quota, Algorithm::sliding_log),
          requests_per(kMinute, quota, Algorithm::token_bucket)};
}

TEST_P(Clock, ACallerWithRoomLeftIsNotRefusedAfterAnyStep) {
  for (const Duration step : {-11 * kSecond, -kHour, kHour, Duration{0}, -kTick, kTick}) {
    for (const Limit& limit : windowed(10)) {
      const std::string key =
          std::string(to_string(limit.algorithm)) + std::to_string(step.count());
      SCOPED_TRACE(key);
      const auto set = limits({limit});
      set_time(kStart + 30 * kSecond);
      ASSERT_EQ(admitted_of(3, {{key, set}}), 3);
      advance(step);
      EXPECT_TRUE(admits(key, set));
      EXPECT_GE(remaining(key, set), 6);
      EXPECT_LE(remaining(key, set), 9);
    }
  }
}

TEST_P(Clock, AStepBackGivesNothingAway) {
  for (const Duration step : {-kTick, -11 * kSecond, -kMinute, -kHour, -kDay}) {
    for (const Limit& limit : windowed(10)) {
      const std::string key =
          std::string(to_string(limit.algorithm)) + std::to_string(step.count());
      SCOPED_TRACE(key);
      const auto set = limits({limit});
      set_time(kStart + 30 * kSecond);
      ASSERT_EQ(admitted_of(20, {{key, set}}), 10);
      advance(step);
      EXPECT_EQ(admitted_of(20, {{key, set}}), 0);
    }
  }
}

TEST_P(Clock, WaitsAfterAStepBackNeverExceedOnePeriod) {
  for (const Limit& limit : windowed(10)) {
    const std::string key(to_string(limit.algorithm));
    SCOPED_TRACE(key);
    const auto set = limits({limit});
    set_time(kStart + 30 * kSecond);
    ASSERT_EQ(admitted_of(10, {{key, set}}), 10);
    advance(-kHour);
    const Call refused = acquired({{key, set}});
    ASSERT_EQ(refused.slot().verdict, Verdict::refused);
    const Duration period = limit.algorithm == Algorithm::sliding_window ? 2 * kMinute : kMinute;
    EXPECT_LE(refused.wait(), period);
    EXPECT_LE(refused.slot().reset, period);
    const TimePoint told = now() + refused.wait();
    set_time(told - kTick);
    EXPECT_FALSE(admits(key, set));
    set_time(told);
    EXPECT_TRUE(admits(key, set)) << "what was told holds after a step, too";
  }
}

TEST_P(Clock, AStepThereAndBackCostsAtMostOneExtraWindow) {
  for (const Limit& limit : windowed(10)) {
    const std::string key(to_string(limit.algorithm));
    SCOPED_TRACE(key);
    const auto set = limits({limit});
    set_time(kStart + 30 * kSecond);
    ASSERT_EQ(admitted_of(20, {{key, set}}), 10);
    int extra = 0;
    for (int i = 0; i < 4; ++i) {
      advance(-kHour);
      extra += admitted_of(20, {{key, set}});
    }
    EXPECT_EQ(extra, 0) << "back and back again";
    advance(kDay);
    EXPECT_EQ(admitted_of(20, {{key, set}}), 10) << "forward: one window, as always";
  }
}

TEST_P(Clock, ALeaseFromBeforeAStepBackLastsOneTtlAtMost) {
  const auto set = limits({in_flight(1)});
  ASSERT_TRUE(admits("a", set));
  advance(-kHour);
  EXPECT_FALSE(admits("a", set)) << "it is held, and now cut to a ttl from now";
  advance(kLeaseTtl - kTick);
  EXPECT_FALSE(admits("a", set));
  advance(kTick);
  EXPECT_TRUE(admits("a", set));
}

TEST_P(Clock, AChargeFromBeforeAStepBackIsSettledWithoutHarm) {
  for (const Limit& limit : windowed(10)) {
    const std::string key(to_string(limit.algorithm));
    SCOPED_TRACE(key);
    const auto set = limits({limit});
    set_time(kStart + kHour);
    Call made = acquired({{key, set, {{4}}}});
    advance(-2 * kHour);
    ASSERT_TRUE(admits(key, set, 3));
    EXPECT_TRUE(give_back(made));
    EXPECT_GE(remaining(key, set), 3);
    EXPECT_LE(remaining(key, set), 7);
  }
}

TEST_P(Clock, ALongQuietSpellLeavesEveryLimitWhole) {
  for (const Duration quiet : {12 * kHour, 30 * kDay, 365 * 100 * kDay}) {
    for (const Limit& limit : windowed(10)) {
      const std::string key =
          std::string(to_string(limit.algorithm)) + std::to_string(quiet.count());
      SCOPED_TRACE(key);
      const auto set = limits({limit});
      set_time(kStart);
      ASSERT_TRUE(admits(key, set, 10));
      advance(quiet);
      const Call made = acquired({{key, set}});
      EXPECT_TRUE(made.admitted());
      EXPECT_EQ(made.slot().remaining, 9);
    }
  }
}

}  // namespace
}  // namespace stint::store
