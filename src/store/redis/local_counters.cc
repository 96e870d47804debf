#include "store/redis/local_counters.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <string>
#include <utility>

#include "base/hash.h"
#include "base/mutex.h"
#include "limit/bucket_key.h"
#include "store/redis/local_bucket.h"

namespace stint::store {
namespace {

using Undecided = std::span<const std::size_t>;

// Buckets looked at for being spent: by every call, and by one that finds no room.
constexpr std::size_t kLooks = 2;
constexpr std::size_t kMostLooks = 64;
// Bytes of a bucket's text that are kept, as in the other stores.
constexpr std::size_t kMaxText = 1024;
// Buckets that one call of take_spent looks at.
constexpr std::size_t kSweep = 1024;

bool counts_here(const BucketSlot& bucket) noexcept {
  return bucket.on_store_error == OnStoreError::local ||
         bucket.on_store_error == OnStoreError::local_full;
}

bool refuses(const LimitSlot& slot) noexcept {
  return slot.verdict == Verdict::refused || slot.verdict == Verdict::never_fits;
}

// Whether one of the buckets that the store did decide says no for certain.
bool refused_by_store(const AdmissionRecord& record, Undecided undecided) {
  for (std::size_t i = 0; i < record.buckets.size(); ++i) {
    const BucketSlot& bucket = record.buckets[i];
    if (bucket.shadow || std::ranges::count(undecided, i) > 0) continue;
    if (std::ranges::any_of(record.slots_of(bucket), refuses)) return true;
  }
  return false;
}

bool must_be_denied(const AdmissionRecord& record, Undecided undecided) {
  return std::ranges::any_of(undecided, [&](std::size_t i) {
    return !record.buckets[i].shadow && record.buckets[i].on_store_error == OnStoreError::deny;
  });
}

// The answers of a bucket that is not counted: nothing but what its rule says.
void answer_uncounted(AdmissionRecord& record, BucketSlot& bucket) {
  bucket.charged = false;
  bucket.overflow = false;
  bucket.local = 0;
  const bool allow = bucket.on_store_error == OnStoreError::allow;
  const auto slots = record.slots_of(bucket);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    slots[i].verdict = allow && !slots[i].skip ? Verdict::fits : Verdict::skipped;
    slots[i].remaining = allow ? (*bucket.limits)[i].capacity : 0;
    slots[i].reset = Duration::zero();
    slots[i].wait = Duration::zero();
    slots[i].charged = {};
  }
}

}  // namespace

class LocalCounters::Impl {
 public:
  explicit Impl(LocalOptions options) : options_(options), table_(0, Hash{options.hash_seed}) {
    options_.max_buckets = std::max<std::size_t>(options_.max_buckets, 1);
  }

  void decide(AdmissionRecord& record, Undecided undecided, TimePoint now, std::int64_t replicas,
              const Heard& heard, bool only_look) {
    record.now = now;
    record.error = {};
    for (const std::size_t i : undecided) answer_uncounted(record, record.buckets[i]);
    const bool refused = refused_by_store(record, undecided);
    if (!refused && must_be_denied(record, undecided)) {
      record.outcome = Outcome::undecided;
      record.error = {ErrorCode::unavailable, {}, "the store of the counters cannot be reached"};
      return;
    }
    record.outcome = refused ? Outcome::refused : Outcome::admitted;
    const base::MutexLock lock(mutex_);
    LocalBucket::Start start{.now = now, .replicas = std::max<std::int64_t>(replicas, 1)};
    Places places;
    for (const std::size_t i : undecided) {
      if (counts_here(record.buckets[i]))
        locate(record.buckets[i], start, heard, only_look, places);
    }
    check(record, places);
    charge_and_answer(record, places, only_look);
    // Last: a bucket that is in use goes on, and its reservations settle with it.
    if (!only_look) free_spent(now, kLooks);
  }

