// What was spent of one limit in this process and was not told to the store: the amounts alone,
// apart from the counter that decides, which also holds what was heard of others.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <variant>
#include <vector>

#include "limit/counter.h"
#include "store/redis/spent.h"

namespace stint::store {

// The steps of limit/, to be called in the same order and with the same moments and specs as
// those of the counter, so that both mean the same window by a charge. Not thread-safe.
class Ledger {
 public:
  // `counter`: the one that decides, at its start.
  Ledger(const limit::Spec& spec, const limit::Counter& counter, TimePoint now);

  void advance(const limit::Spec& spec, TimePoint now);
  void charge(const limit::Spec& spec, std::int64_t amount, const limit::Moment& at);
  void settle(const limit::Spec& spec, const limit::Charge& charged, std::int64_t actual,
              const limit::Moment& at);
  // Concurrency only.
  void renew(const base::Id& id, TimePoint expiry);

  // After `advance`: hands out what still counts and starts anew.
  [[nodiscard]] SpentLimit take(TimePoint now);
  // After `advance`: puts back what was taken, as far as it still counts. `anew`: the counter that
  // it was charged to is gone, the one that it is charged to now has just been charged with it.
  void restore(const limit::Spec& spec, const SpentLimit& spent, bool anew, TimePoint now);

 private:
  // A token bucket as it stands, and as it would stand had nothing been spent: the difference is
  // what has been spent and not regained.
  struct Bucket {
    limit::TokenBucket spent;
    limit::TokenBucket unspent;
  };
  using Log = std::vector<SpentEntry>;
  using Leases = boost::unordered_flat_map<base::Id, TimePoint, base::IdHash>;

  std::variant<limit::FixedWindow, limit::SlidingWindow, Bucket, Log, Leases> state_;
};

}  // namespace stint::store
