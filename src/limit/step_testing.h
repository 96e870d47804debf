// What the steps of every algorithm keep, as checks for their unit tests.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <vector>

#include "limit/check.h"
#include "limit/spec.h"

namespace stint::limit {

// An instant, as the time since the epoch.
[[nodiscard]] constexpr TimePoint at(Duration since_epoch) { return TimePoint{since_epoch}; }

// Throws if the limit is invalid, which fails the test.
[[nodiscard]] inline Spec spec_of(const Limit& limit) { return compile(limit).value(); }

// How a failed test shows them.
inline void PrintTo(const Check& check, std::ostream* out) {
  constexpr const char* kVerdicts[] = {"fits", "refused", "never_fits", "skipped"};
  *out << kVerdicts[static_cast<std::size_t>(check.verdict)] << " for " << check.wait.count()
       << " us";
}
inline void PrintTo(const Reading& reading, std::ostream* out) {
  *out << reading.remaining << " left, whole in " << reading.reset.count() << " us";
}

inline constexpr Check kFits{Verdict::fits, Duration{0}};
inline constexpr Check kNeverFits{Verdict::never_fits, Duration{0}};
[[nodiscard]] constexpr Check refused_for(Duration wait) { return {Verdict::refused, wait}; }

// If `need` is refused at `now`: it is refused one microsecond before the wait is over and fits
// when it is, whether or not somebody asked in between. Returns whether it was refused.
template <class State>
[[nodiscard]] bool expect_exact_wait(State state, const Spec& spec, std::int64_t need,
                                     TimePoint now) {
  state.advance(spec, now);
  const Check check = state.check(spec, need, now);
  if (check.verdict != Verdict::refused) return false;
  const auto asked_at = [&](State copy, TimePoint instant) {
    copy.advance(spec, instant);
    return copy.check(spec, need, instant);
  };
  const TimePoint opens = now + check.wait;
  const auto told = [&] {
    return testing::Message() << "quota " << spec.quota << " capacity " << spec.capacity
                              << " window " << spec.window().count() << " us, need " << need
                              << " at " << now.time_since_epoch().count() << ", wait "
                              << check.wait.count();
  };
  EXPECT_GT(check.wait, Duration::zero()) << told();
  EXPECT_EQ(asked_at(state, opens - Duration{1}), refused_for(Duration{1})) << told();
  EXPECT_EQ(asked_at(state, opens), kFits) << told();
  State polled = state;
  for (const TimePoint instant :
       {now + check.wait / 3, now + check.wait / 2, opens - Duration{1}}) {
    polled.advance(spec, instant);
    if (instant < opens) {
      EXPECT_EQ(polled.check(spec, need, instant), refused_for(opens - instant)) << told();
    }
  }
  EXPECT_EQ(asked_at(polled, opens), kFits) << told();
  return true;
}

struct Taken {
  TimePoint when;
  std::int64_t amount = 0;

  friend bool operator==(const Taken&, const Taken&) = default;
};

// A client that asks `polls` times, `step` apart, and takes all that remains each time. What
// remains is what fits, and no more.
template <class State>
[[nodiscard]] std::vector<Taken> take_all(State state, const Spec& spec, TimePoint start,
                                          Duration step, std::int64_t polls) {
  std::vector<Taken> taken;
  bool truthful = true;
  TimePoint now = start;
  for (std::int64_t i = 0; i < polls; ++i, now += step) {
    state.advance(spec, now);
    const std::int64_t remaining = state.read(spec, now).remaining;
    truthful &= state.check(spec, remaining + 1, now).verdict != Verdict::fits;
    if (remaining == 0) continue;
    truthful &= state.check(spec, remaining, now) == kFits;
    (void)state.charge(spec, remaining);
    taken.push_back({now, remaining});
  }
  EXPECT_TRUE(truthful);
  return taken;
}

[[nodiscard]] inline std::int64_t total(const std::vector<Taken>& taken) {
  std::int64_t sum = 0;
  for (const Taken& one : taken) sum += one.amount;
  return sum;
}

}  // namespace stint::limit
