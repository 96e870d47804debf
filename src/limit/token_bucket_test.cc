#include "limit/token_bucket.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>

#include "limit/step_testing.h"

namespace stint::limit {
namespace {

using namespace std::chrono_literals;
using std::chrono::days;

Spec per(Duration window, std::int64_t quota, std::optional<std::int64_t> burst = std::nullopt) {
  return spec_of({.unit = Unit::requests,
                  .quota = quota,
                  .window = window,
                  .algorithm = Algorithm::token_bucket,
                  .burst = burst});
}

TokenBucket full(const Spec& spec, TimePoint now) {
  TokenBucket state = TokenBucket::fresh(spec);
  state.advance(spec, now);
  return state;
}

TokenBucket after_taking(const Spec& spec, std::int64_t amount, TimePoint now) {
  TokenBucket state = full(spec, now);
  (void)state.charge(spec, amount);
  return state;
}

TEST(TokenBucket, StartsFullWithItsBurst) {
  const Spec spec = per(60s, 10, 25);
  const TokenBucket state = full(spec, at(100s));
  EXPECT_EQ(state.read(spec, at(100s)), (Reading{25, 0s}));
  EXPECT_EQ(state.check(spec, 25, at(100s)), kFits);
  EXPECT_EQ(state.check(spec, 26, at(100s)), kNeverFits);
}

TEST(TokenBucket, OfQuotaOneAdmitsTheFirstAndRefusesTheSecond) {
  const Spec spec = per(1s, 1);
  TokenBucket state = full(spec, at(7s));
  EXPECT_EQ(state.check(spec, 1, at(7s)), kFits);
  EXPECT_EQ(state.charge(spec, 1).amount, 1);
  EXPECT_EQ(state.check(spec, 1, at(7s)), refused_for(1s));
}

TEST(TokenBucket, OfQuotaZeroOrBurstZeroNeverFits) {
  for (const Spec& spec : {per(60s, 0), per(60s, 0, 5), per(60s, 5, 0)}) {
    const TokenBucket state = full(spec, at(100s));
    EXPECT_EQ(state.check(spec, 0, at(100s)), kNeverFits);
    EXPECT_EQ(state.check(spec, 1, at(100s)), kNeverFits);
    EXPECT_EQ(state.read(spec, at(100s)), (Reading{0, 0s}));
  }
}

TEST(TokenBucket, CostAboveTheBurstNeverFits) {
  const Spec spec = per(60s, 10);
  EXPECT_EQ(full(spec, at(100s)).check(spec, 11, at(100s)), kNeverFits);
  EXPECT_EQ(full(spec, at(100s)).check(spec, kMaxQuantity, at(100s)), kNeverFits);
}

TEST(TokenBucket, CostOfZeroFitsUnlessItOwes) {
  const Spec spec = per(60s, 10);
  EXPECT_EQ(after_taking(spec, 10, at(100s)).check(spec, 0, at(100s)), kFits);
  EXPECT_EQ(after_taking(spec, 11, at(100s)).check(spec, 0, at(100s)), refused_for(6s));
}

TEST(TokenBucket, RefillsEvenlyAndWaitsForWhatIsMissing) {
  const Spec spec = per(60s, 10);  // one each 6 s
  TokenBucket state = after_taking(spec, 10, at(100s));
  EXPECT_EQ(state.check(spec, 1, at(100s)), refused_for(6s));
  EXPECT_EQ(state.check(spec, 10, at(100s)), refused_for(60s));
  EXPECT_EQ(state.read(spec, at(100s)), (Reading{0, 60s}));
  state.advance(spec, at(103s));
  EXPECT_EQ(state.check(spec, 1, at(103s)), refused_for(3s));
  EXPECT_EQ(state.read(spec, at(103s)), (Reading{0, 57s}));
  state.advance(spec, at(113s));
  EXPECT_EQ(state.read(spec, at(113s)), (Reading{2, 47s}));
  EXPECT_EQ(state.check(spec, 2, at(113s)), kFits);
  EXPECT_EQ(state.check(spec, 3, at(113s)), refused_for(5s));
}

TEST(TokenBucket, KeepsThePartOfAUnitHoweverOftenItIsAsked) {
  const Spec spec = per(3s, 7);
  TokenBucket state = after_taking(spec, 7, at(100s));
  for (int i = 1; i <= 1'000'000; ++i) state.advance(spec, at(100s + Duration{i}));
  EXPECT_EQ(state.read(spec, at(101s)), (Reading{2, 2s}));
  EXPECT_EQ(state.check(spec, 3, at(101s)), refused_for(285'715us));  // 3/7 of 3 s: 1.285714 s
}

TEST(TokenBucket, OwesWhatWasTakenBeyondItsLevelAndRefillsFromThere) {
  const Spec spec = per(60s, 10);
  TokenBucket state = after_taking(spec, 8, at(100s));
  (void)state.charge(spec, 5);
  EXPECT_EQ(state.level, -3);
  EXPECT_EQ(state.read(spec, at(100s)), (Reading{0, 78s}));
  EXPECT_EQ(state.check(spec, 1, at(100s)), refused_for(24s));
  state.advance(spec, at(118s));
  EXPECT_EQ(state.level, 0);
  EXPECT_EQ(state.check(spec, 1, at(118s)), refused_for(6s));
}

TEST(TokenBucket, WaitIsExactForEveryQuotaBurstCostAndDebt) {
  int refusals = 0;
  for (const Duration window : {Duration{1ms}, Duration{3s}, Duration{60s}, Duration{999'983us},
                                Duration{days{1}}, Duration{days{30}}}) {
    for (const std::int64_t quota : {1L, 2L, 7L, 60L, 1'000L, 99'991L}) {
      for (const std::int64_t burst : {std::int64_t{1}, quota, 3 * quota + 1}) {
        const auto compiled = compile({.unit = Unit::requests,
                                       .quota = quota,
                                       .window = window,
                                       .algorithm = Algorithm::token_bucket,
                                       .burst = burst});
        if (!compiled) continue;
        for (const std::int64_t cost : {std::int64_t{1}, burst / 2 + 1, burst}) {
          for (const std::int64_t level : {burst - 1, burst / 3, std::int64_t{0}, -burst}) {
            for (const Duration phase : {Duration{0}, Duration{1}, window / 7, window / 2}) {
              const TimePoint last = at(days{20'000});
              refusals +=
                  expect_exact_wait(TokenBucket{last, level, 0}, *compiled, cost, last + phase);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(refusals, 2'000);
}

TEST(TokenBucket, WaitIsExactWhereTicksAreCoarse) {
  int refusals = 0;
  for (const Duration window : {Duration{1s}, Duration{1'000'001us}}) {
    for (const std::int64_t quota : {4'503'599'628L, 1'000'000'000'000L, 4'499'000'000'000L}) {
      const Spec spec = per(window, quota);
      ASSERT_GT(spec.tick, 1us);
      for (const std::int64_t cost : {std::int64_t{1}, quota / 2 + 1, quota}) {
        for (const std::int64_t level : {quota - 1, quota / 3, std::int64_t{0}, -quota}) {
          for (const std::int64_t rest : {std::int64_t{0}, spec.window_ticks - 1}) {
            for (const Duration phase : {Duration{0}, Duration{1}, Duration{777}, window / 2}) {
              const TimePoint last = at(days{20'000} + 3us);
              refusals += expect_exact_wait(TokenBucket{last, level, rest & TokenBucket::kRestBits},
                                            spec, cost, last + phase);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(refusals, 200);
}

TEST(TokenBucket, GivesBurstAndRateExactlyHoweverOftenItIsAsked) {
  const auto given = [](const Spec& spec, Duration step, std::int64_t polls) {
    return total(take_all(TokenBucket::fresh(spec), spec, at(50s), step, polls));
  };
  // Each millisecond for 10 s.
  EXPECT_EQ(given(per(1s, 300'000), 1ms, 10'001), 300'000 + 3'000'000);
  EXPECT_EQ(given(per(1s, 700'000), 1ms, 10'001), 700'000 + 7'000'000);
  EXPECT_EQ(given(per(1s, 1'000'000), 1ms, 10'001), 1'000'000 + 10'000'000);
  EXPECT_EQ(given(per(1s, 1'000'000, 1'000), 1ms, 10'001), 1'000 + 10'000'000);
  // At odd steps: 76,923 of 13 us are 999,999 us; 10,030 of 997 us are 9,999,910 us.
  EXPECT_EQ(given(per(1s, 1'000'000), 13us, 76'924), 1'000'000 + 999'999);
  EXPECT_EQ(given(per(1s, 700'000), 13us, 76'924), 700'000 + 699'999);
  EXPECT_EQ(given(per(1s, 300'000), 997us, 10'031), 300'000 + 2'999'973);
  // 7 per 3 s for 300 s; 37,883 steps of 7,919 us are 299,995,477 us, in which 699.98 accrue.
  EXPECT_EQ(given(per(3s, 7), 1ms, 300'001), 7 + 700);
  EXPECT_EQ(given(per(3s, 7), 7'919us, 37'884), 7 + 699);
}

TEST(TokenBucket, GivesOnePerThirtyDaysWhenAskedEverySecond) {
  const Spec spec = per(days{30}, 1);
  const TimePoint start = at(days{20'000});
  EXPECT_EQ(take_all(TokenBucket::fresh(spec), spec, start, 1s, 2 * 2'592'000 + 1),
            (std::vector<Taken>{{start, 1}, {start + days{30}, 1}, {start + days{60}, 1}}));
}

// 86,660 steps of 997 ms are the first that reach a day: 86,400.02 s. What is over is not lost.
TEST(TokenBucket, GivesOnePerDayWhenAskedAtOddSteps) {
  const Spec spec = per(days{1}, 1);
  const TimePoint start = at(days{20'000});
  EXPECT_EQ(
      take_all(TokenBucket::fresh(spec), spec, start, 997ms, 173'321),
      (std::vector<Taken>{{start, 1}, {start + 86'400'020ms, 1}, {start + 172'800'040ms, 1}}));
}

// 1.000001 s is counted as 1,001 ticks of 1 ms: 0.1 % below the rate, never above.
TEST(TokenBucket, OfAnUnevenWindowGivesLessThanOnePercentLess) {
  const Spec spec = per(1'000'001us, 1'000'000'000'000);
  const auto given = [&](Duration step, std::int64_t polls) {
    return total(take_all(TokenBucket::fresh(spec), spec, at(50s), step, polls));
  };
  EXPECT_EQ(given(1ms, 10'001), 1'000'000'000'000 + 9'990'009'990'009);
  EXPECT_EQ(given(997us, 10'031), 1'000'000'000'000 + 9'989'010'989'010);  // 9,999 whole ticks
}

TEST(TokenBucket, IsFullAfterAnyIdleTime) {
  const Spec spec = per(1s, 1'000'000'000);
  for (const Duration idle : {Duration{12h}, Duration{days{30}}, Duration{days{36'525}}}) {
    for (const std::int64_t taken : {std::int64_t{1}, std::int64_t{1'000'000'000}, kMaxQuantity}) {
      TokenBucket state = after_taking(spec, taken, at(50s));
      const TimePoint now = at(50s) + idle;
      state.advance(spec, now);
      EXPECT_EQ(state.check(spec, 1'000'000'000, now), kFits);
      (void)state.charge(spec, 1);
      EXPECT_EQ(state.read(spec, now), (Reading{999'999'999, 1us}));
    }
  }
}

TEST(TokenBucket, DebtStopsWhereProductsWouldOverflow) {
  const Spec spec = per(60s, 10);  // (2^53 - 1) / 60,000,000 = 150,119,987.6
  TokenBucket state = after_taking(spec, kMaxQuantity, at(100s));
  EXPECT_EQ(state.level, 10 - 150'119'987);
  (void)state.charge(spec, kMaxQuantity);
  state.settle(spec, {0, TimePoint{}}, kMaxQuantity);
  EXPECT_EQ(state.level, 10 - 150'119'987);
  EXPECT_EQ(state.read(spec, at(100s)), (Reading{0, 6s * 150'119'987LL}));
  EXPECT_EQ(state.check(spec, 1, at(100s)), refused_for(6s * 150'119'978LL));
  EXPECT_TRUE(expect_exact_wait(state, spec, 10, at(100s)));
}

TEST(TokenBucket, CanOweAtLeastItsCapacity) {
  for (const Spec& spec : {per(days{366}, 1), per(days{366}, 142), per(1s, 4'503'599'627'370)}) {
    const TokenBucket state = after_taking(spec, kMaxQuantity, at(100s));
    EXPECT_LE(state.level, -spec.capacity);
  }
}

// One per second for a debt of 4.5 * 10^12 and as much again: 285,000 years, which no reset needs.
TEST(TokenBucket, WaitsStayBelow286Years) {
  const Spec spec = per(1s, 1, 4'503'599'627'370);
  const TokenBucket state = after_taking(spec, kMaxQuantity, at(days{20'000}));
  EXPECT_EQ(state.check(spec, 1, at(days{20'000})), refused_for(9'007'199'254'740ms));
  EXPECT_EQ(state.read(spec, at(days{20'000})), (Reading{0, 9'007'199'254'740ms}));
}

TEST(TokenBucket, ClockSetBackRefillsNothingAndTakesNothing) {
  const Spec spec = per(60s, 10);
  for (const Duration step : {Duration{11s}, Duration{1h}, Duration{days{365}}}) {
    TokenBucket state = after_taking(spec, 7, at(days{1000}));
    const TimePoint now = at(days{1000}) - step;
    state.advance(spec, now);
    EXPECT_EQ(state.read(spec, now), (Reading{3, 42s}));
    EXPECT_EQ(state.check(spec, 3, now), kFits);
    EXPECT_EQ(state.check(spec, 4, now), refused_for(6s));
    EXPECT_EQ(state.check(spec, 10, now), refused_for(42s));
    EXPECT_TRUE(expect_exact_wait(state, spec, 4, now));
  }
}

TEST(TokenBucket, ClockSetBackKeepsThePartOfAUnit) {
  const Spec spec = per(60s, 10);
  TokenBucket state = after_taking(spec, 10, at(1000s));
  state.advance(spec, at(1004s));
  state.advance(spec, at(1004s - 1h));
  EXPECT_EQ(state.check(spec, 1, at(1004s - 1h)), refused_for(2s));
}

TEST(TokenBucket, SameSecondTwiceRefillsOnce) {
  const Spec spec = per(1s, 10);
  TokenBucket state = after_taking(spec, 10, at(100s));
  state.advance(spec, at(100s + 500ms));
  EXPECT_EQ(state.level, 5);
  state.advance(spec, at(100s));  // a leap second, repeated
  EXPECT_EQ(state.level, 5);
  state.advance(spec, at(100s + 500ms));
  EXPECT_EQ(state.level, 10);
}

TEST(TokenBucket, ClockSetForwardGivesOneMoreBurstAtMost) {
  const Spec spec = per(60s, 10);
  TokenBucket state = after_taking(spec, 10, at(100s));
  state.advance(spec, at(100s + 1h));
  EXPECT_EQ(state.level, 10);
  (void)state.charge(spec, 10);
  state.advance(spec, at(100s));
  EXPECT_EQ(state.level, 0);
}

TEST(TokenBucket, RefundRaisesTheLevelAndOverspendLowersIt) {
  const Spec spec = per(60s, 100);
  TokenBucket state = after_taking(spec, 50, at(100s));
  state.settle(spec, state.charge(spec, 40), 10);
  EXPECT_EQ(state.level, 40);
  state.settle(spec, state.charge(spec, 10), 35);
  EXPECT_EQ(state.level, 5);
  state.settle(spec, {10, TimePoint{}}, 30);
  EXPECT_EQ(state.level, -15);
}

TEST(TokenBucket, RefundNeverLiftsItAboveItsCapacity) {
  const Spec spec = per(60s, 100);
  TokenBucket state = after_taking(spec, 20, at(100s));
  const Charge charged = state.charge(spec, 40);
  state.advance(spec, at(130s));  // 50 refilled: 90
  state.settle(spec, charged, 0);
  EXPECT_EQ(state.level, 100);
  EXPECT_EQ(state.read(spec, at(130s)), (Reading{100, 0s}));
}

// Had less been taken, it would have been full all the same.
TEST(TokenBucket, RefundOfWhatWasTakenBeforeItWasFullIsDropped) {
  const Spec spec = per(60s, 100);
  TokenBucket state = after_taking(spec, 20, at(100s));
  const Charge before = state.charge(spec, 80);
  state.advance(spec, at(160s));
  const Charge after = state.charge(spec, 30);
  state.settle(spec, before, 0);
  EXPECT_EQ(state.level, 70);
  state.settle(spec, before, 85);  // an overspend counts whenever it comes
  EXPECT_EQ(state.level, 65);
  state.settle(spec, after, 10);
  EXPECT_EQ(state.level, 85);
}

TEST(TokenBucket, FilledByARefundHoldsNoPartOfAUnitBeside) {
  const Spec spec = per(60s, 1);
  TokenBucket state = full(spec, at(100s));
  const Charge charge = state.charge(spec, 1);
  state.advance(spec, at(130s));
  state.settle(spec, charge, 0);
  (void)state.charge(spec, 1);
  EXPECT_EQ(state.check(spec, 1, at(130s)), refused_for(60s));
}

TEST(TokenBucket, IsSpentWhenItIsFull) {
  const Spec spec = per(60s, 10);
  EXPECT_EQ(full(spec, at(100s)).spent_at(spec), kAlwaysSpent);
  EXPECT_EQ(after_taking(spec, 1, at(100s)).spent_at(spec), at(106s));
  EXPECT_EQ(after_taking(spec, 15, at(100s)).spent_at(spec), at(190s));
}

TEST(TokenBucket, ThatIsNeverRefilledForgetsAfterAQuietWindow) {
  TokenBucket state = after_taking(per(60s, 10), 3, at(100s));
  const Spec stopped = per(60s, 0, 10);
  state.advance(stopped, at(110s));
  EXPECT_EQ(state.check(stopped, 1, at(110s)), kNeverFits);
  EXPECT_EQ(state.spent_at(stopped), at(170s));
  TokenBucket asked = state;
  asked.advance(stopped, at(170s - 1us));
  EXPECT_EQ(asked.level, 7);
  state.advance(stopped, at(170s));
  EXPECT_EQ(state.level, 10);
}

TEST(TokenBucket, BurstLoweredTakesWhatIsAbove) {
  TokenBucket state = after_taking(per(60s, 100), 20, at(100s));
  const Spec lowered = per(60s, 100, 50);
  state.advance(lowered, at(100s));
  EXPECT_EQ(state.read(lowered, at(100s)), (Reading{50, 0s}));
  EXPECT_EQ(state.check(lowered, 50, at(100s)), kFits);
  EXPECT_EQ(state.check(lowered, 51, at(100s)), kNeverFits);
}

TEST(TokenBucket, BurstRaisedIsFilledAtTheRate) {
  TokenBucket state = after_taking(per(60s, 60, 10), 10, at(100s));
  const Spec raised = per(60s, 60, 30);
  state.advance(raised, at(105s));
  EXPECT_EQ(state.read(raised, at(105s)), (Reading{5, 25s}));
}

// At most capacity + rate x span, over any span, from a random history of asking and refunds.
TEST(TokenBucket, NeverGivesMoreThanCapacityAndRateTimesSpan) {
  const Spec spec = per(60s, 7, 5);
  std::mt19937_64 random(7);
  TokenBucket state = TokenBucket::fresh(spec);
  std::vector<Taken> taken;
  TimePoint now = at(days{1});
  for (int i = 0; i < 20'000; ++i) {
    now += Duration{static_cast<std::int64_t>(random() % 9'000'000)};
    state.advance(spec, now);
    const auto cost = static_cast<std::int64_t>(random() % 4);
    if (state.check(spec, cost, now).verdict != Verdict::fits) continue;
    const Charge charge = state.charge(spec, cost);
    const std::int64_t kept = random() % 3 == 0 ? cost / 2 : cost;
    state.settle(spec, charge, kept);
    taken.push_back({now, kept});
  }
  for (std::size_t first = 0; first < taken.size(); ++first) {
    std::int64_t sum = 0;
    for (std::size_t last = first; last < std::min(first + 50, taken.size()); ++last) {
      sum += taken[last].amount;
      const std::int64_t span = (taken[last].when - taken[first].when).count();
      ASSERT_LE((sum - 5) * 60'000'000, 7 * span);
    }
  }
}

// Another quota or burst may count in other ticks; the state was made under the old ones.
TEST(TokenBucket, AnotherTickNeverOverflowsTheState) {
  std::vector<Spec> specs;
  for (const std::int64_t quota : {0L, 1L, 10L, 300'000L, 4'503'599'627L, 4'503'599'628L,
                                   1'000'000'000'000L, 4'503'599'627'370L}) {
    specs.push_back(per(1s, quota));
    specs.push_back(per(1s, quota, 1));
    specs.push_back(per(1s, 1, quota));
  }
  for (const Spec& old : specs) {
    for (const Spec& spec : specs) {
      for (const std::int64_t taken : {std::int64_t{0}, old.capacity / 2, kMaxQuantity}) {
        for (const Duration pause :
             {Duration{0}, Duration{1}, Duration{1s}, Duration{days{9'000}}}) {
          TokenBucket state = after_taking(old, taken, at(50s));
          state.rest = (old.window_ticks - 1) & TokenBucket::kRestBits;
          const TimePoint now = at(50s) + pause;
          state.advance(spec, now);
          EXPECT_LE(state.level, spec.capacity);
          EXPECT_GE(state.level, spec.capacity - spec.max_level);
          EXPECT_GE(state.rest, 0);
          EXPECT_LT(state.rest, spec.window_ticks);
          const Reading reading = state.read(spec, now);
          EXPECT_GE(reading.remaining, 0);
          EXPECT_GE(reading.reset, Duration::zero());
          for (const std::int64_t cost : {std::int64_t{1}, spec.capacity}) {
            const Check check = state.check(spec, cost, now);
            EXPECT_EQ(check.verdict == Verdict::refused, check.wait > Duration::zero());
            if (check.wait < Duration{days{100'000}}) {
              (void)expect_exact_wait(state, spec, cost, now);
            }
          }
          state.settle(spec, {0, TimePoint{}}, kMaxQuantity);
          EXPECT_GE(state.level, spec.capacity - spec.max_level);
          EXPECT_GE(state.read(spec, now).reset, Duration::zero());
        }
      }
    }
  }
}

}  // namespace
}  // namespace stint::limit
