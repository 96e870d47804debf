#include "limit/sliding_log.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "limit/step_testing.h"

namespace stint::limit {
namespace {

using namespace std::chrono_literals;
using std::chrono::days;

Spec per(Duration window, std::int64_t quota) {
  return spec_of(requests_per(window, quota, Algorithm::sliding_log));
}

constexpr base::Id id(std::uint64_t number) { return {7, number}; }

// The log with the shape of the other algorithms: remembers the instant, makes up the ids.
struct Log {
  SlidingLog log;
  TimePoint now{};
  std::uint64_t last_id = 1'000;

  void advance(const Spec& spec, TimePoint to) {
    log.advance(spec, to);
    now = to;
  }
  Check check(const Spec& spec, std::int64_t need, TimePoint when) const {
    return log.check(spec, need, when);
  }
  Charge charge(const Spec&, std::int64_t amount) { return log.charge(amount, id(++last_id), now); }
  Reading read(const Spec& spec, TimePoint when) const { return log.read(spec, when); }
};

// Entries of one each, at these instants.
Log filled(const Spec& spec, std::initializer_list<TimePoint> instants) {
  Log state;
  for (const TimePoint instant : instants) {
    state.advance(spec, instant);
    (void)state.charge(spec, 1);
  }
  return state;
}

TEST(SlidingLog, AdmitsTheQuotaInAnyWindow) {
  const Spec spec = per(60s, 3);
  Log state = filled(spec, {at(100s), at(120s), at(130s)});
  EXPECT_EQ(state.check(spec, 1, at(130s)), refused_for(30s));
  state.advance(spec, at(160s - 1us));
  EXPECT_EQ(state.check(spec, 1, at(160s - 1us)), refused_for(1us));
  state.advance(spec, at(160s));
  EXPECT_EQ(state.check(spec, 1, at(160s)), kFits);
  EXPECT_EQ(state.check(spec, 2, at(160s)), refused_for(20s));
  EXPECT_EQ(state.check(spec, 3, at(160s)), refused_for(30s));
}

TEST(SlidingLog, OfQuotaOneAdmitsTheFirstAndRefusesTheSecond) {
  const Spec spec = per(1s, 1);
  Log state;
  state.advance(spec, at(7s));
  EXPECT_EQ(state.check(spec, 1, at(7s)), kFits);
  EXPECT_EQ(state.charge(spec, 1), (Charge{1, TimePoint{}}));
  EXPECT_EQ(state.check(spec, 1, at(7s)), refused_for(1s));
}

TEST(SlidingLog, OfQuotaZeroNeverFits) {
  const Spec spec = per(60s, 0);
  EXPECT_EQ(SlidingLog{}.check(spec, 0, at(100s)), kNeverFits);
  EXPECT_EQ(SlidingLog{}.check(spec, 1, at(100s)), kNeverFits);
  EXPECT_EQ(SlidingLog{}.read(spec, at(100s)), (Reading{0, 0s}));
}

TEST(SlidingLog, CostAboveTheQuotaNeverFits) {
  const Spec spec = per(60s, 10);
  EXPECT_EQ(SlidingLog{}.check(spec, 10, at(100s)), kFits);
  EXPECT_EQ(SlidingLog{}.check(spec, 11, at(100s)), kNeverFits);
  EXPECT_EQ(SlidingLog{}.check(spec, kMaxQuantity, at(100s)), kNeverFits);
}

TEST(SlidingLog, CostOfZeroFitsUntilMoreThanTheQuotaIsUsedAndLeavesNoEntry) {
  const Spec spec = per(60s, 2);
  Log state = filled(spec, {at(100s), at(101s)});
  EXPECT_EQ(state.check(spec, 0, at(101s)), kFits);
  (void)state.charge(spec, 0);
  EXPECT_EQ(state.read(spec, at(101s)), (Reading{0, 60s}));
  EXPECT_EQ(SlidingLog{}.charge(0, id(1), at(101s)), (Charge{0, TimePoint{}}));
  EXPECT_EQ(state.check(per(60s, 1), 0, at(101s)), refused_for(59s));
}

TEST(SlidingLog, ReadsWhatIsLeftAndWhenTheLastEntryLeaves) {
  const Spec spec = per(60s, 5);
  const Log state = filled(spec, {at(100s), at(120s), at(130s)});
  EXPECT_EQ(state.read(spec, at(130s)), (Reading{2, 60s}));
  EXPECT_EQ(state.read(spec, at(140s)), (Reading{2, 50s}));
  EXPECT_EQ(state.log.spent_at(spec), at(190s));
  EXPECT_EQ(SlidingLog{}.spent_at(spec), kAlwaysSpent);
}

TEST(SlidingLog, CountsCostsOfMoreThanOne) {
  const Spec spec = per(60s, 10);
  Log state;
  state.advance(spec, at(100s));
  (void)state.charge(spec, 6);
  state.advance(spec, at(110s));
  (void)state.charge(spec, 3);
  EXPECT_EQ(state.read(spec, at(110s)), (Reading{1, 60s}));
  EXPECT_EQ(state.check(spec, 2, at(110s)), refused_for(50s));
  EXPECT_EQ(state.check(spec, 7, at(110s)), refused_for(50s));
  EXPECT_EQ(state.check(spec, 8, at(110s)), refused_for(60s));
}

TEST(SlidingLog, WaitIsExactForEveryWindowQuotaCostAndPhase) {
  int refusals = 0;
  for (const Duration window :
       {Duration{1ms}, Duration{3s}, Duration{60s}, Duration{days{1}}, Duration{days{366}}}) {
    for (const std::int64_t quota : {1L, 2L, 7L, 60L}) {
      const Spec spec = per(window, quota);
      const TimePoint start = at(days{20'000});
      for (const Duration apart :
           {Duration{0}, Duration{1}, window / (3 * quota), window / quota}) {
        Log state;
        for (std::int64_t i = 0; i < quota; ++i) {
          state.advance(spec, start + i * apart);
          (void)state.charge(spec, 1);
        }
        const TimePoint last = start + (quota - 1) * apart;
        for (const std::int64_t cost : {std::int64_t{1}, quota / 2 + 1, quota}) {
          for (const Duration phase : {Duration{0}, Duration{1}, window / 5, window - 1us}) {
            refusals += expect_exact_wait(state, spec, cost, last + phase);
          }
        }
      }
    }
  }
  EXPECT_GT(refusals, 500);
}

TEST(SlidingLog, NeverHoldsMoreThanTheQuotaInAnySpanOfOneWindow) {
  const Spec spec = per(60s, 10);
  std::mt19937_64 random(7);
  Log state;
  std::vector<Taken> admitted;
  for (TimePoint now = at(days{1}); now < at(days{1} + 4h);) {
    now += Duration{static_cast<std::int64_t>(random() % 9'000'000)};
    const auto cost = static_cast<std::int64_t>(random() % 4);
    state.advance(spec, now);
    std::int64_t in_window = 0;
    for (const Taken& one : admitted) {
      if (one.when + 60s > now) in_window += one.amount;
    }
    ASSERT_EQ(state.check(spec, cost, now) == kFits, in_window + cost <= 10);
    if (in_window + cost > 10) continue;
    (void)state.charge(spec, cost);
    admitted.push_back({now, cost});
  }
  EXPECT_GT(admitted.size(), 1'000U);
}

TEST(SlidingLog, GivesTheQuotaEachWindowHoweverOftenItIsAsked) {
  EXPECT_EQ(total(take_all(Log{}, per(1s, 10'000), at(50s), 1ms, 10'000)), 100'000);
  EXPECT_EQ(total(take_all(Log{}, per(3s, 7), at(50s), 7'919us, 37'883)), 700);
}

TEST(SlidingLog, GivesOnePerThirtyDaysWhenAskedEverySecond) {
  const TimePoint start = at(days{20'000} + 5s);
  EXPECT_EQ(take_all(Log{}, per(days{30}, 1), start, 1s, 2 * 2'592'000 + 1),
            (std::vector<Taken>{{start, 1}, {start + days{30}, 1}, {start + days{60}, 1}}));
}

TEST(SlidingLog, IsWholeAfterAnyIdleTime) {
  const Spec spec = per(1s, 10'000);
  for (const Duration idle : {Duration{12h}, Duration{days{30}}, Duration{days{36'525}}}) {
    Log state = filled(spec, {at(50s)});
    state.advance(spec, at(50s) + idle);
    EXPECT_EQ(state.check(spec, 10'000, at(50s) + idle), kFits);
    (void)state.charge(spec, 1);
    EXPECT_EQ(state.read(spec, at(50s) + idle), (Reading{9'999, 1s}));
  }
}

TEST(SlidingLog, ClockSetBackTakesLaterEntriesAsNow) {
  const Spec spec = per(60s, 10);
  for (const Duration step : {Duration{11s}, Duration{1h}, Duration{days{365}}}) {
    Log state;
    state.advance(spec, at(days{1000}) - 30s);
    (void)state.charge(spec, 2);
    state.advance(spec, at(days{1000}));
    (void)state.charge(spec, 5);
    const TimePoint now = at(days{1000}) - step;
    state.advance(spec, now);
    EXPECT_EQ(state.read(spec, now), (Reading{3, 60s}));
    EXPECT_EQ(state.check(spec, 3, now), kFits);
    EXPECT_EQ(state.check(spec, 4, now).verdict, Verdict::refused);
    EXPECT_LE(state.check(spec, 10, now).wait, 60s);
    EXPECT_TRUE(expect_exact_wait(state, spec, 4, now));
    EXPECT_TRUE(expect_exact_wait(state, spec, 10, now));
  }
}

TEST(SlidingLog, ClockSetBackDoesNotBringBackWhatHasGone) {
  const Spec spec = per(60s, 10);
  Log state = filled(spec, {at(100s), at(101s), at(102s), at(150s), at(151s)});
  state.advance(spec, at(161s));  // two have gone
  EXPECT_EQ(state.read(spec, at(161s)).remaining, 7);
  state.advance(spec, at(50s));
  EXPECT_EQ(state.read(spec, at(50s)), (Reading{7, 60s}));
  state.advance(spec, at(110s));
  EXPECT_EQ(state.read(spec, at(110s)), (Reading{10, 0s}));
}

TEST(SlidingLog, ClockSetForwardGivesOneMoreWindowAtMost) {
  const Spec spec = per(60s, 2);
  Log state = filled(spec, {at(100s), at(100s)});
  state.advance(spec, at(100s + 1h));
  EXPECT_EQ(state.read(spec, at(100s + 1h)).remaining, 2);
  (void)state.charge(spec, 2);
  state.advance(spec, at(100s));
  EXPECT_EQ(state.read(spec, at(100s)).remaining, 0);
}

TEST(SlidingLog, TakesAnEntryAwayByItsId) {
  const Spec spec = per(60s, 5);
  SlidingLog log;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    log.advance(spec, at(Duration{100s} + i * 1s));
    (void)log.charge(1, id(i), at(Duration{100s} + i * 1s));
  }
  log.settle(id(2), 0);
  EXPECT_EQ(log.used(), 2);
  log.settle(id(2), 0);  // once
  EXPECT_EQ(log.used(), 2);
  log.settle(id(9), 0);  // never there
  EXPECT_EQ(log.used(), 2);
  log.settle(id(3), 0);
  EXPECT_EQ(log.read(spec, at(103s)), (Reading{4, 58s}));
  log.settle(id(1), 0);
  EXPECT_EQ(log.spent_at(spec), kAlwaysSpent);
}

TEST(SlidingLog, KeepsAnEntryThatIsNotGivenBackWhole) {
  SlidingLog log;
  (void)log.charge(4, id(1), at(100s));
  log.settle(id(1), 3);
  log.settle(id(1), 4);
  EXPECT_EQ(log.used(), 4);
}

TEST(SlidingLog, DropsTheRefundOfAnEntryThatHasLeft) {
  const Spec spec = per(60s, 5);
  SlidingLog log;
  for (std::uint64_t i = 1; i <= 4; ++i) (void)log.charge(1, id(i), at(Duration{100s} + i * 1s));
  log.advance(spec, at(161s));  // 1 has left, and may still be in memory
  EXPECT_EQ(log.used(), 3);
  log.settle(id(1), 0);
  EXPECT_EQ(log.used(), 3);
}

TEST(SlidingLog, QuotaLoweredBelowUseLeavesNothingAndRaisedIsThereAtOnce) {
  const Log state = filled(per(60s, 3), {at(100s), at(110s), at(120s)});
  const Spec lowered = per(60s, 2);
  EXPECT_EQ(state.read(lowered, at(120s)), (Reading{0, 60s}));
  EXPECT_EQ(state.check(lowered, 1, at(120s)), refused_for(50s));
  EXPECT_TRUE(expect_exact_wait(state, lowered, 2, at(120s)));
  EXPECT_EQ(state.read(per(60s, 5), at(120s)), (Reading{2, 60s}));
  EXPECT_EQ(state.check(per(60s, 5), 2, at(120s)), kFits);
}

}  // namespace
}  // namespace stint::limit
