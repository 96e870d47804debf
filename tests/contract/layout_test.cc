// The limits of a bucket are changed under it: what is counted stays where the limit is the same
// by unit, window and algorithm.
#include <string>
#include <vector>

#include "tests/contract/store_contract.h"

namespace stint::store {
namespace {

STINT_STORE_CONTRACT(Layout);

TEST_P(Layout, ALoweredQuotaKeepsWhatWasUsed) {
  for (const Algorithm algorithm :
       {Algorithm::fixed_window, Algorithm::sliding_window, Algorithm::sliding_log}) {
    const std::string key(to_string(algorithm));
    SCOPED_TRACE(key);
    const auto before = limits({requests_per(kMinute, 100, algorithm)});
    const auto after = limits({requests_per(kMinute, 50, algorithm)});
    ASSERT_TRUE(admits(key, before, 40));
    EXPECT_EQ(remaining(key, after), 10);
    EXPECT_EQ(admitted_of(20, {{key, after}}), 10);
    const auto lowest = limits({requests_per(kMinute, 5, algorithm)});
    const Call refused = acquired({{key, lowest}});
    EXPECT_EQ(refused.slot().verdict, Verdict::refused);
    EXPECT_EQ(refused.slot().remaining, 0) << "max(0, quota - used)";
  }
}

TEST_P(Layout, ARaisedQuotaKeepsWhatWasUsed) {
  for (const Algorithm algorithm :
       {Algorithm::fixed_window, Algorithm::sliding_window, Algorithm::sliding_log}) {
    const std::string key(to_string(algorithm));
    SCOPED_TRACE(key);
    const auto before = limits({requests_per(kMinute, 10, algorithm)});
    const auto after = limits({requests_per(kMinute, 30, algorithm)});
    EXPECT_EQ(admitted_of(20, {{key, before}}), 10);
    EXPECT_EQ(admitted_of(40, {{key, after}}), 20);
  }
}

TEST_P(Layout, LeasesStayWhenTheirQuotaChanges) {
  std::vector<Call> held;
  held.reserve(5);
  for (int i = 0; i < 5; ++i) held.push_back(acquired({{"a", limits({in_flight(5)})}}));
  EXPECT_FALSE(admits("a", limits({in_flight(3)})));
  EXPECT_EQ(admitted_of(5, {{"a", limits({in_flight(7)})}}), 2);
}

TEST_P(Layout, ATokenBucketKeepsItsLevelAndIsCutToALowerCapacity) {
  ASSERT_TRUE(admits("a", limits({token_bucket(60, kMinute, 100)}), 40));
  EXPECT_EQ(remaining("a", limits({token_bucket(60, kMinute, 200)})), 60);
  EXPECT_EQ(admitted_of(100, {{"a", limits({token_bucket(60, kMinute, 30)})}}), 30);
}

TEST_P(Layout, AnotherRefillRateCountsFromTheChangeOn) {
  const auto slow = limits({token_bucket(1, kMinute, 100)});
  const auto fast = limits({token_bucket(60, kMinute, 100)});
  ASSERT_TRUE(admits("a", slow, 100));
  EXPECT_FALSE(admits("a", fast));
  advance(10 * kSecond);
  EXPECT_EQ(admitted_of(20, {{"a", fast}}), 10);
}

TEST_P(Layout, ALimitWithAnotherWindowUnitOrAlgorithmStartsAnewAndTheOthersStay) {
  const std::vector<Limit> before = {requests_per(kMinute, 10), tokens_per(kHour, 1000)};
  const std::vector<Limit> changed = {
      requests_per(kHour, 10),
      Limit{.unit = Unit::input_tokens, .quota = 10, .window = kMinute},
      requests_per(kMinute, 10, Algorithm::sliding_window),
      requests_per(kMinute, 10, Algorithm::sliding_log),
      requests_per(kMinute, 10, Algorithm::token_bucket),
      in_flight(10),
  };
  for (std::size_t i = 0; i < changed.size(); ++i) {
    const std::string key = "change" + std::to_string(i);
    SCOPED_TRACE(key);
    ASSERT_TRUE(acquired({{key, limits(before), {{4}, {300}}}}).admitted());
    const auto after = limits({changed[i], before[1]});
    ASSERT_TRUE(acquired({{key, after, {{1}, {100}}}}).admitted());
    EXPECT_EQ(remaining(key, after, 0), 9);
    EXPECT_EQ(remaining(key, after, 1), 600);
  }
}

TEST_P(Layout, TheOrderOfTheLimitsDoesNotMatter) {
  const std::vector<Limit> before = {requests_per(kMinute, 10), tokens_per(kHour, 1000),
                                     requests_per(kMinute, 10, Algorithm::sliding_log),
                                     token_bucket(60, kHour, 20), in_flight(5)};
  const std::vector<Limit> after = {before[4], before[2], before[3], before[1], before[0]};
  Call made = acquired({{"a", limits(before), {{1}, {300}, {2}, {3}, {1}}}});
  ASSERT_TRUE(made.admitted());
  const auto swapped = limits(after);
  ASSERT_TRUE(acquired({{"a", swapped, {{1}, {2}, {3}, {300}, {1}}}}).admitted());
  EXPECT_EQ(remaining("a", swapped, 0), 3);
  EXPECT_EQ(remaining("a", swapped, 1), 6);
  EXPECT_EQ(remaining("a", swapped, 2), 14);
  EXPECT_EQ(remaining("a", swapped, 3), 400);
  EXPECT_EQ(remaining("a", swapped, 4), 8);
  // And what was charged by the old order is settled by names, not by places.
  EXPECT_TRUE(settle(made, {0, 100, 0, 1, 0}));
  EXPECT_EQ(remaining("a", swapped, 0), 4);
  EXPECT_EQ(remaining("a", swapped, 1), 8);
  EXPECT_EQ(remaining("a", swapped, 2), 16);
  EXPECT_EQ(remaining("a", swapped, 3), 600);
  EXPECT_EQ(remaining("a", swapped, 4), 9);
}

TEST_P(Layout, ALimitThatIsAddedStartsFresh) {
  const auto before = limits({requests_per(kMinute, 10)});
  const auto after = limits({tokens_per(kMinute, 100), requests_per(kMinute, 10), in_flight(3)});
  ASSERT_TRUE(admits("a", before, 6));
  EXPECT_EQ(remaining("a", after, 0), 100);
  EXPECT_EQ(remaining("a", after, 1), 4);
  EXPECT_EQ(remaining("a", after, 2), 3);
}

TEST_P(Layout, AnOldRecordSettlesWithTheLimitsThatAreStillThere) {
  const auto before = limits({requests_per(kMinute, 10), tokens_per(kHour, 1000), in_flight(5)});
  const auto after = limits({tokens_per(kHour, 500), requests_per(kHour, 20)});
  Call old = acquired({{"a", before, {{1}, {300}, {1}}}});
  ASSERT_TRUE(acquired({{"a", after, {{100}, {1}}}}).admitted());
  EXPECT_TRUE(settle(old, {0, 50, 0}));
  EXPECT_EQ(remaining("a", after, 0), 350);
  EXPECT_EQ(remaining("a", after, 1), 19) << "requests per hour are not requests per minute";
  Call second = acquired({{"a", after, {{100}, {1}}}});
  EXPECT_TRUE(settle(second, {150, 1}));
  EXPECT_EQ(remaining("a", after, 0), 200);
}

// Cut to the smaller capacity it is full: what was taken before is made good.
TEST_P(Layout, AnOldRefundIsDroppedOnceASmallerCapacityWasFull) {
  const auto large = limits({token_bucket(60, kMinute, 100)});
  const auto small = limits({token_bucket(60, kMinute, 10)});
  Call old = acquired({{"a", large, {{60}}}});
  ASSERT_TRUE(admits("a", small));
  EXPECT_TRUE(give_back(old));
  EXPECT_EQ(remaining("a", small), 9);
}

TEST_P(Layout, AnOldSettlementTakesNothingFromARaisedCapacity) {
  const auto small = limits({token_bucket(60, kMinute, 10)});
  const auto large = limits({token_bucket(60, kMinute, 1000)});
  Call old = acquired({{"a", small, {{8}}}});
  // The level is 1 then, and grows far above the old capacity.
  ASSERT_TRUE(admits("a", large, 1));
  advance(5 * kMinute);
  EXPECT_EQ(remaining("a", large), 301);
  EXPECT_TRUE(settle(old, {5}));
  EXPECT_EQ(remaining("a", large), 304);
}

TEST_P(Layout, AnOldRenewalMeetsANewLayout) {
  const auto before = limits({requests_per(kDay, 10), in_flight(2)});
  const auto after = limits({in_flight(3), requests_per(kDay, 20)});
  Call held = acquired({{"a", before}});
  ASSERT_TRUE(acquired({{"a", after, {{0}, {1}}}}).admitted());
  advance(kLeaseTtl - kTick);
  renew({&held});
  advance(kLeaseTtl - kTick);
  EXPECT_EQ(remaining("a", after, 0), 2);
  const auto without = limits({requests_per(kDay, 20)});
  ASSERT_TRUE(admits("a", without));
  renew({&held});
  EXPECT_EQ(remaining("a", without), 17);
}

TEST_P(Layout, ASpentBucketIsAsGoodAsGoneWhenItsLimitsChange) {
  // Whether the store had freed it by then must not tell.
  const auto small = limits({token_bucket(60, kMinute, 5)});
  const auto large = limits({token_bucket(1, kMinute, 50)});
  ASSERT_TRUE(admits("a", small, 5));
  advance(5 * kSecond - kTick);
  EXPECT_EQ(remaining("a", large), 0);
  advance(kTick);
  EXPECT_EQ(remaining("a", large), 50);
  EXPECT_TRUE(admits("a", large, 50));
}

}  // namespace
}  // namespace stint::store
