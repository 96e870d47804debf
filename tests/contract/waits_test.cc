// A lone client that waits as told is admitted, and a microsecond earlier refused; a limit is
// whole again at its reset, and not before.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/contract/store_contract.h"

namespace stint::store {
namespace {

STINT_STORE_CONTRACT(Waits);

struct Case {
  std::string name;
  Limit limit;
  std::int64_t spend = 0;  // before, in one go
  std::int64_t need = 0;   // then refused
};

std::vector<Case> cases() {
  constexpr auto sliding = Algorithm::sliding_window;
  constexpr auto log = Algorithm::sliding_log;
  const auto days = [](int n) { return n * kDay; };
  return {
      {"fixed", requests_per(kMinute, 10), 8, 3},
      {"fixed_day", tokens_per(kDay, 1'000'000), 999'999, 2},
      {"fixed_366_days", requests_per(days(366), 1), 1, 1},
      {"fixed_ms", requests_per(kMinWindow, 1), 1, 1},
      {"sliding", requests_per(kMinute, 10, sliding), 10, 1},
      {"sliding_much", requests_per(kMinute, 10, sliding), 10, 10},
      {"sliding_prime", tokens_per(Duration{999'983}, 97, sliding), 89, 31},
      {"sliding_huge", tokens_per(kDay, 10'000'000, sliding), 9'999'999, 1'234'567},
      {"sliding_coarse", tokens_per(days(366), 1'000'003, sliding), 1'000'001, 17},
      {"log", requests_per(kMinute, 10, log), 7, 4},
      {"bucket", token_bucket(60, kMinute, 10), 10, 1},
      {"bucket_burst", token_bucket(7, kMinute, 1000), 990, 333},
      {"bucket_prime", token_bucket(7919, Duration{7'368'787}, 7919), 7919, 101},
      {"bucket_slow", token_bucket(1, days(30), 3), 3, 3},
      {"bucket_fast", token_bucket(1'000'000, kSecond, 1'000'000), 1'000'000, 999'999},
      {"bucket_coarse", token_bucket(100'000'007, days(30), 100'000'007), 100'000'007, 1'000},
  };
}

TEST_P(Waits, TheToldWaitIsExactForEveryAlgorithm) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto set = limits({c.limit});
    // Somewhere inside a window, and off the grid of ticks.
    set_time(kStart + c.limit.window / 3 + Duration{17});
    ASSERT_TRUE(admits(c.name, set, c.spend));
    const Call refused = acquired({{c.name, set, {{c.need}}}});
    ASSERT_EQ(refused.record().outcome, Outcome::refused);
    ASSERT_EQ(refused.slot().verdict, Verdict::refused);
    const TimePoint told = now() + refused.wait();
    ASSERT_GT(refused.wait(), Duration{0});
    if (told - kTick > now()) {
      set_time(told - kTick);
      const Call early = acquired({{c.name, set, {{c.need}}}});
      EXPECT_FALSE(early.admitted());
      EXPECT_EQ(early.wait(), kTick);
    }
    set_time(told);
    EXPECT_TRUE(admits(c.name, set, c.need));
  }
}

TEST_P(Waits, TheToldResetIsExactForEveryAlgorithm) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto set = limits({c.limit});
    set_time(kStart + c.limit.window / 3 + Duration{17});
    const Call made = acquired({{c.name, set, {{c.spend}}}});
    ASSERT_TRUE(made.admitted());
    ASSERT_GT(made.slot().reset, Duration{0});
    const TimePoint told = now() + made.slot().reset;
    set_time(told - kTick);
    EXPECT_LT(remaining(c.name, set), c.limit.capacity());
    EXPECT_EQ(peeked({{c.name, set, {{0}}}}).slot().reset, kTick);
    set_time(told);
    EXPECT_EQ(remaining(c.name, set), c.limit.capacity());
    EXPECT_EQ(peeked({{c.name, set, {{0}}}}).slot().reset, Duration{0});
  }
}

TEST_P(Waits, ASlidingWindowMayTellAWaitIntoTheNextWindow) {
  const auto set = limits({requests_per(kMinute, 10, Algorithm::sliding_window)});
  advance(10 * kSecond);
  ASSERT_TRUE(admits("a", set, 10));
  // At the next minute all 10 still weigh 10; a tenth of them is gone 6 seconds later.
  EXPECT_EQ(acquired({{"a", set}}).wait(), 50 * kSecond + 6 * kSecond);
}

TEST_P(Waits, ASlidingWindowThatFitsAtTheBoundaryTellsTheBoundary) {
  const auto set = limits({requests_per(kMinute, 10, Algorithm::sliding_window)});
  ASSERT_TRUE(admits("a", set, 10));
  set_time(kStart + kMinute + 30 * kSecond);
  ASSERT_TRUE(admits("a", set, 5));
  // 5 of the last minute and 5 of this one. At the boundary only today's 5 count.
  const Call refused = acquired({{"a", set, {{5}}}});
  EXPECT_EQ(refused.wait(), 30 * kSecond);
}

TEST_P(Waits, ALogTellsWhenEnoughOfItsEntriesLeave) {
  const auto set = limits({requests_per(kMinute, 4, Algorithm::sliding_log)});
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(admits("a", set));
    advance(kSecond);
  }
  EXPECT_EQ(acquired({{"a", set, {{1}}}}).wait(), 56 * kSecond);
  EXPECT_EQ(acquired({{"a", set, {{3}}}}).wait(), 58 * kSecond);
  EXPECT_EQ(acquired({{"a", set, {{4}}}}).wait(), 59 * kSecond);
}

TEST_P(Waits, ADebtIsWaitedFor) {
  const auto set = limits({token_bucket(60, kMinute, 10)});
  Call made = acquired({{"a", set, {{5}}}});
  ASSERT_TRUE(settle(made, {70}));
  const Call refused = acquired({{"a", set}});
  EXPECT_EQ(refused.slot().remaining, 0);
  EXPECT_EQ(refused.wait(), 61 * kSecond) << "60 owed, and 1 to take";
  EXPECT_EQ(refused.slot().reset, 70 * kSecond);
}

TEST_P(Waits, AFullConcurrencyLimitTellsOneSecondAsAHint) {
  const auto set = limits({in_flight(1)});
  const Call made = acquired({{"a", set}});
  EXPECT_EQ(made.slot().remaining, 0);
  EXPECT_EQ(made.slot().reset, kSecond);
  const Call refused = acquired({{"a", set}});
  EXPECT_EQ(refused.wait(), kSecond);
  EXPECT_EQ(refused.slot().reset, kSecond);
}

TEST_P(Waits, TheLongestWaitOfSeveralLimitsAndBucketsIsTheWait) {
  const auto first = limits({requests_per(kSecond, 1), requests_per(kMinute, 2)});
  const auto second =
      limits({token_bucket(1, 10 * kSecond, 2), requests_per(kMinute, 2, Algorithm::sliding_log)});
  const std::vector<BucketAsk> buckets = {{"a", first}, {"b", second}};
  set_time(kStart + 20 * kSecond);
  ASSERT_TRUE(acquired(buckets).admitted());
  advance(kSecond);
  ASSERT_TRUE(acquired(buckets).admitted());
  // A client that always waits as long as it is told gets in every time, and never sooner.
  for (int i = 0; i < 10; ++i) {
    SCOPED_TRACE(i);
    const Call refused = acquired(buckets);
    ASSERT_FALSE(refused.admitted());
    const TimePoint told = now() + refused.wait();
    set_time(told - kTick);
    EXPECT_FALSE(acquired(buckets).admitted());
    set_time(told);
    EXPECT_TRUE(acquired(buckets).admitted());
  }
}

TEST_P(Waits, WhatFitsHasNoWait) {
  const auto set = limits({requests_per(kMinute, 1), requests_per(kHour, 10)});
  const Call made = acquired({{"a", set}});
  EXPECT_EQ(made.slot(0).wait, Duration{0});
  const Call refused = acquired({{"a", set}});
  EXPECT_EQ(refused.slot(0).wait, kMinute);
  EXPECT_EQ(refused.slot(1).wait, Duration{0});
}

TEST_P(Waits, ASmallerNeedIsToldNoLongerWait) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto set = limits({c.limit});
    ASSERT_TRUE(admits(c.name, set, c.limit.capacity()));
    Duration last{0};
    for (std::int64_t share = 1; share <= 8; ++share) {
      const std::int64_t need = std::max<std::int64_t>(c.limit.capacity() / 8 * share, 1);
      const Duration wait = acquired({{c.name, set, {{need}}}}).wait();
      EXPECT_GE(wait, last);
      last = wait;
    }
  }
}

}  // namespace
}  // namespace stint::store
