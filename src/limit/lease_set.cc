#include "limit/lease_set.h"

#include <algorithm>

namespace stint::limit {

bool LeaseSet::ahead(Duration ttl, TimePoint now) const noexcept {
  if (latest_ <= now + ttl) return false;
  for (const auto& [id, expiry] : expiries_) {
    if (expiry > now + ttl) return true;
  }
  return false;
}

void LeaseSet::advance(Duration ttl, TimePoint now) {
  if (earliest_ > now && latest_ <= now + ttl) return;
  earliest_ = TimePoint::max();
  latest_ = TimePoint::min();
  for (auto lease = expiries_.begin(); lease != expiries_.end();) {
    const auto current = lease++;
    if (current->second <= now) {
      expiries_.erase(current);
      continue;
    }
    current->second = std::min(current->second, now + ttl);
    earliest_ = std::min(earliest_, current->second);
    latest_ = std::max(latest_, current->second);
  }
}

void LeaseSet::put(const base::Id& id, TimePoint expiry) {
  expiries_.insert_or_assign(id, expiry);
  earliest_ = std::min(earliest_, expiry);
  latest_ = std::max(latest_, expiry);
}

TimePoint LeaseSet::spent_at() const noexcept {
  // Not `latest_`, which may be the expiry of a lease that was given back.
  TimePoint latest = kAlwaysSpent;
  for (const auto& [id, expiry] : expiries_) latest = std::max(latest, expiry);
  return latest;
}

}  // namespace stint::limit
