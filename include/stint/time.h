// Time as stint counts it, and the clock that a program may replace.
#pragma once

#include <chrono>

namespace stint {

// All durations and instants are whole microseconds. An instant counts from the Unix epoch, UTC.
using Duration = std::chrono::microseconds;
using TimePoint = std::chrono::sys_time<Duration>;

// Where a limiter takes its time from.
// Thread rule: both functions may be called from any thread at any time.
class Clock {
 public:
  virtual ~Clock() = default;

  // Time since an arbitrary start; never steps back.
  [[nodiscard]] virtual Duration steady_now() const noexcept = 0;

  // The wall clock: may be set forwards and backwards while the program runs.
  [[nodiscard]] virtual TimePoint wall_now() const noexcept = 0;
};

// The clocks of the operating system. Lives as long as the program.
[[nodiscard]] const Clock& system_clock() noexcept;

}  // namespace stint
