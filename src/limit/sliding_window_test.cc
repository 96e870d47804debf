#include "limit/sliding_window.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>

#include "limit/step_testing.h"

namespace stint::limit {
namespace {

using namespace std::chrono_literals;
using std::chrono::days;

Spec per(Duration window, std::int64_t quota) {
  return spec_of(requests_per(window, quota, Algorithm::sliding_window));
}

// In the window that starts at 60 s.
SlidingWindow counted(std::int64_t previous, std::int64_t current) {
  return {at(60s), current, previous};
}

TEST(SlidingWindow, WeighsThePreviousWindowByWhatIsStillCoveredRoundedUp) {
  const Spec spec = per(60s, 10);
  EXPECT_EQ(counted(10, 0).weight(spec, at(60s)), 10);
  EXPECT_EQ(counted(10, 0).weight(spec, at(75s)), 8);  // 7.5
  EXPECT_EQ(counted(10, 0).weight(spec, at(90s)), 5);
  EXPECT_EQ(counted(10, 0).weight(spec, at(90s + 1us)), 5);
  EXPECT_EQ(counted(10, 0).weight(spec, at(90s - 1us)), 6);
  EXPECT_EQ(counted(10, 0).weight(spec, at(120s - 1us)), 1);
  EXPECT_EQ(counted(0, 10).weight(spec, at(75s)), 0);
}

// The window is 1,000 ticks of 1 ms and a microsecond, which is no tick more.
TEST(SlidingWindow, WeighsThePreviousWindowNoMoreThanOnce) {
  const Spec spec = per(1'000'001us, 1'000'000'000'000);
  const SlidingWindow state{at(1'000'001us), 0, 1'000'000'000'000};
  EXPECT_EQ(state.weight(spec, at(1'000'001us)), 1'000'000'000'000);
  EXPECT_EQ(state.weight(spec, at(1'000'002us)), 1'000'000'000'000);
  EXPECT_EQ(state.weight(spec, at(1'001'002us)), 999'000'000'000);
}

TEST(SlidingWindow, MovesTheCurrentCountToThePreviousWindowAndThenForgetsIt) {
  const Spec spec = per(60s, 10);
  SlidingWindow state = counted(4, 7);
  state.advance(spec, at(120s - 1us));
  EXPECT_EQ(state.previous, 4);
  EXPECT_EQ(state.current, 7);
  state.advance(spec, at(120s));
  EXPECT_EQ(state.previous, 7);
  EXPECT_EQ(state.current, 0);
  state.advance(spec, at(180s));
  EXPECT_EQ(state.previous, 0);
}

TEST(SlidingWindow, ForgetsBothCountsAfterTwoWindows) {
  const Spec spec = per(60s, 10);
  SlidingWindow state = counted(4, 7);
  state.advance(spec, at(180s));
  EXPECT_EQ(state.read(spec, at(180s)), (Reading{10, 0s}));
}

TEST(SlidingWindow, OfQuotaOneAdmitsTheFirstAndRefusesTheSecond) {
  const Spec spec = per(1s, 1);
  SlidingWindow state;
  state.advance(spec, at(7s));
  EXPECT_EQ(state.check(spec, 1, at(7s)), kFits);
  EXPECT_EQ(state.charge(spec, 1), (Charge{1, at(7s)}));
  EXPECT_EQ(state.check(spec, 1, at(7s)), refused_for(2s));
}

TEST(SlidingWindow, OfQuotaZeroNeverFits) {
  const Spec spec = per(60s, 0);
  EXPECT_EQ(counted(0, 0).check(spec, 0, at(60s)), kNeverFits);
  EXPECT_EQ(counted(0, 0).check(spec, 1, at(60s)), kNeverFits);
  EXPECT_EQ(counted(0, 0).read(spec, at(60s)), (Reading{0, 0s}));
}

TEST(SlidingWindow, CostAboveTheQuotaNeverFits) {
  const Spec spec = per(60s, 10);
  EXPECT_EQ(counted(0, 0).check(spec, 10, at(60s)), kFits);
  EXPECT_EQ(counted(0, 0).check(spec, 11, at(60s)), kNeverFits);
  EXPECT_EQ(counted(0, 0).check(spec, kMaxQuantity, at(60s)), kNeverFits);
}

TEST(SlidingWindow, CostOfZeroFitsUntilMoreThanTheQuotaIsUsed) {
  const Spec spec = per(60s, 10);
  EXPECT_EQ(counted(0, 10).check(spec, 0, at(60s)), kFits);
  EXPECT_EQ(counted(10, 0).check(spec, 0, at(60s)), kFits);
  // 11 in the window that follows weigh 10 from 6/66 of it on: at 120 s + 5.454545... s.
  EXPECT_EQ(counted(0, 11).check(spec, 0, at(60s)), refused_for(60s + 5'454'546us));
}

TEST(SlidingWindow, WaitsUntilThePreviousWindowWeighsLess) {
  const Spec spec = per(60s, 10);
  // At 75 s 10 weigh 8; 7 remain to be weighed from 42 s before the end on.
  EXPECT_EQ(counted(10, 0).check(spec, 2, at(75s)), kFits);
  EXPECT_EQ(counted(10, 0).check(spec, 3, at(75s)), refused_for(3s));
  EXPECT_EQ(counted(10, 4).check(spec, 6, at(75s)), refused_for(45s));
}

TEST(SlidingWindow, WaitsIntoTheNextWindowForWhatTheCurrentOneHolds) {
  const Spec spec = per(60s, 10);
  // From 120 s on the 10 are the previous count: 9 at 126 s; all of them go at 180 s.
  EXPECT_EQ(counted(0, 10).check(spec, 1, at(65s)), refused_for(61s));
  EXPECT_EQ(counted(0, 10).check(spec, 10, at(65s)), refused_for(115s));
  EXPECT_EQ(counted(0, 3).check(spec, 8, at(65s)), refused_for(75s));
}

TEST(SlidingWindow, WaitIsExactForEveryQuotaCostStateAndPhase) {
  int refusals = 0;
  for (const Duration window : {Duration{1ms}, Duration{3s}, Duration{60s}, Duration{999'983us},
                                Duration{days{1}}, Duration{days{366}}}) {
    for (const std::int64_t quota : {1L, 2L, 7L, 60L, 1'000L, 99'991L}) {
      const auto compiled = compile(requests_per(window, quota, Algorithm::sliding_window));
      if (!compiled) continue;
      const TimePoint start = align(at(days{20'000}), window);
      for (const std::int64_t cost : {std::int64_t{1}, quota / 2 + 1, quota}) {
        for (const Duration phase : {Duration{0}, Duration{1}, window / 3, window - 1us}) {
          for (const std::int64_t previous : {std::int64_t{0}, quota / 2, quota, 2 * quota - 1}) {
            for (const std::int64_t current : {std::int64_t{0}, quota / 3, quota, 2 * quota}) {
              refusals += expect_exact_wait(SlidingWindow{start, current, previous}, *compiled,
                                            cost, start + phase);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(refusals, 3'000);
}

TEST(SlidingWindow, WaitIsExactWhereTicksAreCoarse) {
  int refusals = 0;
  for (const Duration window : {Duration{1s}, Duration{1'000'001us}, Duration{1'000'999us}}) {
    for (const std::int64_t quota : {4'503'599'628L, 1'000'000'000'000L, 4'499'000'000'000L}) {
      const Spec spec = per(window, quota);
      ASSERT_GT(spec.tick, 1us);
      const TimePoint start = align(at(days{20'000}), window);
      for (const std::int64_t cost : {std::int64_t{1}, quota / 2 + 1, quota}) {
        for (const Duration phase : {Duration{0}, Duration{777}, window / 3, window - 1us}) {
          for (const std::int64_t previous : {std::int64_t{1}, quota, 2 * quota - 1}) {
            for (const std::int64_t current : {std::int64_t{0}, quota / 3, 2 * quota}) {
              refusals += expect_exact_wait(SlidingWindow{start, current, previous}, spec, cost,
                                            start + phase);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(refusals, 500);
}

// Counted anew from the list of what was admitted, not from the state.
TEST(SlidingWindow, WeightedCountNeverExceedsTheQuota) {
  const Spec spec = per(60s, 10);
  std::mt19937_64 random(7);
  SlidingWindow state;
  std::map<std::int64_t, std::int64_t> admitted;  // by number of the window
  for (TimePoint now = at(days{1}); now < at(days{1} + 4h);) {
    now += Duration{static_cast<std::int64_t>(random() % 9'000'000)};
    const auto cost = static_cast<std::int64_t>(random() % 4);
    state.advance(spec, now);
    if (state.check(spec, cost, now).verdict != Verdict::fits) continue;
    (void)state.charge(spec, cost);
    const std::int64_t count = now.time_since_epoch().count();
    const std::int64_t number = count / 60'000'000;
    admitted[number] += cost;
    const std::int64_t left = (number + 1) * 60'000'000 - count;
    ASSERT_LE(admitted[number] * 60'000'000 + admitted[number - 1] * left, 10 * 60'000'000);
  }
  EXPECT_GT(admitted.size(), 200U);
}

// 300 fit each millisecond while the previous window leaves; in its last one 300 are still there.
TEST(SlidingWindow, GivesTheRateHoweverOftenItIsAsked) {
  EXPECT_EQ(total(take_all(SlidingWindow{}, per(1s, 300'000), at(50s), 1ms, 10'000)),
            300'000 + 9 * 299'700);
  EXPECT_EQ(total(take_all(SlidingWindow{}, per(1s, 700'000), at(50s), 1ms, 10'000)),
            700'000 + 9 * 699'300);
  EXPECT_EQ(total(take_all(SlidingWindow{}, per(1s, 1'000'000), at(50s), 1ms, 10'000)),
            1'000'000 + 5 * 999'000 + 4 * 999'001);  // 999,000 weigh 999 in the end
  const auto odd = total(take_all(SlidingWindow{}, per(1s, 1'000'000), at(50s), 13us, 5 * 76'923));
  EXPECT_GE(odd, 4'950'000);
  EXPECT_LE(odd, 5'000'000);
}

// The last unit of the previous window weighs until that window has gone entirely.
TEST(SlidingWindow, GivesSteadyDemandOneLessThanTheQuota) {
  EXPECT_EQ(total(take_all(SlidingWindow{}, per(3s, 7), at(51s), 1ms, 300'000)), 7 + 99 * 6);
  EXPECT_EQ(total(take_all(SlidingWindow{}, per(1s, 100), at(50s), 1ms, 10'000)), 100 + 9 * 99);
}

TEST(SlidingWindow, OfQuotaOneLeavesEveryOtherWindowToSteadyDemand) {
  const TimePoint start = at(days{30} * 600);
  EXPECT_EQ(take_all(SlidingWindow{}, per(days{30}, 1), start, 1s, 2 * 2'592'000 + 1),
            (std::vector<Taken>{{start, 1}, {start + days{60}, 1}}));
  EXPECT_EQ(take_all(SlidingWindow{}, per(days{1}, 1), start, 1min, 2 * 1'440 + 1),
            (std::vector<Taken>{{start, 1}, {start + days{2}, 1}}));
}

TEST(SlidingWindow, IsWholeAfterAnyIdleTime) {
  const Spec spec = per(1s, 1'000'000'000);
  for (const Duration idle : {Duration{12h}, Duration{days{30}}, Duration{days{36'525}}}) {
    SlidingWindow state;
    state.advance(spec, at(50s));
    (void)state.charge(spec, 1);
    state.advance(spec, at(50s) + idle);
    EXPECT_EQ(state.check(spec, 1'000'000'000, at(50s) + idle), kFits);
    (void)state.charge(spec, 1);
    EXPECT_EQ(state.read(spec, at(50s) + idle), (Reading{999'999'999, 2s}));
  }
}

TEST(SlidingWindow, StopsCountingWhereProductsWouldOverflow) {
  const Spec spec = per(60s, 10);  // (2^53 - 1) / 60,000,000 = 150,119,987.6
  SlidingWindow state;
  state.advance(spec, at(120s));
  (void)state.charge(spec, kMaxQuantity);
  (void)state.charge(spec, kMaxQuantity);
  EXPECT_EQ(state.current, 150'119'987);
  state.settle(spec, {0, at(120s)}, kMaxQuantity);
  EXPECT_EQ(state.current, 150'119'987);
  EXPECT_TRUE(expect_exact_wait(state, spec, 1, at(120s)));
  state.advance(spec, at(180s));
  EXPECT_EQ(state.weight(spec, at(180s)), 150'119'987);
  EXPECT_EQ(state.read(spec, at(180s)), (Reading{0, 60s}));
}

TEST(SlidingWindow, ClockSetBackGivesNothingAwayAndTakesNothing) {
  const Spec spec = per(60s, 10);
  for (const Duration step : {Duration{11s}, Duration{1h}, Duration{days{365}}}) {
    SlidingWindow state;
    state.advance(spec, at(days{1000}) + 5s);
    (void)state.charge(spec, 7);
    const TimePoint now = at(days{1000}) + 5s - step;
    state.advance(spec, now);
    EXPECT_EQ(state.read(spec, now).remaining, 3);
    EXPECT_EQ(state.check(spec, 3, now), kFits);
    EXPECT_EQ(state.check(spec, 4, now).verdict, Verdict::refused);
    EXPECT_LE(state.check(spec, 4, now).wait, 120s);
    EXPECT_TRUE(expect_exact_wait(state, spec, 4, now));
  }
}

TEST(SlidingWindow, SameSecondTwiceCountsOnce) {
  const Spec spec = per(1s, 10);
  SlidingWindow state;
  state.advance(spec, at(100s));
  (void)state.charge(spec, 3);
  state.advance(spec, at(101s));
  state.advance(spec, at(100s));  // a leap second, repeated
  EXPECT_EQ(state.read(spec, at(100s)).remaining, 7);
  EXPECT_EQ(state.check(spec, 7, at(100s)), kFits);
}

TEST(SlidingWindow, ClockSetForwardGivesOneMoreWindowAtMost) {
  const Spec spec = per(60s, 10);
  SlidingWindow state = counted(10, 0);
  state.advance(spec, at(60s + 1h));
  EXPECT_EQ(state.read(spec, at(60s + 1h)).remaining, 10);
  (void)state.charge(spec, 10);
  state.advance(spec, at(60s));
  EXPECT_EQ(state.read(spec, at(60s)).remaining, 0);
}

TEST(SlidingWindow, RefundGoesToTheWindowThatWasCharged) {
  const Spec spec = per(60s, 100);
  SlidingWindow state = counted(0, 50);
  const Charge charge = state.charge(spec, 40);
  state.settle(spec, charge, 10);
  EXPECT_EQ(state.current, 60);
}

TEST(SlidingWindow, RefundGoesToThePreviousWindowIfThatWasCharged) {
  const Spec spec = per(60s, 100);
  SlidingWindow state = counted(0, 50);
  const Charge charge = state.charge(spec, 40);
  state.advance(spec, at(125s));
  (void)state.charge(spec, 5);
  state.settle(spec, charge, 10);
  EXPECT_EQ(state.previous, 60);
  EXPECT_EQ(state.current, 5);
}

TEST(SlidingWindow, RefundToAWindowThatNoLongerCountsIsDropped) {
  const Spec spec = per(60s, 100);
  SlidingWindow state = counted(0, 50);
  const Charge charge = state.charge(spec, 40);
  state.advance(spec, at(125s));
  (void)state.charge(spec, 20);
  state.advance(spec, at(185s));
  (void)state.charge(spec, 30);
  state.settle(spec, charge, 10);
  EXPECT_EQ(state.previous, 20);
  EXPECT_EQ(state.current, 30);
}

TEST(SlidingWindow, OverspendGoesToTheCurrentWindow) {
  const Spec spec = per(60s, 100);
  SlidingWindow state = counted(0, 0);
  const Charge charge = state.charge(spec, 40);
  state.advance(spec, at(125s));
  state.settle(spec, charge, 65);
  EXPECT_EQ(state.previous, 40);
  EXPECT_EQ(state.current, 25);
}

TEST(SlidingWindow, RefundLeavesNoLessThanNothingUsed) {
  const Spec spec = per(60s, 100);
  SlidingWindow state = counted(3, 5);
  state.settle(spec, {40, at(60s)}, 0);
  state.settle(spec, {40, at(0s)}, 0);
  EXPECT_EQ(state.current, 0);
  EXPECT_EQ(state.previous, 0);
  EXPECT_EQ(state.read(spec, at(60s)), (Reading{100, 0s}));
}

TEST(SlidingWindow, IsWholeAndSpentWhenNoWindowThatCountsIsLeft) {
  const Spec spec = per(60s, 10);
  EXPECT_EQ(counted(0, 0).spent_at(spec), kAlwaysSpent);
  EXPECT_EQ(counted(1, 0).spent_at(spec), at(120s));
  EXPECT_EQ(counted(1, 1).spent_at(spec), at(180s));
  EXPECT_EQ(counted(1, 0).read(spec, at(75s)), (Reading{9, 45s}));
  EXPECT_EQ(counted(0, 1).read(spec, at(75s)), (Reading{9, 105s}));
}

TEST(SlidingWindow, QuotaLoweredBelowUseLeavesNothing) {
  const Spec lowered = per(60s, 50);
  EXPECT_EQ(counted(0, 80).read(lowered, at(60s)), (Reading{0, 120s}));
  EXPECT_EQ(counted(0, 80).check(lowered, 1, at(60s)).verdict, Verdict::refused);
  EXPECT_TRUE(expect_exact_wait(counted(0, 80), lowered, 50, at(60s)));
}

TEST(SlidingWindow, QuotaRaisedIsThereAtOnce) {
  const Spec raised = per(60s, 150);
  EXPECT_EQ(counted(0, 100).read(raised, at(60s)).remaining, 50);
  EXPECT_EQ(counted(0, 100).check(raised, 50, at(60s)), kFits);
}

// Another quota may count in other ticks; the counters were made under the old ones.
TEST(SlidingWindow, AnotherTickNeverOverflowsWhatWasCounted) {
  constexpr std::int64_t kQuotas[] = {
      1, 10, 300'000, 4'503'599'627, 4'503'599'628, 1'000'000'000'000, 4'503'599'627'370};
  for (const std::int64_t before : kQuotas) {
    const Spec old = per(1s, before);
    for (const std::int64_t after : kQuotas) {
      const Spec spec = per(1s, after);
      for (const Duration pause : {Duration{0}, Duration{1}, Duration{500ms}, Duration{1s}}) {
        SlidingWindow state;
        state.advance(old, at(49s));
        (void)state.charge(old, kMaxQuantity);
        state.advance(old, at(50s));
        const Charge charge = state.charge(old, kMaxQuantity);
        const TimePoint now = at(50s) + pause;
        state.advance(spec, now);
        EXPECT_LE(state.current, spec.max_level);
        EXPECT_LE(state.previous, spec.max_level);
        const std::int64_t remaining = state.read(spec, now).remaining;
        EXPECT_GE(remaining, 0);
        EXPECT_LE(remaining, after);
        EXPECT_EQ(expect_exact_wait(state, spec, 1, now), remaining == 0);
        EXPECT_TRUE(expect_exact_wait(state, spec, after, now));
        state.settle(spec, charge, 0);
        state.settle(spec, {0, now}, kMaxQuantity);
        EXPECT_LE(state.current, spec.max_level);
        EXPECT_GE(state.previous, 0);
      }
    }
  }
}

}  // namespace
}  // namespace stint::limit
