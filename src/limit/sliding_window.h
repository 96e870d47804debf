// sliding_window: two aligned counters, the previous one weighted by the part of its window that
// a window ending now still covers. Two numbers whatever the traffic.
// Source: the sliding window counter of "How we built rate limiting capable of scaling to
// millions of domains" (Cloudflare, 2017), in integers and with the weight rounded up.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/saturating.h"
#include "limit/check.h"
#include "limit/fixed_window.h"
#include "limit/spec.h"

namespace stint::limit {

struct SlidingWindow {
  TimePoint start{};  // of the window that `current` belongs to
  std::int64_t current = 0;
  std::int64_t previous = 0;

  [[nodiscard]] bool ahead(TimePoint now) const noexcept { return now < start; }

  void advance(const Spec& spec, TimePoint now) noexcept {
    current = std::min(current, spec.max_level);  // a reload may have lowered it
    previous = std::min(previous, spec.max_level);
    const bool before = now < start;
    if (!before && now - start < spec.window()) return;
    const TimePoint aligned = align(now, spec.window());
    if (!before) {  // else: set back, see FixedWindow; both counters stay
      previous = aligned - start == spec.window() ? current : 0;
      current = 0;
    }
    start = aligned;
  }

  [[nodiscard]] std::int64_t weight(const Spec& spec, TimePoint now) const noexcept {
    if (previous == 0) return 0;
    const Duration left = start + spec.window() - now;
    const std::int64_t ticks =
        std::min(base::div_ceil(left.count(), spec.tick.count()), spec.window_ticks);
    return base::div_ceil(previous * ticks, spec.window_ticks);
  }

  [[nodiscard]] Check check(const Spec& spec, std::int64_t need, TimePoint now) const noexcept {
    if (need > spec.quota || spec.quota == 0) return {Verdict::never_fits, Duration::zero()};
    const std::int64_t room = spec.quota - need - current;
    if (room >= 0 && weight(spec, now) <= room) return {};
    return {Verdict::refused, opens(spec, need, room) - now};
  }

  [[nodiscard]] Charge charge(const Spec& spec, std::int64_t amount) noexcept {
    current = std::min(current + amount, spec.max_level);
    return {amount, start};
  }

  void settle(const Spec& spec, const Charge& charged, std::int64_t actual) noexcept {
    if (actual >= charged.amount) {
      current = std::min(current + (actual - charged.amount), spec.max_level);
    } else if (charged.window == start) {
      current = std::max<std::int64_t>(current - (charged.amount - actual), 0);
    } else if (charged.window + spec.window() == start) {
      previous = std::max<std::int64_t>(previous - (charged.amount - actual), 0);
    }
  }

  [[nodiscard]] Reading read(const Spec& spec, TimePoint now) const noexcept {
    const TimePoint whole = spent_at(spec);
    const std::int64_t used = current + weight(spec, now);
    return {std::max<std::int64_t>(spec.quota - used, 0),
            whole == kAlwaysSpent ? Duration::zero() : whole - now};
  }

  [[nodiscard]] TimePoint spent_at(const Spec& spec) const noexcept {
    if (current > 0) return start + 2 * spec.window();
    return previous > 0 ? start + spec.window() : kAlwaysSpent;
  }

 private:
  // The first instant at which `need` fits, when it does not fit now.
  [[nodiscard]] TimePoint opens(const Spec& spec, std::int64_t need,
                                std::int64_t room) const noexcept {
    const TimePoint end = start + spec.window();
    // In this window: previous * ticks left <= room * ticks of a window, and at least one tick
    // is left before the end.
    if (room > 0 && previous > 0) {
      const std::int64_t left = room * spec.window_ticks / previous;
      if (left > 0) return end - left * spec.tick;
    }
    // In the next one, where today's current count is the previous one.
    const std::int64_t next_room = spec.quota - need;
    if (current <= next_room) return end;
    return end + spec.window() - (next_room * spec.window_ticks / current) * spec.tick;
  }
};

}  // namespace stint::limit
