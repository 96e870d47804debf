// One limit of a bucket that is counted in this process.
#pragma once

#include <cstdint>

#include "limit/counter.h"
#include "store/redis/heard.h"
#include "store/redis/ledger.h"

namespace stint::store {

// What this process may admit by itself.
struct Share {
  std::int64_t replicas = 1;  // the quota is divided by it; at least 1
  // How the limit stood when it was last heard of, and when that was; null: nothing is known, or
  // nothing that is known counts.
  const HeardLimit* heard = nullptr;
  TimePoint heard_at{};
};

// The counter of limit/ with the share as its quota, in which a part of what was heard is charged
// in advance: so it goes as it goes in the store, when the window ends or the bucket refills.
//
// Why that keeps within quota + replicas, for windows: with Q = quota, h = heard, R replicas, a
// counter may take ceil((Q - h) / R) more while all of h counts, and ceil(Q / R) when none of it
// does, and in proportion in between (sliding_window): R of them and h itself stay below Q + R.
// At least 1 instead of 0 adds at most R to h = Q.
//
// Not thread-safe.
class LocalLimit {
 public:
  LocalLimit(const limit::Spec& spec, const Share& share, TimePoint now);
  LocalLimit(const LocalLimit& other);
  LocalLimit& operator=(const LocalLimit&) = delete;
  ~LocalLimit() { counter_.destroy(share_); }

  [[nodiscard]] const limit::LimitName& name() const noexcept { return share_.name; }
  // Takes over a limit of the same name, or a number of replicas; what was counted stays.
  void refit(const limit::Spec& spec, std::int64_t replicas);

  // The steps of limit/.
  void advance(const limit::Moment& at);
  [[nodiscard]] limit::Check check(std::int64_t need, TimePoint now) const noexcept;
  // `unknown`: the store may have been charged, too. Then what is counted by amounts is kept out of
  // the ledger, but for what is used beyond the charge; entries and leases have ids, and come to
  // the same if they are told twice.
  [[nodiscard]] limit::Charge charge(std::int64_t amount, const limit::Moment& at,
                                     bool unknown = false);
  void settle(const limit::Charge& charged, std::int64_t actual, const limit::Moment& at,
              bool unknown = false);
  [[nodiscard]] limit::Reading read(TimePoint now) const noexcept;
  [[nodiscard]] TimePoint spent_at() const noexcept { return counter_.spent_at(share_); }
  // Concurrency only.
  void renew(const base::Id& id, TimePoint expiry);

  // See Ledger. What was taken stays counted here.
  [[nodiscard]] SpentLimit take(TimePoint now) { return ledger_.take(now); }
  // `anew`: this limit has begun anew since it was taken and is to be charged with it.
  void restore(const SpentLimit& spent, bool anew, TimePoint now);

 private:
  // What is left of the share when so much of the quota is used.
  [[nodiscard]] std::int64_t left_of(std::int64_t used) const noexcept;
  // Charges the counter with what was heard; makes the ledger that goes with it.
  [[nodiscard]] Ledger begin(const limit::Spec& spec, const Share& share, TimePoint now);
  void count_heard(const limit::Spec& spec, const Share& share, TimePoint now);
  void charge_anew(const SpentLimit& spent, TimePoint now);
  [[nodiscard]] bool by_id() const noexcept {
    return share_.name.algorithm == Algorithm::sliding_log ||
           share_.name.algorithm == Algorithm::concurrency;
  }

  limit::Spec share_;  // the limit's, with this process's part of its quota and capacity
  std::int64_t quota_ = 0;
  std::int64_t capacity_ = 0;
  std::int64_t replicas_ = 1;
  // Of leases that were heard of nothing is known but their number: the share is smaller by it,
  // until they would have ended.
  std::int64_t heard_leases_ = 0;
  TimePoint heard_until_ = TimePoint::min();
  limit::Counter counter_;
  Ledger ledger_;
};

}  // namespace stint::store
