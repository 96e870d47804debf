#include "store/redis/ledger.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace stint::store {
namespace {

using limit::FixedWindow;
using limit::Moment;
using limit::SlidingWindow;
using limit::Spec;

}  // namespace

Ledger::Ledger(const Spec& spec, const limit::Counter& counter, TimePoint now) {
  switch (spec.name.algorithm) {
    case Algorithm::fixed_window:
      state_ = FixedWindow{limit::align(now, spec.window()), 0};
      return;
    case Algorithm::sliding_window:
      state_ = SlidingWindow{limit::align(now, spec.window()), 0, 0};
      return;
    case Algorithm::token_bucket: {
      // By the steps that the counter has gone: how often it was full must agree too.
      limit::TokenBucket start = limit::TokenBucket::fresh(spec);
      start.advance(spec, now);
      (void)start.charge(spec, spec.capacity - counter.value(spec));
      state_ = Bucket{start, start};
      return;
    }
    case Algorithm::sliding_log:
      state_ = Log{};
      return;
    case Algorithm::concurrency:
      state_ = Leases{};
      return;
  }
  std::unreachable();
}

void Ledger::advance(const Spec& spec, TimePoint now) {
  if (auto* fixed = std::get_if<FixedWindow>(&state_)) {
    fixed->advance(spec, now);
  } else if (auto* sliding = std::get_if<SlidingWindow>(&state_)) {
    sliding->advance(spec, now);
  } else if (auto* bucket = std::get_if<Bucket>(&state_)) {
    bucket->spent.advance(spec, now);
    bucket->unspent.advance(spec, now);
  } else if (auto* log = std::get_if<Log>(&state_)) {
    // In the order of time, but for a clock that was set back: such entries are taken as now.
    for (auto entry = log->rbegin(); entry != log->rend() && entry->at > now; ++entry) {
      entry->at = now;
    }
    const auto counts = std::ranges::find_if(
        *log, [&](const SpentEntry& entry) { return entry.at + spec.window() > now; });
    log->erase(log->begin(), counts);
  }
  // Leases are looked through when they are taken: every one is released sooner or later.
}

void Ledger::charge(const Spec& spec, std::int64_t amount, const Moment& at) {
  if (auto* fixed = std::get_if<FixedWindow>(&state_)) {
    (void)fixed->charge(spec, amount);
  } else if (auto* sliding = std::get_if<SlidingWindow>(&state_)) {
    (void)sliding->charge(spec, amount);
  } else if (auto* bucket = std::get_if<Bucket>(&state_)) {
    (void)bucket->spent.charge(spec, amount);
  } else if (auto* log = std::get_if<Log>(&state_)) {
    if (amount > 0) log->push_back({at.id, amount, at.now});
  } else if (amount > 0) {
    renew(at.id, at.now + at.lease_ttl);
  }
}

void Ledger::settle(const Spec& spec, const limit::Charge& charged, std::int64_t actual,
                    const Moment& at) {
  if (auto* fixed = std::get_if<FixedWindow>(&state_)) {
    fixed->settle(spec, charged, actual);
  } else if (auto* sliding = std::get_if<SlidingWindow>(&state_)) {
    sliding->settle(spec, charged, actual);
  } else if (auto* bucket = std::get_if<Bucket>(&state_)) {
    bucket->spent.settle(spec, charged, actual);
  } else if (actual == 0) {
    if (auto* log = std::get_if<Log>(&state_)) {
      const auto found = std::ranges::find(*log, at.id, &SpentEntry::id);
      if (found != log->end()) log->erase(found);
    } else {
      std::get<Leases>(state_).erase(at.id);
    }
  }
}

void Ledger::renew(const base::Id& id, TimePoint expiry) {
  std::get<Leases>(state_).insert_or_assign(id, expiry);
}

SpentLimit Ledger::take(TimePoint now) {
  SpentLimit taken;
  if (auto* fixed = std::get_if<FixedWindow>(&state_)) {
    taken.window = fixed->start;
    taken.amount = std::exchange(fixed->used, 0);
  } else if (auto* sliding = std::get_if<SlidingWindow>(&state_)) {
    taken.window = sliding->start;
    taken.amount = std::exchange(sliding->current, 0);
    taken.previous = std::exchange(sliding->previous, 0);
  } else if (auto* bucket = std::get_if<Bucket>(&state_)) {
    taken.amount = std::max<std::int64_t>(bucket->unspent.level - bucket->spent.level, 0);
    bucket->unspent = bucket->spent;
  } else if (auto* log = std::get_if<Log>(&state_)) {
    taken.log = std::exchange(*log, {});
  } else {
    for (const auto& [id, expiry] : std::get<Leases>(state_)) {
      if (expiry > now) taken.leases.push_back({id, expiry});
    }
    std::get<Leases>(state_) = {};
    std::ranges::sort(taken.leases, {}, &SpentLease::id);
  }
  return taken;
}

void Ledger::restore(const Spec& spec, const SpentLimit& spent, bool anew, TimePoint now) {
  if (auto* fixed = std::get_if<FixedWindow>(&state_)) {
    if (spent.window >= fixed->start) (void)fixed->charge(spec, spent.amount);
  } else if (auto* sliding = std::get_if<SlidingWindow>(&state_)) {
    if (spent.window >= sliding->start) {
      (void)sliding->charge(spec, spent.amount);
      sliding->previous = std::min(sliding->previous + spent.previous, spec.max_level);
    } else if (spent.window + spec.window() == sliding->start) {
      sliding->previous = std::min(sliding->previous + spent.amount, spec.max_level);
    }
  } else if (auto* bucket = std::get_if<Bucket>(&state_)) {
    if (anew) {
      (void)bucket->spent.charge(spec, spent.amount);
    } else {
      // What has been regained since it was taken is regained for good.
      bucket->unspent.level = std::min(bucket->unspent.level + spent.amount, spec.capacity);
    }
  } else if (auto* log = std::get_if<Log>(&state_)) {
    Log merged;
    merged.reserve(log->size() + spent.log.size());
    std::ranges::merge(spent.log, *log, std::back_inserter(merged), {}, &SpentEntry::at,
                       &SpentEntry::at);
    *log = std::move(merged);
    advance(spec, now);
  } else {
    for (const SpentLease& lease : spent.leases) {
      if (lease.expiry > now) std::get<Leases>(state_).try_emplace(lease.id, lease.expiry);
    }
  }
}

}  // namespace stint::store
