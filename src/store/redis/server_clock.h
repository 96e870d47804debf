// A server's time, as its answers let it be known.
#pragma once

#include <algorithm>

#include "stint/time.h"

namespace stint::store {

// Each answer says what time it was at some instant between the sending of the question and the
// answer's arrival. Of what is possible by that, the estimate is the earliest: a fence that is
// made of it never lets a call run later than was meant.
// Not thread-safe.
class ServerClock {
 public:
  // `sent`, `received`: steady time.
  void learn(TimePoint store, Duration sent, Duration received) noexcept {
    const Duration earliest = store.time_since_epoch() - received;
    const Duration latest = store.time_since_epoch() - sent;
    offset_ = known_ ? std::clamp(offset_, earliest, std::max(earliest, latest)) : earliest;
    known_ = true;
  }
  [[nodiscard]] bool known() const noexcept { return known_; }
  [[nodiscard]] TimePoint at(Duration steady) const noexcept { return TimePoint{steady + offset_}; }
  [[nodiscard]] Duration offset() const noexcept { return offset_; }

 private:
  Duration offset_{0};  // store time - steady time
  bool known_ = false;
};

}  // namespace stint::store
