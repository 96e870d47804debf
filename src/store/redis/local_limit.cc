#include "store/redis/local_limit.h"

#include <algorithm>
#include <utility>

#include "base/saturating.h"
#include "limit/lease_set.h"

namespace stint::store {
namespace {

using limit::Moment;
using limit::Spec;

// The products that its tick was chosen for only get smaller.
Spec share_of(const Spec& spec, std::int64_t replicas) noexcept {
  Spec share = spec;
  share.quota = base::div_ceil(spec.quota, replicas);
  share.capacity = base::div_ceil(spec.capacity, replicas);
  return share;
}

// How often a token bucket had been full, told apart from the same number of a bucket in the
// store: what is settled there after all gives nothing back to a bucket that was not charged.
TimePoint local_epoch(TimePoint epoch) noexcept {
  return TimePoint{Duration{-1} - epoch.time_since_epoch()};
}

}  // namespace

LocalLimit::LocalLimit(const Spec& spec, const Share& share, TimePoint now)
    : share_(share_of(spec, share.replicas)),
      quota_(spec.quota),
      capacity_(spec.capacity),
      replicas_(share.replicas),
      counter_(limit::Counter::fresh(share_)),
      ledger_(begin(spec, share, now)) {}

LocalLimit::LocalLimit(const LocalLimit& other)
    : share_(other.share_),
      quota_(other.quota_),
      capacity_(other.capacity_),
      replicas_(other.replicas_),
      heard_leases_(other.heard_leases_),
      heard_until_(other.heard_until_),
      counter_(other.counter_.clone(other.share_)),
      ledger_(other.ledger_) {}

std::int64_t LocalLimit::left_of(std::int64_t used) const noexcept {
  const std::int64_t left = quota_ - std::clamp<std::int64_t>(used, 0, quota_);
  return std::max(base::div_ceil(left, replicas_), std::min<std::int64_t>(quota_, 1));
}

Ledger LocalLimit::begin(const Spec& spec, const Share& share, TimePoint now) {
  count_heard(spec, share, now);
  return Ledger(share_, counter_, now);
}

void LocalLimit::count_heard(const Spec& spec, const Share& share, TimePoint now) {
  const Moment start{now, {}, kMaxWindow};
  if (share.heard == nullptr || share.heard->until <= now) {
    counter_.advance(share_, start);
    return;
  }
  const HeardLimit& heard = *share.heard;
  const auto charge = [&](std::int64_t amount, TimePoint at) {
    counter_.advance(share_, {at, {}, kMaxWindow});
    (void)counter_.charge(share_, amount, {at, {}, kMaxWindow});
    counter_.advance(share_, start);
  };
  switch (spec.name.algorithm) {
    case Algorithm::fixed_window:
    case Algorithm::sliding_window:
      return charge(share_.quota - left_of(heard.value), share.heard_at);
    case Algorithm::sliding_log:
      // Of its entries the age of the youngest is known: all are taken to be as old.
      return charge(share_.quota - left_of(heard.value), heard.until - spec.window());
    case Algorithm::token_bucket: {
      limit::TokenBucket whole{share.heard_at, std::min(heard.value, spec.capacity), 0, 0};
      whole.advance(spec, now);
      const std::int64_t level = -base::div_floor(-whole.level, share.replicas);
      return charge(share_.capacity - level, now);
    }
    case Algorithm::concurrency:
      heard_leases_ = heard.value;
      heard_until_ = heard.until;
      return counter_.advance(share_, start);
  }
  std::unreachable();
}

void LocalLimit::refit(const Spec& spec, std::int64_t replicas) {
  share_ = share_of(spec, replicas);
  quota_ = spec.quota;
  capacity_ = spec.capacity;
  replicas_ = replicas;
}

void LocalLimit::advance(const Moment& at) {
  if (share_.name.algorithm == Algorithm::concurrency) {
    share_.quota = left_of(at.now < heard_until_ ? heard_leases_ : 0);
  }
  counter_.advance(share_, at);
  ledger_.advance(share_, at.now);
}

limit::Check LocalLimit::check(std::int64_t need, TimePoint now) const noexcept {
  if (need > capacity_ || quota_ == 0 || capacity_ == 0) {
    return {Verdict::never_fits, Duration::zero()};
  }
  // Never by this process alone: when to come back is not known, so one window.
  if (need > share_.capacity) return {Verdict::refused, share_.window()};
  return counter_.check(share_, need, now);
}

limit::Charge LocalLimit::charge(std::int64_t amount, const Moment& at, bool unknown) {
  limit::Charge charged = counter_.charge(share_, amount, at);
  if (!unknown || by_id()) ledger_.charge(share_, amount, at);
  if (share_.name.algorithm == Algorithm::token_bucket) {
    charged.window = local_epoch(charged.window);
  }
  return charged;
}

void LocalLimit::settle(const limit::Charge& charged, std::int64_t actual, const Moment& at,
                        bool unknown) {
  limit::Charge here = charged;
  if (share_.name.algorithm == Algorithm::token_bucket) here.window = local_epoch(charged.window);
  counter_.settle(share_, here, actual, at);
  if (!unknown || by_id()) {
    ledger_.settle(share_, here, actual, at);
  } else if (actual > here.amount) {
    ledger_.charge(share_, actual - here.amount, at);
  }
}

limit::Reading LocalLimit::read(TimePoint now) const noexcept { return counter_.read(share_, now); }

void LocalLimit::renew(const base::Id& id, TimePoint expiry) {
  counter_.renew(id, expiry);
  ledger_.renew(id, expiry);
}

void LocalLimit::restore(const SpentLimit& spent, bool anew, TimePoint now) {
  advance({now, {}, kMaxWindow});
  if (anew) charge_anew(spent, now);
  ledger_.restore(share_, spent, anew, now);
}

// What may count less than it is charged here (the previous window of a sliding one, old entries
// of a log) counts in full: the share is only smaller for it.
void LocalLimit::charge_anew(const SpentLimit& spent, TimePoint now) {
  const auto charge = [&](std::int64_t amount, const base::Id& id) {
    if (amount > 0) (void)counter_.charge(share_, amount, {now, id, kMaxWindow});
  };
  switch (share_.name.algorithm) {
    case Algorithm::fixed_window:
      if (spent.window + share_.window() > now) charge(spent.amount, {});
      return;
    case Algorithm::sliding_window:
      if (spent.window + share_.window() > now) charge(spent.previous, {});
      if (spent.window + 2 * share_.window() > now) charge(spent.amount, {});
      return;
    case Algorithm::token_bucket:
      return charge(spent.amount, {});
    case Algorithm::sliding_log:
      for (const SpentEntry& entry : spent.log) {
        if (entry.at + share_.window() > now) charge(entry.cost, entry.id);
      }
      return;
    case Algorithm::concurrency:
      for (const SpentLease& lease : spent.leases) {
        if (lease.expiry > now) counter_.renew(lease.id, lease.expiry);
      }
      return;
  }
  std::unreachable();
}

}  // namespace stint::store
