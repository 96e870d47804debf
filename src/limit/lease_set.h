// concurrency: leases in flight, each with an expiry in the store's time.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>

#include "base/id.h"
#include "limit/check.h"
#include "limit/spec.h"

namespace stint::limit {

// How long a refused client is told to wait for a slot: a hint, nobody knows when one is freed.
inline constexpr Duration kSlotHint = std::chrono::seconds{1};

// How a limit of slots answers when so many leases are live.
[[nodiscard]] inline Check check_slots(const Spec& spec, std::int64_t live,
                                       std::int64_t need) noexcept {
  if (need > spec.quota || spec.quota == 0) return {Verdict::never_fits, Duration::zero()};
  if (live + need <= spec.quota) return {};
  return {Verdict::refused, kSlotHint};
}
[[nodiscard]] inline Reading read_slots(const Spec& spec, std::int64_t live) noexcept {
  const std::int64_t remaining = spec.quota > live ? spec.quota - live : 0;
  return {remaining, remaining == 0 ? kSlotHint : Duration::zero()};
}

// A lease is live at every instant before its expiry.
class LeaseSet {
 public:
  // Whether a lease may live for longer than a ttl from now.
  [[nodiscard]] bool ahead(Duration ttl, TimePoint now) const noexcept;
  // Drops what has expired; expiries further ahead than a ttl (the clock was set back, or the
  // ttl was made shorter) are cut to it.
  void advance(Duration ttl, TimePoint now);
  [[nodiscard]] Check check(const Spec& spec, std::int64_t need) const noexcept {
    return check_slots(spec, live(), need);
  }
  // Adds the lease or moves its expiry; the one thing that a renewal does too.
  void put(const base::Id& id, TimePoint expiry);
  void remove(const base::Id& id) noexcept { expiries_.erase(id); }
  [[nodiscard]] Reading read(const Spec& spec) const noexcept { return read_slots(spec, live()); }
  [[nodiscard]] TimePoint spent_at() const noexcept;
  [[nodiscard]] std::int64_t live() const noexcept {
    return static_cast<std::int64_t>(expiries_.size());
  }

 private:
  boost::unordered_flat_map<base::Id, TimePoint, base::IdHash> expiries_;
  // No expiry is before `earliest_` or after `latest_`; between them advance has nothing to do.
  TimePoint earliest_ = TimePoint::max();
  TimePoint latest_ = TimePoint::min();
};

}  // namespace stint::limit
