// The contract of a store: where buckets live, and whose clock decides.
#pragma once

#include <atomic>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "limit/check.h"
#include "limit/limit_set.h"
#include "stint/bucket_info.h"
#include "stint/decision.h"
#include "stint/error.h"
#include "stint/outage.h"
#include "stint/time.h"

namespace stint::store {

// One limit of one bucket of an admission: what is asked, what the store answered, and what is
// to stay of it.
struct LimitSlot {
  // Asked. `need` must fit; `charge` is added when the admission is admitted (they differ where
  // only the expected use is known). 0 to kMaxQuantity, of concurrency 0 or 1. With `skip` the
  // limit is neither checked nor charged.
  std::int64_t need = 0;
  std::int64_t charge = 0;
  bool skip = false;
  // Answered. `remaining` and `reset` are as after this admission's own charge.
  Verdict verdict = Verdict::fits;
  std::int64_t remaining = 0;
  Duration reset{0};
  Duration wait{0};
  limit::Charge charged{};  // set when the bucket was charged
  // For the settlement: the amount that stands in the end; see RateStore::settle.
  std::int64_t actual = 0;
};

// One bucket of an admission. The slots are those of its limits, in their order.
struct BucketSlot {
  std::string_view key{};     // unique among the buckets of the admission
  std::string_view text{};    // the key in full, for listings and patterns
  std::string_view policy{};  // escaped policy id: whose overflow bucket serves when memory is full
  limit::LimitSetPtr limits{};
  std::size_t first_slot = 0;
  bool shadow = false;
  OnStoreError on_store_error = OnStoreError::local;
  // Answered.
  std::uint64_t birth = 0;  // the store's: tells the bucket that was charged from a later one
  bool charged = false;     // an admitted admission does not charge a shadow bucket that refused
  bool overflow = false;    // the bucket that decided, and was charged, is the policy's shared one
  // Charged in this process, in an outage: which charges of the bucket it belongs to; 0: it was
  // charged at the store.
  std::uint64_t local = 0;
  // With `local`: the store was asked first and its answer was lost, so that the charge may stand
  // there, too. It is not carried to the store once more, and nothing of it is given back there.
  bool maybe_charged = false;
};

// One admission and its later settlement: a record that travels to the store and back, and is
// then what the reservation remembers. The texts that the views point to live as long as it.
struct AdmissionRecord {
  base::Id id;  // unique; names log entries and leases
  Duration lease_ttl{0};
  // Set from any thread once nobody waits for the answer any more; null: somebody always does. A
  // store that has to send an admission looks before it does: one that is cancelled it drops, and
  // answers undecided (`unavailable`), nothing charged. May be gone once `acquire` has completed.
  const std::atomic<bool>* cancelled = nullptr;
  // At most one of each policy: at the cap they would share one bucket.
  boost::container::small_vector<BucketSlot, 2> buckets;
  boost::container::small_vector<LimitSlot, 4> slots;

  // Answered.
  Outcome outcome = Outcome::undecided;
  TimePoint now{};  // the store's time of the decision
  Error error;      // why undecided

  [[nodiscard]] std::span<LimitSlot> slots_of(const BucketSlot& bucket) noexcept {
    return {slots.data() + bucket.first_slot, bucket.limits->size()};
  }
  [[nodiscard]] std::span<const LimitSlot> slots_of(const BucketSlot& bucket) const noexcept {
    return {slots.data() + bucket.first_slot, bucket.limits->size()};
  }
};

// What settling answers: whether the store took it. A store that cannot say answers an error of
// `unavailable`: what was charged stands.
using Settled = std::move_only_function<void(Result<void>)>;
using Done = std::move_only_function<void()>;

struct ResetPage {
  std::size_t removed = 0;
  std::uint64_t next = 0;  // cursor of the next call; 0: done
  // See ResetSummary; the calls that follow go on with the other parts.
  std::vector<Unreached> unreached{};
};

struct StoreStats {
  std::size_t buckets = 0;
  std::size_t overflow_buckets = 0;
  // Counted here while the store across the network was away, which was not told of all of it yet.
  std::size_t unsent_buckets = 0;
  std::uint64_t overflowed = 0;
  std::uint64_t expired = 0;
  std::uint64_t evicted = 0;
  std::uint64_t max_work_per_call = 0;  // most entries that one call looked at to free memory
};

// A store. What must hold of every one is written as tests in tests/contract.
//
// All calls are asynchronous in form: they complete by calling `done` exactly once, before they
// return (the memory store always does) or later on a thread of the store. Records, renewals and
// results that are passed by reference must stay alive, and be left alone, until then.
//
// A store that answers later has completed every call before it ends, and before what its callers
// made of the answers ends: whoever made it sees to that.
//
// Thread rule: any thread, at any time, but for one record one call at a time.
class RateStore {
 public:
  virtual ~RateStore() = default;

  // Decides over all buckets of the record and charges all or none, at one instant of the
  // store's time. Admitted: every limit of every bucket that is no shadow fits. Then each of
  // those is charged, and each shadow bucket all of whose limits fit. What is not charged is left
  // as it was, so that no refusal shows in a later answer; but for buckets that were written before
  // the store's time was set back, which are brought to the time of now. A bucket that is spent
  // (says no more than a fresh one) is as good as gone: whether it was freed shows in no answer.
  virtual void acquire(AdmissionRecord& record, Done done) = 0;

  // Answers as `acquire` would, as if charged; charges and creates nothing.
  virtual void peek(AdmissionRecord& record, Done done) = 0;

  // Settles what an admitted record charged: slot.actual replaces slot.charged.amount. Less: the
  // difference is given back to the window that was charged, if that still counts; more: it is
  // charged to the current window, whatever is left there. Concurrency: actual must be 0, the
  // lease is taken away. Of a log, actual 0 takes the entry away. To be called once for a record.
  // Buckets that are gone get nothing back; an overspend is charged to a new one.
  virtual void settle(AdmissionRecord& record, Settled done) = 0;

  // Moves the expiry of the records' leases to now + lease_ttl; a lease that is gone is put back.
  virtual void renew(std::span<AdmissionRecord* const> records, Done done) = 0;

  // Forgets buckets whose full key matches (limit::matches). Bounded work per call: `page` says
  // where to go on; start with cursor 0. What cannot be reached is named, each part once in a
  // whole reset, and left out.
  virtual void reset(std::string_view pattern, std::uint64_t cursor, ResetPage& page,
                     Done done) = 0;

  // See Limiter::list. What cannot be reached is named, each part once in a whole listing.
  virtual void list(std::string_view pattern, std::uint64_t cursor, std::size_t page_size,
                    BucketPage& page, Done done) = 0;

  [[nodiscard]] virtual StoreStats stats() const = 0;
};

}  // namespace stint::store
