#include "limit/fixed_window.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "limit/step_testing.h"

namespace stint::limit {
namespace {

using namespace std::chrono_literals;
using std::chrono::days;
using std::chrono::sys_days;
using std::chrono::year;

Spec per(Duration window, std::int64_t quota) { return spec_of(requests_per(window, quota)); }

// A window with `used` taken at `now`.
FixedWindow used(const Spec& spec, std::int64_t amount, TimePoint now) {
  FixedWindow state;
  state.advance(spec, now);
  (void)state.charge(spec, amount);
  return state;
}

TEST(FixedWindow, StartsWithTheWallClock) {
  EXPECT_EQ(align(at(125s), 60s), at(120s));
  EXPECT_EQ(align(at(120s), 60s), at(120s));
  EXPECT_EQ(align(at(120s - 1us), 60s), at(60s));
  EXPECT_EQ(align(at(20s), 7s), at(14s));
  EXPECT_EQ(align(at(0s), 60s), at(0s));
  EXPECT_EQ(align(at(-1us), 60s), at(-60s));
  EXPECT_EQ(align(at(-60s), 60s), at(-60s));
}

TEST(FixedWindow, OfADayStartsAtMidnightUtc) {
  const TimePoint midnight = sys_days{year{2028} / 2 / 29};
  EXPECT_EQ(align(midnight + 23h + 59min + 59s + 999'999us, days{1}), midnight);
  EXPECT_EQ(align(midnight, days{1}), midnight);
}

TEST(FixedWindow, AdmitsTheQuotaAndNoMore) {
  const Spec spec = per(60s, 3);
  FixedWindow state;
  state.advance(spec, at(125s));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(state.check(spec, 1, at(125s)), kFits);
    EXPECT_EQ(state.charge(spec, 1), (Charge{1, at(120s)}));
  }
  EXPECT_EQ(state.check(spec, 1, at(125s)), refused_for(55s));
  state.advance(spec, at(180s));
  EXPECT_EQ(state.check(spec, 3, at(180s)), kFits);
}

TEST(FixedWindow, OfQuotaOneAdmitsTheFirstAndRefusesTheSecond) {
  const Spec spec = per(1s, 1);
  FixedWindow state;
  state.advance(spec, at(7s));
  EXPECT_EQ(state.check(spec, 1, at(7s)), kFits);
  (void)state.charge(spec, 1);
  EXPECT_EQ(state.check(spec, 1, at(7s)), refused_for(1s));
}

TEST(FixedWindow, OfQuotaZeroNeverFits) {
  const Spec spec = per(60s, 0);
  FixedWindow state;
  state.advance(spec, at(125s));
  EXPECT_EQ(state.check(spec, 0, at(125s)), kNeverFits);
  EXPECT_EQ(state.check(spec, 1, at(125s)), kNeverFits);
  EXPECT_EQ(state.read(spec, at(125s)), (Reading{0, 0s}));
}

TEST(FixedWindow, CostAboveTheQuotaNeverFits) {
  const Spec spec = per(60s, 10);
  const FixedWindow state = used(spec, 0, at(125s));
  EXPECT_EQ(state.check(spec, 10, at(125s)), kFits);
  EXPECT_EQ(state.check(spec, 11, at(125s)), kNeverFits);
  EXPECT_EQ(state.check(spec, kMaxQuantity, at(125s)), kNeverFits);
}

TEST(FixedWindow, CostOfZeroFitsUntilMoreThanTheQuotaIsUsed) {
  const Spec spec = per(60s, 10);
  EXPECT_EQ(used(spec, 10, at(125s)).check(spec, 0, at(125s)), kFits);
  EXPECT_EQ(used(spec, 11, at(125s)).check(spec, 0, at(125s)), refused_for(55s));
}

TEST(FixedWindow, ReadsWhatIsLeftAndWhenItIsWhole) {
  const Spec spec = per(60s, 10);
  EXPECT_EQ(used(spec, 0, at(125s)).read(spec, at(125s)), (Reading{10, 0s}));
  EXPECT_EQ(used(spec, 3, at(125s)).read(spec, at(125s)), (Reading{7, 55s}));
  EXPECT_EQ(used(spec, 99, at(125s)).read(spec, at(125s)), (Reading{0, 55s}));
}

TEST(FixedWindow, IsSpentWhenItsWindowEndsAndAlwaysWhenUnused) {
  const Spec spec = per(60s, 10);
  EXPECT_EQ(used(spec, 1, at(125s)).spent_at(spec), at(180s));
  EXPECT_EQ(used(spec, 0, at(125s)).spent_at(spec), kAlwaysSpent);
}

TEST(FixedWindow, WaitIsExactForEveryQuotaCostAndPhase) {
  int refusals = 0;
  for (const Duration window : {Duration{1ms}, Duration{3s}, Duration{60s}, Duration{days{1}},
                                Duration{days{30}}, Duration{days{366}}, Duration{999'983us}}) {
    for (const std::int64_t quota :
         {1L, 2L, 7L, 60L, 300'000L, 2'147'483'648L, 9'007'199'254'740'991L}) {
      const Spec spec = per(window, quota);
      for (const std::int64_t cost : {std::int64_t{1}, quota / 2 + 1, quota}) {
        for (const Duration phase : {Duration{0}, Duration{1}, window / 3, window - 1us}) {
          const TimePoint now = at(5 * window + phase);
          for (const std::int64_t taken : {quota - cost + 1, quota, quota + 5}) {
            refusals += expect_exact_wait(used(spec, taken, now), spec, cost, now);
          }
        }
      }
    }
  }
  EXPECT_EQ(refusals, 7 * 7 * 3 * 4 * 3);
}

TEST(FixedWindow, GivesTheQuotaEachWindowHoweverOftenItIsAsked) {
  EXPECT_EQ(total(take_all(FixedWindow{}, per(1s, 300'000), at(50s), 1ms, 10'000)), 3'000'000);
  EXPECT_EQ(total(take_all(FixedWindow{}, per(1s, 1'000'000), at(50s), 997us, 10'000)), 10'000'000);
  EXPECT_EQ(total(take_all(FixedWindow{}, per(3s, 7), at(51s), 7'919us, 37'883)), 700);
}

TEST(FixedWindow, GivesOnePerThirtyDaysWhenAskedEverySecond) {
  const TimePoint start = at(days{30} * 600);
  const auto taken = take_all(FixedWindow{}, per(days{30}, 1), start, 1s, 2 * 2'592'000 + 1);
  EXPECT_EQ(taken, (std::vector<Taken>{{start, 1}, {start + days{30}, 1}, {start + days{60}, 1}}));
}

TEST(FixedWindow, IsWholeAfterAnyIdleTime) {
  const Spec spec = per(1s, 1'000'000'000);
  for (const Duration idle : {Duration{12h}, Duration{days{30}}, Duration{days{36'525}}}) {
    FixedWindow state = used(spec, 1, at(50s));
    state.advance(spec, at(50s) + idle);
    EXPECT_EQ(state.check(spec, 1'000'000'000, at(50s) + idle), kFits);
    (void)state.charge(spec, 1);
    EXPECT_EQ(state.read(spec, at(50s) + idle), (Reading{999'999'999, 1s}));
  }
}

TEST(FixedWindow, CountsTheLargestQuotaExactlyAndStopsThere) {
  const Spec spec = per(60s, kMaxQuantity);
  FixedWindow state = used(spec, 9'007'199'254'740'990, at(120s));
  EXPECT_EQ(state.check(spec, 1, at(120s)), kFits);
  EXPECT_EQ(state.check(spec, 2, at(120s)), refused_for(60s));
  (void)state.charge(spec, kMaxQuantity);
  (void)state.charge(spec, kMaxQuantity);
  EXPECT_EQ(state.used, 9'007'199'254'740'991);
  state.settle(spec, {0, at(120s)}, kMaxQuantity);
  EXPECT_EQ(state.used, 9'007'199'254'740'991);
  EXPECT_EQ(state.read(spec, at(120s)).remaining, 0);
}

TEST(FixedWindow, ClockSetBackGivesNothingAwayAndTakesNothing) {
  const Spec spec = per(60s, 10);
  for (const Duration step : {Duration{11s}, Duration{1h}, Duration{days{365}}}) {
    const TimePoint now = at(days{1000}) + 5s - step;
    FixedWindow state = used(spec, 7, at(days{1000}) + 5s);
    state.advance(spec, now);
    EXPECT_EQ(state.read(spec, now).remaining, 3);
    EXPECT_EQ(state.check(spec, 3, now), kFits);
    EXPECT_EQ(state.check(spec, 4, now).verdict, Verdict::refused);
    EXPECT_LE(state.check(spec, 4, now).wait, 60s);
    EXPECT_TRUE(expect_exact_wait(state, spec, 4, now));
  }
}

TEST(FixedWindow, SameSecondTwiceIsOneWindow) {
  const Spec spec = per(1s, 10);
  FixedWindow state = used(spec, 7, at(100s));
  state.advance(spec, at(101s));
  (void)state.charge(spec, 7);
  state.advance(spec, at(100s));  // a leap second, repeated
  EXPECT_EQ(state.read(spec, at(100s)), (Reading{3, 1s}));
  state.advance(spec, at(101s));
  EXPECT_EQ(state.read(spec, at(101s)), (Reading{10, 0s}));
}

TEST(FixedWindow, ClockSetForwardGivesOneMoreWindowAtMost) {
  const Spec spec = per(60s, 10);
  FixedWindow state = used(spec, 10, at(120s));
  state.advance(spec, at(120s + 1h));
  EXPECT_EQ(state.read(spec, at(120s + 1h)).remaining, 10);
  (void)state.charge(spec, 10);
  state.advance(spec, at(120s));
  EXPECT_EQ(state.read(spec, at(120s)).remaining, 0);
}

TEST(FixedWindow, RefundGoesToTheWindowThatWasCharged) {
  const Spec spec = per(60s, 100);
  FixedWindow state = used(spec, 50, at(125s));
  const Charge charge = state.charge(spec, 40);
  state.settle(spec, charge, 10);
  EXPECT_EQ(state.used, 60);
}

TEST(FixedWindow, RefundToAnEarlierWindowIsDropped) {
  const Spec spec = per(60s, 100);
  FixedWindow state = used(spec, 0, at(125s));
  const Charge charge = state.charge(spec, 40);
  state.advance(spec, at(185s));
  (void)state.charge(spec, 50);
  state.settle(spec, charge, 10);
  EXPECT_EQ(state.used, 50);
}

TEST(FixedWindow, OverspendGoesToTheCurrentWindow) {
  const Spec spec = per(60s, 100);
  FixedWindow state = used(spec, 0, at(125s));
  const Charge charge = state.charge(spec, 40);
  state.advance(spec, at(185s));
  state.settle(spec, charge, 65);
  EXPECT_EQ(state.used, 25);
  EXPECT_EQ(state.read(spec, at(185s)).remaining, 75);
}

TEST(FixedWindow, RefundLeavesNoLessThanNothingUsed) {
  const Spec spec = per(60s, 100);
  FixedWindow state = used(spec, 5, at(125s));
  state.settle(spec, {40, at(120s)}, 0);
  EXPECT_EQ(state.used, 0);
  EXPECT_EQ(state.read(spec, at(125s)), (Reading{100, 0s}));
}

TEST(FixedWindow, QuotaLoweredBelowUseLeavesNothing) {
  const FixedWindow state = used(per(60s, 100), 80, at(125s));
  const Spec lowered = per(60s, 50);
  EXPECT_EQ(state.read(lowered, at(125s)), (Reading{0, 55s}));
  EXPECT_EQ(state.check(lowered, 1, at(125s)), refused_for(55s));
  EXPECT_TRUE(expect_exact_wait(state, lowered, 50, at(125s)));
}

TEST(FixedWindow, QuotaRaisedIsThereAtOnce) {
  const FixedWindow state = used(per(60s, 100), 100, at(125s));
  const Spec raised = per(60s, 150);
  EXPECT_EQ(state.read(raised, at(125s)), (Reading{50, 55s}));
  EXPECT_EQ(state.check(raised, 50, at(125s)), kFits);
  EXPECT_EQ(state.check(raised, 51, at(125s)), refused_for(55s));
}

}  // namespace
}  // namespace stint::limit