  bool settle(AdmissionRecord& record, BucketSlot& bucket, TimePoint now) {
    if (!bucket.charged) return true;
    const base::MutexLock lock(mutex_);
    LocalBucket* found = holder(bucket);
    if (found == nullptr) return bucket.overflow && bucket.local != 0;
    found->advance(now);
    const auto slots = record.slots_of(bucket);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].skip) continue;
      LocalLimit* limit = found->find((*bucket.limits)[i].name);
      if (limit != nullptr && slots[i].actual != slots[i].charged.amount) {
        limit->settle(slots[i].charged, slots[i].actual, {now, record.id, kMaxWindow},
                      bucket.maybe_charged);
      }
      slots[i].charged.amount = slots[i].actual;
    }
    free_spent(now, kLooks);
    return true;
  }

  bool renew(const AdmissionRecord& record, const BucketSlot& bucket, TimePoint now) {
    if (!bucket.charged) return true;
    const base::MutexLock lock(mutex_);
    LocalBucket* found = holder(bucket);
    if (found == nullptr) return false;
    found->advance(now);
    const auto slots = record.slots_of(bucket);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const limit::LimitName& name = (*bucket.limits)[i].name;
      LocalLimit* limit = found->find(name);
      const bool lease = name.algorithm == Algorithm::concurrency && slots[i].charged.amount > 0;
      if (limit != nullptr && lease) limit->renew(record.id, now + record.lease_ttl);
    }
    return true;
  }

  Taken take_spent(TimePoint now, std::size_t max_buckets, std::uint64_t cursor,
                   const Wanted& wanted) {
    const base::MutexLock lock(mutex_);
    Taken taken;
    const std::uint64_t end = std::min<std::uint64_t>(slots_.size(), cursor + kSweep);
    for (; cursor < end && taken.buckets.size() < max_buckets; ++cursor) {
      LocalBucket* bucket = slots_[cursor].get();
      if (bucket == nullptr) continue;
      if (bucket->unsent() && !bucket->overflow() && (!wanted || wanted(bucket->key()))) {
        SpentBucket spent = bucket->take(now);
        --stats_.unsent;
        if (!std::ranges::all_of(spent.spent, &SpentLimit::empty)) {
          taken.buckets.push_back(std::move(spent));
          ++stats_.under_way;
        }
      }
      free_if_spent(cursor, now);
    }
    taken.next = cursor < slots_.size() ? cursor : 0;
    return taken;
  }

  void restore(const SpentBucket& spent, TimePoint now) {
    const base::MutexLock lock(mutex_);
    --stats_.under_way;
    LocalBucket* found = find(spent.key);
    // Freed: nothing of it counts any more.
    if (found == nullptr) return;
    if (!found->unsent()) ++stats_.unsent;
    found->restore(spent, now);
  }

  void told() {
    const base::MutexLock lock(mutex_);
    --stats_.under_way;
  }

  LocalStats stats() const {
    const base::MutexLock lock(mutex_);
    LocalStats stats = stats_;
    stats.buckets = table_.size();
    return stats;
  }

 private:
  struct Hash {
    using is_avalanching = void;
    std::uint64_t seed = 0;
    std::size_t operator()(std::string_view key) const noexcept { return base::hash(key, seed); }
  };
  // What a call knows of one bucket of its record.
  struct Place {
    BucketSlot* slot = nullptr;
    LocalBucket* bucket = nullptr;  // in the table, or `fresh`
    std::unique_ptr<LocalBucket> fresh;
    bool missing = false;  // there was none
    bool fits = true;
  };
  using Places = boost::container::small_vector<Place, 2>;

  [[nodiscard]] LocalBucket* find(std::string_view key) const STINT_REQUIRES(mutex_) {
    const auto found = table_.find(key);
    return found == table_.end() ? nullptr : slots_[found->second].get();
  }

  // The bucket that has the charges of a record, if they are still here.
  [[nodiscard]] LocalBucket* holder(const BucketSlot& bucket) const STINT_REQUIRES(mutex_) {
    if (bucket.local == 0) return nullptr;
    LocalBucket* found =
        bucket.overflow ? find(limit::overflow_key(bucket.policy)) : find(bucket.key);
    return found != nullptr && found->holds(bucket.local) ? found : nullptr;
  }

  void locate(BucketSlot& slot, LocalBucket::Start& start, const Heard& heard, bool only_look,
              Places& places) STINT_REQUIRES(mutex_) {
    start.rule = slot.on_store_error;
    start.begun = ++begun_;
    Place& place = places.emplace_back();
    place.slot = &slot;
    std::string key(slot.key);
    std::string text(slot.text.substr(0, kMaxText));
    place.bucket = find(key);
    if (place.bucket == nullptr && !has_room(start.now, places)) {
      slot.overflow = true;
      key = text = limit::overflow_key(slot.policy);
      place.bucket = find(key);
    }
    start.heard = slot.overflow ? std::nullopt : heard.find(slot.key);
    if (place.bucket != nullptr) {
      if (only_look) {  // at a copy: not even limits that are not in force touch the bucket
        place.fresh = std::make_unique<LocalBucket>(*place.bucket);
        place.bucket = place.fresh.get();
      }
      place.bucket->fit(slot.limits, start);
      return;
    }
    place.missing = true;
    place.fresh = std::make_unique<LocalBucket>(std::move(key), std::move(text), slot.limits,
                                                slot.overflow, start);
    place.bucket = place.fresh.get();
  }

  // Room for one more than those that the call is about to make.
  bool has_room(TimePoint now, const Places& places) STINT_REQUIRES(mutex_) {
    const auto pending = static_cast<std::size_t>(std::ranges::count_if(
        places, [](const Place& place) { return place.missing && !place.slot->overflow; }));
    const auto full = [&]() STINT_REQUIRES(mutex_) {
      return table_.size() - stats_.overflow_buckets + pending >= options_.max_buckets;
    };
    for (std::size_t looks = 0; full() && looks < kMostLooks; ++looks) {
      free_spent(now, 1, places);
    }
    return !full();
  }

  static void check(AdmissionRecord& record, Places& places) {
    for (Place& place : places) {
      const auto slots = record.slots_of(*place.slot);
      for (std::size_t i = 0; i < slots.size(); ++i) {
        LocalLimit& limit = (*place.bucket)[i];
        // Whoever takes no slot has no say in how long those of others live.
        limit.advance({record.now, record.id, slots[i].skip ? kMaxWindow : record.lease_ttl});
        limit::Check check{Verdict::skipped, Duration::zero()};
        if (!slots[i].skip) check = limit.check(slots[i].need, record.now);
        slots[i].verdict = check.verdict;
        slots[i].wait = check.wait;
        place.fits = place.fits && !refuses(slots[i]);
      }
      if (!place.fits && !place.slot->shadow) record.outcome = Outcome::refused;
    }
  }

  void charge_and_answer(AdmissionRecord& record, Places& places, bool only_look)
      STINT_REQUIRES(mutex_) {
    for (Place& place : places) {
      const bool charge = place.fits && record.outcome == Outcome::admitted;
      const auto slots = record.slots_of(*place.slot);
      for (std::size_t i = 0; i < slots.size(); ++i) {
        LocalLimit& limit = (*place.bucket)[i];
        if (charge && !slots[i].skip) {
          slots[i].charged =
              limit.charge(slots[i].charge, {record.now, record.id, record.lease_ttl},
                           place.slot->maybe_charged);
        }
        const limit::Reading reading = limit.read(record.now);
        slots[i].remaining = reading.remaining;
        slots[i].reset = reading.reset;
        if (only_look) slots[i].charged = {};
      }
      if (charge && !only_look) keep(place);
    }
  }

  // The bucket was charged: it stays, and the record learns where its charges are.
  void keep(Place& place) STINT_REQUIRES(mutex_) {
    LocalBucket& bucket = *place.bucket;
    if (bucket.overflow()) {
      ++stats_.overflowed;
    } else if (!bucket.unsent()) {
      ++stats_.unsent;
    }
    place.slot->charged = true;
    place.slot->local = bucket.generation(generation_ + 1);
    generation_ = std::max(generation_, place.slot->local);
    if (!place.fresh) return;
    if (bucket.overflow()) ++stats_.overflow_buckets;
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const std::uint32_t slot = free_.back();
    table_.emplace(bucket.key(), slot);
    free_.pop_back();
    slots_[slot] = std::move(place.fresh);
  }

  // Looks at the next few buckets, frees those that are spent, but none of `keep`.
  void free_spent(TimePoint now, std::size_t looks, std::span<const Place> keep = {})
      STINT_REQUIRES(mutex_) {
    for (std::size_t i = 0; i < std::min(looks, slots_.size()); ++i) {
      hand_ = hand_ + 1 < slots_.size() ? hand_ + 1 : 0;
      const bool kept = std::ranges::count(keep, slots_[hand_].get(), &Place::bucket) > 0;
      if (!kept) free_if_spent(hand_, now);
    }
  }

  void free_if_spent(std::size_t slot, TimePoint now) STINT_REQUIRES(mutex_) {
    std::unique_ptr<LocalBucket>& bucket = slots_[slot];
    if (bucket == nullptr || !bucket->spent(now)) return;
    if (bucket->overflow()) {
      --stats_.overflow_buckets;
    } else if (bucket->unsent()) {
      --stats_.unsent;
    }
    table_.erase(bucket->key());
    bucket.reset();
    free_.push_back(static_cast<std::uint32_t>(slot));
  }

  LocalOptions options_;
  mutable base::Mutex mutex_;
  std::vector<std::unique_ptr<LocalBucket>> slots_ STINT_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> free_ STINT_GUARDED_BY(mutex_);
  // The keys are those of the buckets.
  boost::unordered_flat_map<std::string_view, std::uint32_t, Hash> table_ STINT_GUARDED_BY(mutex_);
  std::size_t hand_ STINT_GUARDED_BY(mutex_) = 0;
  std::uint64_t begun_ STINT_GUARDED_BY(mutex_) = 0;
  std::uint64_t generation_ STINT_GUARDED_BY(mutex_) = 0;
  LocalStats stats_ STINT_GUARDED_BY(mutex_);
};

