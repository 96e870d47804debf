// The state of one limit in one bucket, whatever its algorithm, in 24 bytes.
#pragma once

#include <cstdint>
#include <utility>

#include "base/id.h"
#include "limit/check.h"
#include "limit/fixed_window.h"
#include "limit/lease_set.h"
#include "limit/sliding_log.h"
#include "limit/sliding_window.h"
#include "limit/spec.h"
#include "limit/token_bucket.h"

namespace stint::limit {

// What the steps of some algorithm need beside the amount.
struct Moment {
  TimePoint now;
  base::Id id;         // of the reservation: names log entries and leases
  Duration lease_ttl;  // of this admission's leases
};

// A union told apart by the algorithm of the spec that comes with every call: the bucket keeps
// the specs once for all its counters. All calls must bring a spec with the same LimitName, and
// the owner calls `destroy` (a destructor would not know which member lives).
class Counter {
 public:
  [[nodiscard]] static Counter fresh(const Spec& spec);
  [[nodiscard]] Counter clone(const Spec& spec) const;
  void destroy(const Spec& spec) noexcept;

  [[nodiscard]] bool ahead(const Spec& spec, const Moment& at) const noexcept;
  void advance(const Spec& spec, const Moment& at);
  [[nodiscard]] Check check(const Spec& spec, std::int64_t need, TimePoint now) const noexcept;
  [[nodiscard]] Charge charge(const Spec& spec, std::int64_t amount, const Moment& at);
  // `actual` replaces the charge; 0 of a log or of leases takes the entry or the lease away.
  void settle(const Spec& spec, const Charge& charged, std::int64_t actual, const Moment& at);
  [[nodiscard]] Reading read(const Spec& spec, TimePoint now) const noexcept;
  [[nodiscard]] TimePoint spent_at(const Spec& spec) const noexcept;
  // See BucketInfo::Counter::value.
  [[nodiscard]] std::int64_t value(const Spec& spec) const noexcept;
  // Puts a lease in or moves its expiry. Concurrency only.
  void renew(const base::Id& id, TimePoint expiry) { leases_->put(id, expiry); }

 private:
  Counter() noexcept : fixed_{} {}

  union {
    FixedWindow fixed_;
    SlidingWindow sliding_;
    TokenBucket bucket_;
    SlidingLog* log_;
    LeaseSet* leases_;
  };
};
static_assert(sizeof(Counter) == 24);

inline bool Counter::ahead(const Spec& spec, const Moment& at) const noexcept {
  switch (spec.name.algorithm) {
    case Algorithm::fixed_window:
      return fixed_.ahead(at.now);
    case Algorithm::sliding_window:
      return sliding_.ahead(at.now);
    case Algorithm::token_bucket:
      return bucket_.ahead(at.now);
    case Algorithm::sliding_log:
      return log_->ahead(at.now);
    case Algorithm::concurrency:
      return leases_->ahead(at.lease_ttl, at.now);
  }
  std::unreachable();
}

inline void Counter::advance(const Spec& spec, const Moment& at) {
  switch (spec.name.algorithm) {
    case Algorithm::fixed_window:
      return fixed_.advance(spec, at.now);
    case Algorithm::sliding_window:
      return sliding_.advance(spec, at.now);
    case Algorithm::token_bucket:
      return bucket_.advance(spec, at.now);
    case Algorithm::sliding_log:
      return log_->advance(spec, at.now);
    case Algorithm::concurrency:
      return leases_->advance(at.lease_ttl, at.now);
  }
  std::unreachable();
}

inline Check Counter::check(const Spec& spec, std::int64_t need, TimePoint now) const noexcept {
  switch (spec.name.algorithm) {
    case Algorithm::fixed_window:
      return fixed_.check(spec, need, now);
    case Algorithm::sliding_window:
      return sliding_.check(spec, need, now);
    case Algorithm::token_bucket:
      return bucket_.check(spec, need, now);
    case Algorithm::sliding_log:
      return log_->check(spec, need, now);
    case Algorithm::concurrency:
      return leases_->check(spec, need);
  }
  std::unreachable();
}

inline Charge Counter::charge(const Spec& spec, std::int64_t amount, const Moment& at) {
  switch (spec.name.algorithm) {
    case Algorithm::fixed_window:
      return fixed_.charge(spec, amount);
    case Algorithm::sliding_window:
      return sliding_.charge(spec, amount);
    case Algorithm::token_bucket:
      return bucket_.charge(spec, amount);
    case Algorithm::sliding_log:
      return log_->charge(amount, at.id, at.now);
    case Algorithm::concurrency:
      if (amount > 0) leases_->put(at.id, at.now + at.lease_ttl);
      return {amount, TimePoint{}};
  }
  std::unreachable();
}

inline void Counter::settle(const Spec& spec, const Charge& charged, std::int64_t actual,
                            const Moment& at) {
  switch (spec.name.algorithm) {
    case Algorithm::fixed_window:
      return fixed_.settle(spec, charged, actual);
    case Algorithm::sliding_window:
      return sliding_.settle(spec, charged, actual);
    case Algorithm::token_bucket:
      return bucket_.settle(spec, charged, actual);
    case Algorithm::sliding_log:
      return log_->settle(at.id, actual);
    case Algorithm::concurrency:
      if (actual == 0) leases_->remove(at.id);
      return;
  }
  std::unreachable();
}

inline Reading Counter::read(const Spec& spec, TimePoint now) const noexcept {
  switch (spec.name.algorithm) {
    case Algorithm::fixed_window:
      return fixed_.read(spec, now);
    case Algorithm::sliding_window:
      return sliding_.read(spec, now);
    case Algorithm::token_bucket:
      return bucket_.read(spec, now);
    case Algorithm::sliding_log:
      return log_->read(spec, now);
    case Algorithm::concurrency:
      return leases_->read(spec);
  }
  std::unreachable();
}

inline TimePoint Counter::spent_at(const Spec& spec) const noexcept {
  switch (spec.name.algorithm) {
    case Algorithm::fixed_window:
      return fixed_.spent_at(spec);
    case Algorithm::sliding_window:
      return sliding_.spent_at(spec);
    case Algorithm::token_bucket:
      return bucket_.spent_at(spec);
    case Algorithm::sliding_log:
      return log_->spent_at(spec);
    case Algorithm::concurrency:
      return leases_->spent_at();
  }
  std::unreachable();
}

}  // namespace stint::limit
