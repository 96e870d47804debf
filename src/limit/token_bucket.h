// token_bucket: `capacity` units, refilled at `quota` per window; may owe.
// Source: the token bucket of RFC 2697, section 3, with the fraction of a unit kept as a
// remainder instead of a floating-point level.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/saturating.h"
#include "limit/check.h"
#include "limit/spec.h"

namespace stint::limit {

struct TokenBucket {
  TimePoint last{};        // the refill is accounted for up to here
  std::int64_t level = 0;  // whole units; below 0: owed
  // The part of the next unit, in 1 / window_ticks: below 2^45, as a window is below 2^45 us.
  std::int64_t rest : 46 = 0;
  // How often it was seen full: what was charged before that is made good already. A number that
  // wraps may be mistaken for an old one once in 262,144 times, for one refund.
  std::uint64_t fills : 18 = 0;

  // Changes nothing in a rest; GCC warns of an assignment to `rest` that could lose bits.
  static constexpr std::int64_t kRestBits = (std::int64_t{1} << 45) - 1;
  static constexpr std::uint64_t kFillsBits = (std::uint64_t{1} << 18) - 1;

  [[nodiscard]] static TokenBucket fresh(const Spec& spec) noexcept {
    return {TimePoint{}, spec.capacity, 0, 0};
  }

  [[nodiscard]] bool ahead(TimePoint now) const noexcept { return now < last; }

  void advance(const Spec& spec, TimePoint now) noexcept {
    // A reload may have made the ticks coarser and the debt that can be counted smaller.
    rest = std::min<std::int64_t>(rest, spec.window_ticks - 1) & kRestBits;
    level = std::max(level, spec.capacity - spec.max_level);
    // A last refill that lies ahead was written before the clock was set back: it is taken as
    // now, and nothing is refilled.
    if (now <= last || level >= spec.capacity) {
      if (level >= spec.capacity) fill(spec);
      last = now;
      return;
    }
    const std::int64_t ticks = (now - last) / spec.tick;
    if (ticks == 0) return;
    const std::int64_t missing = (spec.capacity - level) * spec.window_ticks - rest;
    // Clipped to the time to full before it is multiplied, so that no idle time overflows. One
    // that is never refilled forgets after a quiet window: see whole_at.
    if (spec.quota > 0 ? ticks >= base::div_ceil(missing, spec.quota) : now >= whole_at(spec)) {
      fill(spec);
      last = now;
      return;
    }
    const std::int64_t refill = ticks * spec.quota + rest;
    level += refill / spec.window_ticks;
    rest = refill % spec.window_ticks & kRestBits;
    last += ticks * spec.tick;
  }

  [[nodiscard]] Check check(const Spec& spec, std::int64_t need, TimePoint now) const noexcept {
    if (need > spec.capacity || spec.quota == 0 || spec.capacity == 0) {
      return {Verdict::never_fits, Duration::zero()};
    }
    if (level >= need) return {};
    return {Verdict::refused, reaches(spec, need) - now};
  }

  [[nodiscard]] Charge charge(const Spec& spec, std::int64_t amount) noexcept {
    take(spec, amount);
    return {amount, epoch()};
  }

  void settle(const Spec& spec, const Charge& charged, std::int64_t actual) noexcept {
    if (actual >= charged.amount) {
      take(spec, actual - charged.amount);
    } else if (charged.window == epoch()) {
      // One that has been full since would be no fuller now if less had been taken then.
      level += charged.amount - actual;
      if (level >= spec.capacity) fill(spec);
    }
  }

  // What is left where nothing is ever refilled is nobody's: `check` refuses everything.
  [[nodiscard]] Reading read(const Spec& spec, TimePoint now) const noexcept {
    const Duration reset = level >= spec.capacity ? Duration::zero() : whole_at(spec) - now;
    return {spec.quota == 0 ? 0 : std::clamp<std::int64_t>(level, 0, spec.capacity), reset};
  }

  [[nodiscard]] TimePoint spent_at(const Spec& spec) const noexcept {
    return level >= spec.capacity ? kAlwaysSpent : whole_at(spec);
  }

 private:
  // What stands in for the window of a charge.
  [[nodiscard]] TimePoint epoch() const noexcept {
    return TimePoint{Duration{static_cast<std::int64_t>(fills)}};
  }

  void fill(const Spec& spec) noexcept {
    level = spec.capacity;
    rest = 0;
    ++fills;
  }

  void take(const Spec& spec, std::int64_t amount) noexcept {
    level = std::max(level - amount, spec.capacity - spec.max_level);
  }

  // The instant at which the level is `wanted`, at most 2^53 us (285 years) from the last refill.
  [[nodiscard]] TimePoint reaches(const Spec& spec, std::int64_t wanted) const noexcept {
    const std::int64_t missing = (wanted - level) * spec.window_ticks - rest;
    const std::int64_t ticks = base::div_ceil(missing, spec.quota);
    return last + std::min(ticks, kMaxQuantity / spec.tick.count()) * spec.tick;
  }

  // Full again; of a bucket that is never refilled: after a window, so that it can be freed.
  [[nodiscard]] TimePoint whole_at(const Spec& spec) const noexcept {
    return spec.quota > 0 ? reaches(spec, spec.capacity) : last + spec.window();
  }
};

}  // namespace stint::limit
