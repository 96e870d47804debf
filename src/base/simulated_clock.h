// A clock that moves when it is told to, for tests of anything that takes a Clock.
#pragma once

#include <atomic>

#include "stint/time.h"

namespace stint::base {

// Thread rule: any thread.
class SimulatedClock final : public Clock {
 public:
  explicit SimulatedClock(TimePoint wall) noexcept : wall_us_(wall.time_since_epoch().count()) {}

  [[nodiscard]] Duration steady_now() const noexcept override { return Duration{steady_us_}; }
  [[nodiscard]] TimePoint wall_now() const noexcept override {
    return TimePoint{Duration{wall_us_}};
  }

  // Time passes: both clocks move.
  void advance(Duration span) noexcept {
    steady_us_ += span.count();
    wall_us_ += span.count();
  }
  // Somebody sets the wall clock; no time passes.
  void step_wall(Duration span) noexcept { wall_us_ += span.count(); }

 private:
  std::atomic<std::int64_t> steady_us_{0};
  std::atomic<std::int64_t> wall_us_;
};

}  // namespace stint::base
