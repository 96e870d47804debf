#include "store/memory/forward_clock.h"

#include <utility>

namespace stint::store {
namespace {

constexpr std::int64_t kLookEvery = 10'000;
constexpr std::int64_t kWarnEvery = 60'000'000;

}  // namespace

ForwardClock::ForwardClock(const Clock& clock, std::function<void(std::string_view)> on_warning)
    : clock_(clock), on_warning_(std::move(on_warning)) {
  const std::int64_t steady = clock_.steady_now().count();
  offset_ = clock_.wall_now().time_since_epoch().count() - steady;
  next_look_ = steady + kLookEvery;
  next_warning_ = steady;
}

TimePoint ForwardClock::now() noexcept {
  const std::int64_t steady = clock_.steady_now().count();
  if (steady >= next_look_.load(std::memory_order_relaxed)) look_at_wall_clock(steady);
  return TimePoint{Duration{steady + offset_.load(std::memory_order_relaxed)}};
}

void ForwardClock::look_at_wall_clock(std::int64_t steady) noexcept {
  next_look_.store(steady + kLookEvery, std::memory_order_relaxed);
  const std::int64_t seen = clock_.wall_now().time_since_epoch().count() - steady;
  std::int64_t offset = offset_.load(std::memory_order_relaxed);
  while (seen > offset && !offset_.compare_exchange_weak(offset, seen, std::memory_order_relaxed)) {
  }
  if (seen >= offset - kTolerance.count()) return;
  std::int64_t due = next_warning_.load(std::memory_order_relaxed);
  if (steady < due || !on_warning_) return;
  if (next_warning_.compare_exchange_strong(due, steady + kWarnEvery, std::memory_order_relaxed)) {
    on_warning_("the wall clock was set back; limits go on with the time as it was");
  }
}

}  // namespace stint::store
