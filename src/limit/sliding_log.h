// sliding_log: exact; the admitted requests of the last window, one entry each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/id.h"
#include "limit/check.h"
#include "limit/spec.h"

namespace stint::limit {

// An entry made at t counts at every instant before t + window.
class SlidingLog {
 public:
  [[nodiscard]] bool ahead(TimePoint now) const noexcept {
    return !entries_.empty() && entries_.back().at > now;
  }
  void advance(const Spec& spec, TimePoint now);
  [[nodiscard]] Check check(const Spec& spec, std::int64_t need, TimePoint now) const noexcept;
  // Nothing is kept of an amount of 0.
  [[nodiscard]] Charge charge(std::int64_t amount, const base::Id& id, TimePoint now);
  // Only the whole entry can be given back (`actual` 0), by its id.
  void settle(const base::Id& id, std::int64_t actual) noexcept;
  [[nodiscard]] Reading read(const Spec& spec, TimePoint now) const noexcept;
  [[nodiscard]] TimePoint spent_at(const Spec& spec) const noexcept;
  [[nodiscard]] std::int64_t used() const noexcept { return used_; }

 private:
  struct Entry {
    base::Id id;
    std::int64_t cost = 0;
    TimePoint at{};
  };

  std::vector<Entry> entries_;  // in the order of time; those before head_ are gone
  std::size_t head_ = 0;
  std::int64_t used_ = 0;
};

}  // namespace stint::limit
