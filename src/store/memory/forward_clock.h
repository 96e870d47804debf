// The memory store's time: the wall clock, but never backwards.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "store/time_source.h"

namespace stint::store {

// Runs on the steady clock plus the offset to the wall clock at the start. A wall clock that gets
// ahead (it was corrected, or the machine slept) moves it forward for good; one that falls behind
// is ignored and warned about once a minute. The wall clock is looked at every 10 ms.
// Thread rule: any thread. Times read by one thread never decrease.
class ForwardClock final : public TimeSource {
 public:
  // How far the wall clock may fall behind before it is worth a warning: the drift between the
  // two clocks alone is not.
  static constexpr Duration kTolerance = std::chrono::seconds{1};

  // `clock` must outlive it. `on_warning` may be empty.
  ForwardClock(const Clock& clock, std::function<void(std::string_view)> on_warning);

  [[nodiscard]] TimePoint now() noexcept override;

 private:
  void look_at_wall_clock(std::int64_t steady) noexcept;

  const Clock& clock_;
  const std::function<void(std::string_view)> on_warning_;
  std::atomic<std::int64_t> offset_;     // store time - steady time, us; never decreases
  std::atomic<std::int64_t> next_look_;  // steady time, us
  std::atomic<std::int64_t> next_warning_;
};

}  // namespace stint::store
