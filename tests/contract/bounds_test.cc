// The ends of the scale: what never fits, quotas of 0, limits that are skipped, huge numbers.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/contract/store_contract.h"

namespace stint::store {
namespace {

STINT_STORE_CONTRACT(Bounds);

std::vector<Limit> one_of_each(std::int64_t quota) {
  return {requests_per(kMinute, quota), requests_per(kMinute, quota, Algorithm::sliding_window),
          requests_per(kMinute, quota, Algorithm::sliding_log),
          requests_per(kMinute, quota, Algorithm::token_bucket), in_flight(quota)};
}

TEST_P(Bounds, AQuotaOfZeroRefusesEverythingForEver) {
  for (const Limit& limit : one_of_each(0)) {
    const std::string key(to_string(limit.algorithm));
    SCOPED_TRACE(key);
    const auto set = limits({limit});
    for (const std::int64_t need : {0, 1}) {
      const Call refused = acquired({{key, set, {{need}}}});
      EXPECT_EQ(refused.record().outcome, Outcome::refused);
      EXPECT_EQ(refused.slot().verdict, Verdict::never_fits);
      EXPECT_EQ(refused.slot().wait, Duration{0});
      EXPECT_EQ(refused.slot().remaining, 0);
    }
    EXPECT_EQ(admitted_of(1000, {{key, set}}), 0);
  }
}

TEST_P(Bounds, AQuotaOfOneAdmitsOnceForEveryAlgorithm) {
  for (const Limit& limit : one_of_each(1)) {
    const std::string key(to_string(limit.algorithm));
    SCOPED_TRACE(key);
    const auto set = limits({limit});
    EXPECT_TRUE(admits(key, set));
    EXPECT_FALSE(admits(key, set));
  }
}

TEST_P(Bounds, MoreThanALimitCanHoldNeverFitsAndHasNoWait) {
  for (const Limit& limit : one_of_each(5)) {
    if (limit.unit == Unit::concurrency) continue;
    const std::string key(to_string(limit.algorithm));
    SCOPED_TRACE(key);
    const auto set = limits({limit});
    const Call too_much = acquired({{key, set, {{6}}}});
    EXPECT_EQ(too_much.record().outcome, Outcome::refused);
    EXPECT_EQ(too_much.slot().verdict, Verdict::never_fits);
    EXPECT_EQ(too_much.slot().wait, Duration{0});
    EXPECT_EQ(too_much.slot().remaining, 5);
    EXPECT_TRUE(admits(key, set, 5)) << "exactly what it holds fits";
  }
}

TEST_P(Bounds, ATokenBucketHoldsItsBurstNotItsQuota) {
  const auto small = limits({token_bucket(1000, kMinute, 10)});
  EXPECT_EQ(acquired({{"small", small, {{11}}}}).slot().verdict, Verdict::never_fits);
  EXPECT_TRUE(admits("small", small, 10));
  const auto large = limits({token_bucket(10, kMinute, 1000)});
  EXPECT_TRUE(admits("large", large, 1000));
  const auto none = limits({token_bucket(10, kMinute, 0)});
  EXPECT_EQ(acquired({{"none", none}}).slot().verdict, Verdict::never_fits);
  const auto never_refilled = limits({token_bucket(0, kMinute, 10)});
  EXPECT_EQ(acquired({{"dry", never_refilled}}).slot().verdict, Verdict::never_fits);
}

TEST_P(Bounds, OneLimitThatNeverFitsRefusesTheWhole) {
  const auto set = limits({requests_per(kMinute, 10), tokens_per(kMinute, 5)});
  const Call refused = acquired({{"a", set, {{1}, {6}}}});
  EXPECT_EQ(refused.record().outcome, Outcome::refused);
  EXPECT_EQ(refused.slot(0).verdict, Verdict::fits);
  EXPECT_EQ(refused.slot(1).verdict, Verdict::never_fits);
  EXPECT_EQ(remaining("a", set, 0), 10);
}

TEST_P(Bounds, ANeedOfZeroFitsUnlessMoreThanTheQuotaIsUsed) {
  const auto set = limits({tokens_per(kMinute, 5)});
  Call made = acquired({{"a", set, {{5}}}});
  EXPECT_TRUE(acquired({{"a", set, {{0}}}}).admitted());
  EXPECT_TRUE(settle(made, {6}));
  EXPECT_FALSE(acquired({{"a", set, {{0}}}}).admitted());
}

TEST_P(Bounds, AChargeMayBeMoreOrLessThanWhatHadToFit) {
  const auto set = limits({tokens_per(kMinute, 10)});
  EXPECT_TRUE(acquired({{"a", set, {{.need = 1, .charge = 9}}}}).admitted());
  const Call over = acquired({{"a", set, {{.need = 1, .charge = 9}}}});
  EXPECT_TRUE(over.admitted());
  EXPECT_EQ(over.slot().charged.amount, 9);
  EXPECT_EQ(over.slot().remaining, 0);
  EXPECT_EQ(value("a"), 18);
  EXPECT_TRUE(acquired({{"b", set, {{.need = 10, .charge = 0}}}}).admitted());
  EXPECT_EQ(value("b"), 0);
}

TEST_P(Bounds, ASkippedLimitIsNeitherCheckedNorCharged) {
  const auto set = limits({requests_per(kMinute, 100), in_flight(1)});
  Call held = acquired({{"a", set}});
  ASSERT_TRUE(held.admitted());
  const Call passing = acquired({{"a", set, {{1}, {.need = 1, .skip = true}}}});
  EXPECT_TRUE(passing.admitted());
  EXPECT_EQ(passing.slot(1).verdict, Verdict::skipped);
  EXPECT_EQ(passing.slot(1).wait, Duration{0});
  EXPECT_EQ(passing.slot(1).charged, limit::Charge{});
  EXPECT_EQ(value("a", 0), 2);
  EXPECT_EQ(value("a", 1), 1);
}

TEST_P(Bounds, ASkippedLimitOfZeroRefusesNobody) {
  const auto set = limits({requests_per(kMinute, 100), in_flight(0)});
  EXPECT_TRUE(acquired({{"a", set, {{1}, {.need = 1, .skip = true}}}}).admitted());
  EXPECT_FALSE(acquired({{"a", set}}).admitted());
}

TEST_P(Bounds, TheLargestQuantitiesAreCountedExactly) {
  for (const std::int64_t quota : {(std::int64_t{1} << 31) - 1, (std::int64_t{1} << 31) + 1,
                                   (std::int64_t{1} << 32) + 1, kMaxQuantity - 1, kMaxQuantity}) {
    const auto set = limits({tokens_per(kMinute, quota)});
    const std::string key = std::to_string(quota);
    SCOPED_TRACE(key);
    EXPECT_TRUE(admits(key, set, quota - 1));
    EXPECT_EQ(remaining(key, set), 1);
    EXPECT_EQ(value(key), quota - 1);
    EXPECT_EQ(acquired({{key, set, {{2}}}}).slot().verdict, Verdict::refused);
    EXPECT_TRUE(admits(key, set, 1));
    EXPECT_EQ(acquired({{key, set, {{1}}}}).slot().verdict, Verdict::refused);
    EXPECT_EQ(acquired({{key, set, {{quota}}}}).slot().verdict, Verdict::refused);
  }
}

TEST_P(Bounds, CountersStopInsteadOfWrapping) {
  std::vector<Limit> all = {tokens_per(kMinute, 10),
                            tokens_per(kMinute, 10, Algorithm::sliding_window),
                            token_bucket(10, kMinute, 10)};
  all[2].unit = Unit::tokens;
  const auto set = limits(all);
  // 1,100 times 2^53 - 1 is more than 63 bits hold.
  std::vector<Call> calls;
  for (int i = 0; i < 1100; ++i) {
    calls.push_back(acquired({{"a", set, {{.need = 1, .charge = 0}}}}));
    ASSERT_TRUE(calls.back().admitted());
  }
  for (Call& made : calls) {
    EXPECT_TRUE(settle(made, {kMaxQuantity, kMaxQuantity, kMaxQuantity}));
    const Call refused = acquired({{"a", set, {{.need = 0, .charge = kMaxQuantity}}}});
    ASSERT_EQ(refused.record().outcome, Outcome::refused);
    for (std::size_t limit = 0; limit < all.size(); ++limit) {
      ASSERT_EQ(refused.slot(limit).verdict, Verdict::refused) << limit;
      ASSERT_EQ(refused.slot(limit).remaining, 0) << limit;
      ASSERT_GT(refused.slot(limit).wait, Duration{0}) << limit;
      ASSERT_GT(refused.slot(limit).reset, Duration{0}) << limit;
    }
  }
  EXPECT_GT(value("a", 0), 10);
  EXPECT_GT(value("a", 1), 10);
  EXPECT_LT(value("a", 2), 0);
}

TEST_P(Bounds, ALogOfItsLargestQuotaIsExact) {
  const auto set = limits({requests_per(kMinute, kMaxSlidingLogQuota, Algorithm::sliding_log)});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(admits("a", set, 100));
    advance(Duration{1000});
  }
  const Call refused = acquired({{"a", set}});
  EXPECT_FALSE(refused.admitted());
  EXPECT_EQ(refused.wait(), kMinute - 100 * Duration{1000});
}

}  // namespace
}  // namespace stint::store