LocalCounters::LocalCounters(LocalOptions options) : impl_(std::make_unique<Impl>(options)) {}
LocalCounters::~LocalCounters() = default;

void LocalCounters::decide(AdmissionRecord& record, Undecided undecided, TimePoint now,
                           std::int64_t replicas, const Heard& heard) {
  impl_->decide(record, undecided, now, replicas, heard, false);
}
void LocalCounters::peek(AdmissionRecord& record, Undecided undecided, TimePoint now,
                         std::int64_t replicas, const Heard& heard) {
  impl_->decide(record, undecided, now, replicas, heard, true);
}
bool LocalCounters::settle(AdmissionRecord& record, std::size_t bucket, TimePoint now) {
  return impl_->settle(record, record.buckets[bucket], now);
}
bool LocalCounters::renew(AdmissionRecord& record, std::size_t bucket, TimePoint now) {
  return impl_->renew(record, record.buckets[bucket], now);
}
LocalCounters::Taken LocalCounters::take_spent(TimePoint now, std::size_t max_buckets,
                                               std::uint64_t cursor, const Wanted& wanted) {
  return impl_->take_spent(now, max_buckets, cursor, wanted);
}
void LocalCounters::restore(SpentBucket spent, TimePoint now) { impl_->restore(spent, now); }
void LocalCounters::told() { impl_->told(); }
LocalStats LocalCounters::stats() const { return impl_->stats(); }

}  // namespace stint::store
