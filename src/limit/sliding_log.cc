#include "limit/sliding_log.h"

#include <algorithm>

namespace stint::limit {

void SlidingLog::advance(const Spec& spec, TimePoint now) {
  // Entries that lie ahead were made before the clock was set back: they are taken as now.
  for (auto entry = entries_.rbegin(); entry != entries_.rend() && entry->at > now; ++entry) {
    entry->at = now;
  }
  while (head_ < entries_.size() && entries_[head_].at + spec.window() <= now) {
    used_ -= entries_[head_].cost;
    ++head_;
  }
  // Each entry is moved at most once for each time that as many have gone.
  if (head_ > entries_.size() / 2) {
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
    if (entries_.size() < entries_.capacity() / 4) entries_.shrink_to_fit();
  }
}

Check SlidingLog::check(const Spec& spec, std::int64_t need, TimePoint now) const noexcept {
  if (need > spec.quota || spec.quota == 0) return {Verdict::never_fits, Duration::zero()};
  std::int64_t used = used_;
  if (used + need <= spec.quota) return {};
  std::size_t leaving = head_;
  for (; leaving < entries_.size(); ++leaving) {
    used -= entries_[leaving].cost;
    if (used + need <= spec.quota) break;
  }
  return {Verdict::refused, entries_[leaving].at + spec.window() - now};
}

Charge SlidingLog::charge(std::int64_t amount, const base::Id& id, TimePoint now) {
  if (amount > 0) {
    entries_.push_back({id, amount, now});
    used_ += amount;
  }
  return {amount, TimePoint{}};
}

void SlidingLog::settle(const base::Id& id, std::int64_t actual) noexcept {
  if (actual != 0) return;
  const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(head_);
  const auto found =
      std::find_if(begin, entries_.end(), [&](const Entry& entry) { return entry.id == id; });
  if (found == entries_.end()) return;
  used_ -= found->cost;
  entries_.erase(found);
}

Reading SlidingLog::read(const Spec& spec, TimePoint now) const noexcept {
  const TimePoint whole = spent_at(spec);
  return {std::max<std::int64_t>(spec.quota - used_, 0),
          whole == kAlwaysSpent ? Duration::zero() : whole - now};
}

TimePoint SlidingLog::spent_at(const Spec& spec) const noexcept {
  return head_ == entries_.size() ? kAlwaysSpent : entries_.back().at + spec.window();
}

}  // namespace stint::limit
