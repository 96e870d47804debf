#include "limit/spec.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace stint::limit {
namespace {

using namespace std::chrono_literals;
using std::chrono::days;

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMinInt = std::numeric_limits<std::int64_t>::min();

Limit make(Algorithm algorithm, Duration window, std::int64_t quota,
           std::optional<std::int64_t> burst = std::nullopt) {
  return {.unit = algorithm == Algorithm::concurrency ? Unit::concurrency : Unit::requests,
          .quota = quota,
          .window = window,
          .algorithm = algorithm,
          .burst = burst};
}

// The field that is at fault; empty if there is none.
std::string fault(const Limit& limit) {
  const auto spec = compile(limit);
  if (spec) return "";
  EXPECT_EQ(spec.error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(spec.error().message.empty());
  return spec.error().field;
}

constexpr Algorithm kWindowed[] = {Algorithm::fixed_window, Algorithm::sliding_window,
                                   Algorithm::sliding_log, Algorithm::token_bucket};

TEST(Spec, AcceptsAQuotaOfZeroForEveryAlgorithm) {
  for (const Algorithm algorithm : kWindowed) EXPECT_EQ(fault(make(algorithm, 1s, 0)), "");
  EXPECT_EQ(fault(make(Algorithm::concurrency, 0s, 0)), "");
  EXPECT_EQ(fault(make(Algorithm::token_bucket, 1s, 5, 0)), "");
}

TEST(Spec, RefusesNegativeQuotasNamingTheField) {
  for (const Algorithm algorithm : kWindowed) {
    EXPECT_EQ(fault(make(algorithm, 1s, -1)), "quota");
    EXPECT_EQ(fault(make(algorithm, 1s, kMinInt)), "quota");
  }
  EXPECT_EQ(fault(make(Algorithm::concurrency, 0s, -1)), "quota");
}

TEST(Spec, CountsUpTo2To53Minus1WhereNothingIsMultiplied) {
  for (const std::int64_t quota : {2'147'483'647L, 2'147'483'648L, 9'007'199'254'740'991L}) {
    EXPECT_EQ(fault(make(Algorithm::fixed_window, 1ms, quota)), "") << quota;
    EXPECT_EQ(fault(make(Algorithm::fixed_window, days{366}, quota)), "") << quota;
    EXPECT_EQ(fault(make(Algorithm::concurrency, 0s, quota)), "") << quota;
  }
}

TEST(Spec, RefusesQuotasAbove2To53Minus1NamingTheField) {
  for (const std::int64_t quota : {9'007'199'254'740'992L, kMaxInt - 1, kMaxInt}) {
    for (const Algorithm algorithm : kWindowed) {
      EXPECT_EQ(fault(make(algorithm, 1h, quota)), "quota") << quota;
    }
    EXPECT_EQ(fault(make(Algorithm::concurrency, 0s, quota)), "quota") << quota;
  }
}

TEST(Spec, RefusesAnUncountableBurstNamingTheField) {
  EXPECT_EQ(fault(make(Algorithm::token_bucket, 1s, 1, -1)), "burst");
  EXPECT_EQ(fault(make(Algorithm::token_bucket, 1s, 1, kMinInt)), "burst");
  EXPECT_EQ(fault(make(Algorithm::token_bucket, 1s, 1, 9'007'199'254'740'992)), "burst");
  EXPECT_EQ(fault(make(Algorithm::token_bucket, 1s, 1, kMaxInt)), "burst");
}

TEST(Spec, RefusesABurstOfAnythingButATokenBucket) {
  EXPECT_EQ(fault(make(Algorithm::fixed_window, 1s, 5, 5)), "burst");
  EXPECT_EQ(fault(make(Algorithm::sliding_window, 1s, 5, 5)), "burst");
  EXPECT_EQ(fault(make(Algorithm::sliding_log, 1s, 5, 5)), "burst");
  EXPECT_EQ(fault(make(Algorithm::concurrency, 0s, 5, 5)), "burst");
}

TEST(Spec, AcceptsWindowsFromAMillisecondTo366Days) {
  for (const Algorithm algorithm : kWindowed) {
    EXPECT_EQ(fault(make(algorithm, 1ms, 5)), "");
    EXPECT_EQ(fault(make(algorithm, days{366}, 5)), "");
    EXPECT_EQ(fault(make(algorithm, 999us, 5)), "window");
    EXPECT_EQ(fault(make(algorithm, days{366} + 1us, 5)), "window");
    EXPECT_EQ(fault(make(algorithm, 0s, 5)), "window");
    EXPECT_EQ(fault(make(algorithm, -1s, 5)), "window");
    EXPECT_EQ(fault(make(algorithm, Duration::max(), 5)), "window");
    EXPECT_EQ(fault(make(algorithm, Duration::min(), 5)), "window");
  }
}

TEST(Spec, RefusesAWindowOfAConcurrencyLimit) {
  EXPECT_EQ(fault(make(Algorithm::concurrency, 1s, 5)), "window");
}

TEST(Spec, ConcurrencyIsAUnitAndAnAlgorithmTogetherOnly) {
  Limit limit = make(Algorithm::fixed_window, 1s, 5);
  limit.unit = Unit::concurrency;
  EXPECT_EQ(fault(limit), "algorithm");
  limit = make(Algorithm::concurrency, 0s, 5);
  limit.unit = Unit::requests;
  EXPECT_EQ(fault(limit), "algorithm");
}

TEST(Spec, KeepsASlidingLogToRequestsAndTenThousand) {
  EXPECT_EQ(fault(make(Algorithm::sliding_log, 1s, 10'000)), "");
  EXPECT_EQ(fault(make(Algorithm::sliding_log, 1s, 10'001)), "quota");
  Limit limit = make(Algorithm::sliding_log, 1s, 5);
  limit.unit = Unit::tokens;
  EXPECT_EQ(fault(limit), "algorithm");
}

TEST(Spec, RefusesValuesThatAreNoEnumerators) {
  Limit limit = make(Algorithm::fixed_window, 1s, 5);
  limit.unit = static_cast<Unit>(5);
  EXPECT_EQ(fault(limit), "unit");
  limit = make(static_cast<Algorithm>(5), 1s, 5);
  EXPECT_EQ(fault(limit), "algorithm");
}

// 4,503,599,627 x 1,000,000 us is the largest product below 2^52 = 4,503,599,627,370,496.
TEST(Spec, TakesTheFinestTickWhoseProductsStayBelow2To52) {
  for (const Algorithm algorithm : {Algorithm::sliding_window, Algorithm::token_bucket}) {
    const auto fine = compile(make(algorithm, 1s, 4'503'599'627));
    ASSERT_TRUE(fine);
    EXPECT_EQ(fine->tick, 1us);
    EXPECT_EQ(fine->window_ticks, 1'000'000);
    EXPECT_EQ(fine->max_level, 9'007'199'254);
    const auto coarse = compile(make(algorithm, 1s, 4'503'599'628));
    ASSERT_TRUE(coarse);
    EXPECT_EQ(coarse->tick, 10us);
    EXPECT_EQ(coarse->window_ticks, 100'000);
    EXPECT_EQ(coarse->max_level, 90'071'992'547);
  }
}

TEST(Spec, TakesTheTickFromTheBurstWhenThatIsLarger) {
  const auto spec = compile(make(Algorithm::token_bucket, 1s, 1, 4'503'599'628));
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->tick, 10us);
  EXPECT_EQ(spec->capacity, 4'503'599'628);
}

// 1 s has to be 1,001 ticks or more for one tick to be less than 1 %: ticks of 1 ms, so that
// 4,503,599,627,370 is the end.
TEST(Spec, RefusesWhatCannotBeCountedToWithinOnePercent) {
  for (const Algorithm algorithm : {Algorithm::sliding_window, Algorithm::token_bucket}) {
    const auto last = compile(make(algorithm, 1s, 4'503'599'627'370));
    ASSERT_TRUE(last);
    EXPECT_EQ(last->tick, 1ms);
    EXPECT_EQ(fault(make(algorithm, 1s, 4'503'599'627'371)), "quota");
    EXPECT_EQ(fault(make(algorithm, days{366}, kMaxQuantity)), "quota");
    EXPECT_EQ(fault(make(algorithm, 1ms, kMaxQuantity)), "quota");
  }
  EXPECT_EQ(fault(make(Algorithm::token_bucket, 1s, 1, 4'503'599'627'371)), "burst");
  EXPECT_EQ(fault(make(Algorithm::token_bucket, 1s, 4'503'599'627'371, 1)), "quota");
}

TEST(Spec, RoundsAnUnevenWindowToTheStricterSide) {
  const auto sliding = compile(make(Algorithm::sliding_window, 1'000'001us, 1'000'000'000'000));
  ASSERT_TRUE(sliding);
  EXPECT_EQ(sliding->tick, 1ms);
  EXPECT_EQ(sliding->window_ticks, 1'000);
  EXPECT_EQ(sliding->max_level, 9'007'199'254'740);
  const auto bucket = compile(make(Algorithm::token_bucket, 1'000'001us, 1'000'000'000'000));
  ASSERT_TRUE(bucket);
  EXPECT_EQ(bucket->tick, 1ms);
  EXPECT_EQ(bucket->window_ticks, 1'001);
  EXPECT_EQ(bucket->max_level, 8'998'201'053'687);
}

TEST(Spec, KeepsProductsExactAndLevelsTwiceTheCapacityForEveryQuotaAndWindow) {
  constexpr std::int64_t kEnd = std::int64_t{1} << 53;
  int compiled = 0;
  for (const Algorithm algorithm : {Algorithm::sliding_window, Algorithm::token_bucket}) {
    for (const Duration window :
         {Duration{1ms}, Duration{1'001us}, Duration{1s}, Duration{999'983us}, Duration{1min},
          Duration{1h}, Duration{days{1}}, Duration{days{30}}, Duration{days{366}}}) {
      for (std::int64_t quota = 0; quota <= kMaxQuantity; quota = quota * 3 + 1) {
        const auto spec = compile(make(algorithm, window, quota));
        if (!spec) continue;
        ++compiled;
        EXPECT_LT(static_cast<double>(spec->tick.count()),
                  static_cast<double>(window.count()) / 100);
        EXPECT_LT(spec->capacity, kEnd / 2 / spec->window_ticks + 1);
        EXPECT_LT(spec->max_level, kEnd / spec->window_ticks + 1);
        EXPECT_GE(spec->max_level, 2 * spec->capacity);
      }
    }
  }
  EXPECT_GT(compiled, 300);
}

TEST(Spec, GivesBackTheLimitItCameFrom) {
  for (const Limit& limit :
       {make(Algorithm::fixed_window, 1min, 60), make(Algorithm::sliding_log, 1s, 5),
        make(Algorithm::token_bucket, 1s, 5), make(Algorithm::token_bucket, 1s, 5, 20),
        make(Algorithm::token_bucket, 1s, 5, 0), make(Algorithm::concurrency, 0s, 3)}) {
    EXPECT_EQ(compile(limit).value().limit(), limit);
  }
  EXPECT_EQ(compile(make(Algorithm::token_bucket, 1s, 5, 5)).value().limit(),
            make(Algorithm::token_bucket, 1s, 5));
}

}  // namespace
}  // namespace stint::limit
