// What each algorithm means, seen from outside.
#include <string>
#include <vector>

#include "tests/contract/store_contract.h"

namespace stint::store {
namespace {

STINT_STORE_CONTRACT(Algorithms);

TEST_P(Algorithms, AFixedWindowIsAlignedToTheWallClock) {
  const auto set = limits({requests_per(kMinute, 3)});
  advance(59 * kSecond);
  EXPECT_EQ(admitted_of(5, {{"a", set}}), 3);
  advance(kSecond - kTick);
  EXPECT_FALSE(admits("a", set));
  advance(kTick);
  EXPECT_EQ(admitted_of(5, {{"a", set}}), 3);
}

TEST_P(Algorithms, ADayStartsAtMidnightUtc) {
  const auto set = limits({requests_per(kDay, 2)});
  set_time(kStart + 13 * kHour);
  EXPECT_EQ(admitted_of(3, {{"a", set}}), 2);
  set_time(kStart + kDay - kTick);
  const Call refused = acquired({{"a", set}});
  EXPECT_FALSE(refused.admitted());
  EXPECT_EQ(refused.wait(), kTick);
  set_time(kStart + kDay);
  EXPECT_TRUE(admits("a", set));
}

TEST_P(Algorithms, AFixedWindowForgetsWhatWasUsedInTheLastOne) {
  const auto set = limits({tokens_per(kSecond, 10)});
  EXPECT_TRUE(admits("a", set, 7));
  advance(kSecond);
  EXPECT_EQ(remaining("a", set), 10);
  EXPECT_TRUE(admits("a", set, 10));
  advance(100 * kSecond);
  EXPECT_EQ(remaining("a", set), 10);
}

TEST_P(Algorithms, ASlidingWindowWeighsTheLastOneByWhatIsStillCovered) {
  const auto set = limits({requests_per(kMinute, 100, Algorithm::sliding_window)});
  EXPECT_TRUE(admits("a", set, 80));
  // Of the 80, the part that the minute ending now still covers counts, rounded up.
  set_time(kStart + kMinute);
  EXPECT_EQ(remaining("a", set), 20);
  set_time(kStart + kMinute + 15 * kSecond);
  EXPECT_EQ(remaining("a", set), 40);
  set_time(kStart + kMinute + 15 * kSecond + kTick);
  EXPECT_EQ(remaining("a", set), 40) << "rounded up: 59.99 counts as 60";
  EXPECT_TRUE(admits("a", set, 40));
  EXPECT_EQ(remaining("a", set), 0);
  set_time(kStart + kMinute + 30 * kSecond);
  EXPECT_EQ(remaining("a", set), 20);
  set_time(kStart + 2 * kMinute - kTick);
  EXPECT_EQ(remaining("a", set), 59) << "the last microsecond still weighs 1";
  set_time(kStart + 2 * kMinute);
  EXPECT_EQ(remaining("a", set), 60) << "now the 40 are the last window's";
  set_time(kStart + 3 * kMinute);
  EXPECT_EQ(remaining("a", set), 100);
}

TEST_P(Algorithms, ASlidingWindowLooksBackOneWindowOnly) {
  const auto set = limits({requests_per(kMinute, 10, Algorithm::sliding_window)});
  EXPECT_TRUE(admits("a", set, 10));
  set_time(kStart + 2 * kMinute);
  EXPECT_EQ(remaining("a", set), 10);
}

TEST_P(Algorithms, ASlidingLogAdmitsAtMostTheQuotaInAnySpanOfOneWindow) {
  const auto set = limits({requests_per(kMinute, 3, Algorithm::sliding_log)});
  advance(50 * kSecond);
  EXPECT_TRUE(admits("a", set));
  advance(5 * kSecond);
  EXPECT_TRUE(admits("a", set, 2));
  set_time(kStart + kMinute + 50 * kSecond - kTick);
  EXPECT_FALSE(admits("a", set)) << "no window boundary sets it free";
  advance(kTick);
  EXPECT_TRUE(admits("a", set)) << "an entry counts at every instant before its own + window";
  EXPECT_FALSE(admits("a", set));
  set_time(kStart + kMinute + 55 * kSecond);
  EXPECT_EQ(remaining("a", set), 2);
}

TEST_P(Algorithms, ATokenBucketStartsFullAndRefillsAtItsRate) {
  const auto set = limits({token_bucket(60, kMinute, 10)});
  EXPECT_EQ(admitted_of(20, {{"a", set}}), 10);
  advance(kSecond - kTick);
  EXPECT_FALSE(admits("a", set));
  advance(kTick);
  EXPECT_TRUE(admits("a", set));
  advance(3 * kSecond);
  EXPECT_EQ(admitted_of(20, {{"a", set}}), 3);
  advance(kDay);
  EXPECT_EQ(admitted_of(20, {{"a", set}}), 10) << "idle time fills it, never more";
}

TEST_P(Algorithms, ATokenBucketLosesNothingOfItsRateToBeingPolled) {
  // One unit in 30 days, polled far more often than that.
  const auto set = limits({token_bucket(1, 30 * kDay, 1)});
  EXPECT_TRUE(admits("a", set));
  for (int i = 1; i < 720; ++i) {
    advance(kHour);
    ASSERT_FALSE(admits("a", set)) << "after " << i << " hours";
  }
  advance(kHour);
  EXPECT_TRUE(admits("a", set));
}

TEST_P(Algorithms, AFastTokenBucketPolledEveryMillisecondKeepsItsRate) {
  const auto set = limits({token_bucket(999, kSecond, 5)});
  EXPECT_TRUE(admits("a", set, 5));
  int admitted = 0;
  for (int i = 0; i < 1000; ++i) {
    advance(std::chrono::milliseconds{1});
    admitted += admits("a", set) ? 1 : 0;
  }
  EXPECT_EQ(admitted, 999);
}

TEST_P(Algorithms, ConcurrencyCountsWhatIsInFlight) {
  const auto set = limits({in_flight(2)});
  Call first = acquired({{"a", set}});
  Call second = acquired({{"a", set}});
  EXPECT_TRUE(first.admitted() && second.admitted());
  EXPECT_FALSE(admits("a", set));
  EXPECT_TRUE(give_back(first));
  EXPECT_TRUE(admits("a", set));
  EXPECT_FALSE(admits("a", set));
}

TEST_P(Algorithms, UnitsOfOneWindowAndAlgorithmAreCountedApart) {
  std::vector<Limit> all;
  for (const Unit unit : {Unit::requests, Unit::tokens, Unit::input_tokens, Unit::output_tokens}) {
    all.push_back({.unit = unit, .quota = 100, .window = kMinute});
  }
  const auto set = limits(all);
  EXPECT_TRUE(acquired({{"a", set, {{1}, {20}, {30}, {40}}}}).admitted());
  const Call seen = peeked({{"a", set, {{0}}}});
  EXPECT_EQ(seen.slot(0).remaining, 99);
  EXPECT_EQ(seen.slot(1).remaining, 80);
  EXPECT_EQ(seen.slot(2).remaining, 70);
  EXPECT_EQ(seen.slot(3).remaining, 60);
}

TEST_P(Algorithms, WindowsAndAlgorithmsOfOneUnitAreCountedApart) {
  const auto set = limits({requests_per(kSecond, 2), requests_per(kMinute, 5),
                           requests_per(kMinute, 100, Algorithm::sliding_window)});
  EXPECT_EQ(admitted_of(4, {{"a", set}}), 2);
  advance(kSecond);
  EXPECT_EQ(admitted_of(4, {{"a", set}}), 2);
  advance(kSecond);
  EXPECT_EQ(admitted_of(4, {{"a", set}}), 1);
  const Call seen = peeked({{"a", set, {{0}}}});
  EXPECT_EQ(seen.slot(0).remaining, 1);
  EXPECT_EQ(seen.slot(1).remaining, 0);
  EXPECT_EQ(seen.slot(2).remaining, 95);
}

}  // namespace
}  // namespace stint::store
