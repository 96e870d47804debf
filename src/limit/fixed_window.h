// fixed_window: at most `quota` in each window aligned to the wall clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/saturating.h"
#include "limit/check.h"
#include "limit/spec.h"

namespace stint::limit {

// The latest instant at or before `now` that a window of this length starts at.
[[nodiscard]] inline TimePoint align(TimePoint now, Duration window) noexcept {
  const std::int64_t count = now.time_since_epoch().count();
  return TimePoint{Duration{base::div_floor(count, window.count()) * window.count()}};
}

// The steps of every algorithm have one shape, which this file shows first:
//   ahead    whether it was written at a time still to come: the clock was set back since
//   advance  brings the state to `now`; to be called before the others
//   check    whether `need` fits, and if not, when
//   charge   adds an amount that was found to fit, or an expected one (postpaid)
//   settle   replaces a charge by the actual amount
//   read     remaining and reset
//   spent_at from when on the state says no more than a fresh one does
// Pure: time is an argument, nothing else is read. Amounts are 0 to kMaxQuantity.
struct FixedWindow {
  TimePoint start{};  // of the window that `used` belongs to
  std::int64_t used = 0;

  [[nodiscard]] bool ahead(TimePoint now) const noexcept { return now < start; }

  void advance(const Spec& spec, TimePoint now) noexcept {
    const bool before = now < start;
    if (!before && now - start < spec.window()) return;
    // A start that lies ahead was written before the clock was set back. What was used counts in
    // the window of now: setting a clock back gives nothing away.
    if (!before) used = 0;
    start = align(now, spec.window());
  }

  [[nodiscard]] Check check(const Spec& spec, std::int64_t need, TimePoint now) const noexcept {
    if (need > spec.quota || spec.quota == 0) return {Verdict::never_fits, Duration::zero()};
    if (used + need <= spec.quota) return {};
    return {Verdict::refused, start + spec.window() - now};
  }

  [[nodiscard]] Charge charge(const Spec& spec, std::int64_t amount) noexcept {
    used = std::min(used + amount, spec.max_level);
    return {amount, start};
  }

  void settle(const Spec& spec, const Charge& charged, std::int64_t actual) noexcept {
    if (actual >= charged.amount) {
      used = std::min(used + (actual - charged.amount), spec.max_level);
    } else if (charged.window == start) {
      used = std::max<std::int64_t>(used - (charged.amount - actual), 0);
    }
  }

  [[nodiscard]] Reading read(const Spec& spec, TimePoint now) const noexcept {
    return {std::max<std::int64_t>(spec.quota - used, 0),
            used > 0 ? start + spec.window() - now : Duration::zero()};
  }

  [[nodiscard]] TimePoint spent_at(const Spec& spec) const noexcept {
    return used > 0 ? start + spec.window() : kAlwaysSpent;
  }
};

}  // namespace stint::limit
