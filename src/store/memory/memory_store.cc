#include "store/memory/memory_store.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <optional>
#include <string>
#include <utility>

#include "base/hash.h"
#include "limit/bucket_key.h"
#include "store/memory/stripe.h"

namespace stint::store {
namespace {

using limit::Moment;

// Below so many buckets a stripe, evicting from the own stripe only would tell on fairness.
constexpr std::size_t kMinStripe = 4096;
constexpr std::size_t kMaxStripes = 64;
// The most entries that one call of acquire or settle looks at to free memory.
constexpr std::size_t kMaxWork = 64;
// Every so many calls a stripe has another one looked after, so that spent buckets are freed also
// where nobody comes by any more.
constexpr std::uint64_t kCallsPerVisit = 8;
// For looking at leases that were given by whatever ttl: none is cut.
constexpr Duration kNoTtl = kMaxWindow;
// Slots that one call of reset or list looks at.
constexpr std::size_t kSweep = 4096;
constexpr Duration kWarnEvery = std::chrono::minutes{1};

std::size_t stripe_count(std::size_t max_buckets) {
  return std::clamp<std::size_t>(std::bit_floor(std::max<std::size_t>(max_buckets / kMinStripe, 1)),
                                 1, kMaxStripes);
}

void answer(LimitSlot& slot, const limit::Reading& reading) noexcept {
  slot.remaining = reading.remaining;
  slot.reset = reading.reset;
}

// Which counter of the bucket a slot of the record is about: the same place, unless a reload has
// changed the bucket's limits since.
std::optional<std::size_t> place_of(const Bucket& bucket, const BucketSlot& slot, std::size_t i) {
  if (bucket.has_limits(slot.limits)) return i;
  return bucket.limits().find((*slot.limits)[i].name);
}

bool settles_by_id(const limit::Spec& spec) noexcept {
  return spec.name.algorithm == Algorithm::sliding_log ||
         spec.name.algorithm == Algorithm::concurrency;
}

// Whether settling the bucket changes anything; a commit of requests alone does not.
bool changes(const limit::LimitSet& limits, std::span<const LimitSlot> slots) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].skip || slots[i].actual == slots[i].charged.amount) continue;
    if (slots[i].actual == 0 || !settles_by_id(limits[i])) return true;
  }
  return false;
}

}  // namespace

// What a call knows of one bucket of its record, under the locks of the stripes.
struct Located {
  HashedKey key;
  Stripe* stripe = nullptr;
  Bucket* bucket = nullptr;  // the one that decides: found in the stripe, `fresh` or `copy`
  Bucket::Owner fresh;       // not yet in the stripe
  Bucket* found = nullptr;   // in the stripe, where `copy` decides in its place
  Bucket::Owner copy;
  bool ahead = false;        // written before this store's time was set back
  Bucket* victim = nullptr;  // makes way for `fresh`
};

class MemoryStore::Impl {
 public:
  Impl(MemoryStoreOptions options, std::unique_ptr<TimeSource> time)
      : options_(std::move(options)), time_(std::move(time)) {
    options_.max_buckets = std::max<std::size_t>(options_.max_buckets, 1);
    options_.expire_per_call = std::min(options_.expire_per_call, kMaxWork);
    const std::size_t count = stripe_count(options_.max_buckets);
    const TimePoint start = time_->now();
    stripes_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      // The first ones take what does not divide.
      const std::size_t more = i < options_.max_buckets % count ? 1 : 0;
      stripes_.push_back(std::make_unique<Stripe>(start, options_.max_buckets / count + more));
    }
    next_warning_ = start.time_since_epoch().count();
  }

  void acquire(AdmissionRecord& record, bool only_look) {
    // The policies' shared buckets lie in stripes of their own, which are locked only when it
    // turns out that one is needed.
    std::size_t budget = kMaxWork;
    if (!try_acquire(record, only_look, false, budget)) {
      try_acquire(record, only_look, true, budget);
      warn_of_overflow(record);
    }
  }

  void settle(AdmissionRecord& record) {
    for (BucketSlot& slot : record.buckets) {
      const auto slots = record.slots_of(slot);
      if (!slot.charged || !changes(*slot.limits, slots)) continue;
      if (slot.overflow) {
        settle_overflow(record, slot);
      } else if (!settle_in(record, slot, slot.key, slot.text, false)) {
        settle_overflow(record, slot);
      }
    }
  }

  void renew(AdmissionRecord& record) {
    for (const BucketSlot& slot : record.buckets) {
      if (!slot.charged) continue;
      for (std::size_t i = 0; i < slot.limits->size(); ++i) {
        const LimitSlot& limit = record.slots[slot.first_slot + i];
        const bool lease = (*slot.limits)[i].name.unit == Unit::concurrency;
        if (lease && limit.charged.amount > 0) renew(record, slot, i);
      }
    }
  }

  template <class Visit>  // Visit(Stripe&, Bucket&, TimePoint now) -> bool: go on
  std::uint64_t sweep(std::string_view pattern, std::uint64_t cursor, Visit&& visit) {
    std::size_t stripe = cursor >> 32;
    std::size_t slot = cursor & 0xFFFFFFFF;
    const TimePoint now = time_->now();
    for (std::size_t seen = 0; stripe < stripes_.size(); ++stripe, slot = 0) {
      Stripe& current = *stripes_[stripe];
      const base::MutexLock lock(current.mutex);
      for (; slot < current.slot_count(); ++slot) {
        if (seen++ >= kSweep) return (std::uint64_t{stripe} << 32) | slot;
        Bucket* bucket = current.at_slot(slot);
        if (bucket == nullptr || bucket->spent(now)) continue;
        if (!limit::matches(pattern, bucket->text())) continue;
        if (!visit(current, *bucket, now)) return (std::uint64_t{stripe} << 32) | slot;
      }
    }
    return 0;
  }

  StoreStats stats() {
    StoreStats total;
    for (const auto& stripe : stripes_) {
      const base::MutexLock lock(stripe->mutex);
      const Stripe::Counts& counts = stripe->counts;
      total.buckets += stripe->size() + counts.overflow_buckets;
      total.overflow_buckets += counts.overflow_buckets;
      total.overflowed += counts.overflowed;
      total.expired += counts.expired;
      total.evicted += counts.evicted;
      total.max_work_per_call = std::max(total.max_work_per_call, counts.max_work);
    }
    return total;
  }

 private:
  using Places = boost::container::small_vector<Located, 4>;
  using Buckets = boost::container::small_vector<Bucket*, 8>;
  using Locked = boost::container::small_vector<Stripe*, 8>;
  // Counters as they were before an admission moved them to its time, in the order of its slots.
  using Saved = boost::container::small_vector<limit::Counter, 8>;

  [[nodiscard]] HashedKey hashed(std::string_view key) const noexcept {
    return {base::hash(key, options_.hash_seed), key};
  }
  // By the upper bits; the table of the stripe uses the lower ones.
  [[nodiscard]] std::size_t stripe_index(std::uint64_t hash) const noexcept {
    return (hash >> 40) & (stripes_.size() - 1);
  }
  [[nodiscard]] Stripe& stripe_of(const HashedKey& key) const noexcept {
    return *stripes_[stripe_index(key.hash)];
  }

  // Locks stripes in the order of their addresses, each once, so that no two calls wait for each
  // other.
  class LockAll {
   public:
    explicit LockAll(Locked& stripes) : stripes_(stripes) {
      std::ranges::sort(stripes_, std::less<>{});
      stripes_.erase(std::unique(stripes_.begin(), stripes_.end()), stripes_.end());
      lock();
    }
    ~LockAll() { unlock(); }
    LockAll(const LockAll&) = delete;
    LockAll& operator=(const LockAll&) = delete;

   private:
    void lock() STINT_NO_ANALYSIS {
      for (Stripe* stripe : stripes_) stripe->mutex.lock();
    }
    void unlock() STINT_NO_ANALYSIS {
      for (Stripe* stripe : stripes_) stripe->mutex.unlock();
    }
    Locked& stripes_;
  };

  // False: nothing was decided, a shared bucket is needed; call again with `overflow`.
  bool try_acquire(AdmissionRecord& record, bool only_look, bool overflow, std::size_t& budget) {
    Places places(record.buckets.size());
    Locked stripes;
    boost::container::small_vector<std::string, 1> overflow_keys;
    for (std::size_t i = 0; i < places.size(); ++i) {
      places[i].key = hashed(record.buckets[i].key);
      places[i].stripe = &stripe_of(places[i].key);
      stripes.push_back(places[i].stripe);
      if (!overflow) continue;
      overflow_keys.push_back(limit::overflow_key(record.buckets[i].policy));
      stripes.push_back(&stripe_of(hashed(overflow_keys.back())));
    }
    const LockAll lock(stripes);
    record.now = time_->now();
    if (!locate(record, places, budget)) {
      if (!overflow) return false;
      locate_overflow(record, places, overflow_keys);
    }
    use_copies(record, places, only_look);
    Saved saved;
    decide(record, places, saved);
    charge_and_answer(record, places, only_look);
    if (!only_look) leave_no_trace(record, places, saved);
    if (!only_look) expire(record.now, places, stripes, budget);
    return true;
  }

  // Finds the buckets, and room for those that are missing. False if there is no room for one.
  bool locate(AdmissionRecord& record, Places& places, std::size_t& budget) {
    Buckets keep;
    for (std::size_t i = 0; i < places.size(); ++i) {
      Located& place = places[i];
      record.buckets[i].overflow = false;
      place.bucket = place.stripe->find(place.key);
      if (place.bucket != nullptr) keep.push_back(place.bucket);
    }
    const std::size_t missing = places.size() - keep.size();
    const std::size_t share = missing > 0 ? budget / missing : 0;
    bool all = true;
    for (std::size_t i = 0; i < places.size(); ++i) {
      Located& place = places[i];
      if (place.bucket != nullptr) continue;
      if (!make_room(record.now, std::span(places).first(i + 1), keep, share, budget)) {
        all = false;
        continue;
      }
      const BucketSlot& slot = record.buckets[i];
      place.fresh = Bucket::create(place.key.hash, slot.key, slot.text, slot.limits, false);
      place.bucket = place.fresh.get();
    }
    return all;
  }

  // Room for the bucket of the last of `places`, in its stripe. The buckets of `keep` must stay;
  // looks at no more than `share` entries, which are taken off the budget.
  static bool make_room(TimePoint now, std::span<Located> places, Buckets& keep, std::size_t share,
                        std::size_t& budget) {
    Located& place = places.back();
    Stripe& stripe = *place.stripe;
    const auto pending = static_cast<std::size_t>(
        std::ranges::count_if(places.first(places.size() - 1), [&](const Located& other) {
          return other.stripe == &stripe && other.fresh && other.victim == nullptr;
        }));
    const auto full = [&] { return stripe.size() + pending >= stripe.capacity(); };
    if (!full()) return true;
    std::size_t work = stripe.expire(now, share / 2, keep);
    if (full()) {
      place.victim = stripe.victim(now, share - work, keep);
      work = share;
    }
    budget -= work;
    if (place.victim != nullptr) keep.push_back(place.victim);
    return place.victim != nullptr || !full();
  }

  // Gives the buckets that found no room the shared bucket of their policy.
  void locate_overflow(AdmissionRecord& record, Places& places,
                       std::span<const std::string> overflow_keys) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      Located& place = places[i];
      if (place.bucket != nullptr) continue;
      BucketSlot& slot = record.buckets[i];
      slot.overflow = true;
      place.key = hashed(overflow_keys[i]);
      place.stripe = &stripe_of(place.key);
      place.bucket = place.stripe->find(place.key);
      if (place.bucket == nullptr) {
        place.fresh =
            Bucket::create(place.key.hash, place.key.key, place.key.key, slot.limits, true);
        place.bucket = place.fresh.get();
      }
    }
  }

  // What is only looked at is not touched, and limits that a bucket does not have yet are put into
  // force only where it is charged.
  static void use_copies(const AdmissionRecord& record, Places& places, bool only_look) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      Located& place = places[i];
      const limit::LimitSetPtr& limits = record.buckets[i].limits;
      if (place.fresh || (!only_look && place.bucket->has_limits(limits))) continue;
      place.found = place.bucket;
      if (!place.bucket->has_limits(limits) && place.bucket->spent(record.now)) {
        place.copy = Bucket::create(place.key.hash, place.key.key, place.key.key, limits, false);
      } else {
        place.copy = place.bucket->clone();
        if (!place.copy->has_limits(limits)) place.copy = place.copy->with_limits(limits);
      }
      place.bucket = place.copy.get();
    }
  }

  static void decide(AdmissionRecord& record, Places& places, Saved& saved) {
    record.outcome = Outcome::admitted;
    for (std::size_t i = 0; i < places.size(); ++i) {
      BucketSlot& bucket = record.buckets[i];
      const auto counters = places[i].bucket->counters();
      const auto slots = record.slots_of(bucket);
      bool fits = true;
      for (std::size_t k = 0; k < slots.size(); ++k) {
        const limit::Spec& spec = (*bucket.limits)[k];
        // Whoever takes no slot has no say in how long those of others live.
        const Duration ttl = slots[k].skip ? kNoTtl : record.lease_ttl;
        const Moment at{record.now, record.id, ttl};
        places[i].ahead = places[i].ahead || counters[k].ahead(spec, at);
        saved.push_back(counters[k]);
        counters[k].advance(spec, at);
        limit::Check check{Verdict::skipped, Duration::zero()};
        if (!slots[k].skip) check = counters[k].check(spec, slots[k].need, record.now);
        slots[k].verdict = check.verdict;
        slots[k].wait = check.wait;
        fits = fits && (slots[k].skip || check.verdict == Verdict::fits);
      }
      bucket.charged = fits;
      if (!fits && !bucket.shadow) record.outcome = Outcome::refused;
    }
  }

  void charge_and_answer(AdmissionRecord& record, Places& places, bool only_look) {
    const Moment at{record.now, record.id, record.lease_ttl};
    for (std::size_t i = 0; i < places.size(); ++i) {
      BucketSlot& bucket = record.buckets[i];
      Located& place = places[i];
      const auto slots = record.slots_of(bucket);
      bucket.charged = bucket.charged && record.outcome == Outcome::admitted;
      const bool stays = bucket.charged || place.ahead;
      if (stays && place.found != nullptr && !only_look) put_into_force(record, i, place);
      const auto counters = place.bucket->counters();
      for (std::size_t k = 0; k < slots.size(); ++k) {
        const limit::Spec& spec = (*bucket.limits)[k];
        slots[k].charged = {};
        if (bucket.charged && !slots[k].skip) {
          slots[k].charged = counters[k].charge(spec, slots[k].charge, at);
        }
        answer(slots[k], counters[k].read(spec, record.now));
      }
      if (only_look || !bucket.charged) {
        bucket.charged = false;
        continue;
      }
      if (bucket.overflow) ++place.stripe->counts.overflowed;
      if (place.victim != nullptr) {
        place.stripe->remove(*place.victim);
        ++place.stripe->counts.evicted;
      }
      if (place.fresh) place.stripe->attach(std::move(place.fresh));
      bucket.birth = place.stripe->birth(*place.bucket);
    }
  }

  // The bucket itself instead of the copy that decided, by the same limits and at the same time.
  static void put_into_force(AdmissionRecord& record, std::size_t number, Located& place) {
    const BucketSlot& slot = record.buckets[number];
    place.bucket = place.stripe->fit(place.found, slot.limits, record.now);
    const auto slots = record.slots_of(slot);
    for (std::size_t k = 0; k < slots.size(); ++k) {
      const Duration ttl = slots[k].skip ? kNoTtl : record.lease_ttl;
      place.bucket->counters()[k].advance((*slot.limits)[k], Moment{record.now, record.id, ttl});
    }
  }

  // A bucket that was not charged is as it was before, unless it lay ahead: whoever waits is not to
  // wait for that time to come again. Of logs and leases only what has expired is gone, which shows
  // nowhere where time does not step back.
  static void leave_no_trace(const AdmissionRecord& record, Places& places, const Saved& saved) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const BucketSlot& bucket = record.buckets[i];
      const std::size_t first = next;
      next += bucket.limits->size();
      const Located& place = places[i];
      if (bucket.charged || place.ahead || place.fresh || place.copy) continue;
      const auto counters = place.bucket->counters();
      for (std::size_t k = 0; k < counters.size(); ++k) {
        const Algorithm algorithm = (*bucket.limits)[k].name.algorithm;
        const bool owns =
            algorithm == Algorithm::sliding_log || algorithm == Algorithm::concurrency;
        if (!owns) counters[k] = saved[first + k];
      }
    }
  }

  // Frees a few spent buckets of the stripes that are locked anyhow, and now and then of another.
  void expire(TimePoint now, Places& places, const Locked& locked, std::size_t& budget) {
    if (places.empty()) return;
    const auto a_few = [&] { return std::min(options_.expire_per_call, budget); };
    for (Located& place : places) budget -= place.stripe->expire(now, a_few(), {});
    Stripe::Counts& counts = places.front().stripe->counts;
    if (++counts.calls % kCallsPerVisit == 0) {
      // Not waited for: whoever holds it frees its buckets himself.
      Stripe& other = *stripes_[(counts.calls / kCallsPerVisit) % stripes_.size()];
      if (std::ranges::count(locked, &other) == 0 && other.mutex.try_lock()) {
        budget -= other.expire(now, a_few(), {});
        other.mutex.unlock();
      }
    }
    counts.max_work = std::max<std::uint64_t>(counts.max_work, kMaxWork - budget);
  }

  // False: the bucket is gone, something is to be charged, and there is no room for a new one.
  bool settle_in(AdmissionRecord& record, const BucketSlot& slot, std::string_view key,
                 std::string_view text, bool overflow) {
    const HashedKey hashed_key = hashed(key);
    Stripe& stripe = stripe_of(hashed_key);
    const base::MutexLock lock(stripe.mutex);
    const Moment at{time_->now(), record.id, kNoTtl};
    Bucket* bucket = stripe.find(hashed_key);
    if (bucket != nullptr && !bucket->has_limits(slot.limits) && bucket->spent(at.now)) {
      stripe.remove(*bucket);
      bucket = nullptr;
    }
    if (bucket != nullptr) {
      const bool charged_one = stripe.birth(*bucket) == slot.birth;
      settle_counters(record, slot, *bucket, charged_one, at);
      return true;
    }
    auto fresh = Bucket::create(hashed_key.hash, key, text, slot.limits, overflow);
    settle_counters(record, slot, *fresh, false, at);
    if (fresh->spent_at() <= at.now) return true;  // only given back: to something that is gone
    if (!overflow && stripe.size() >= stripe.capacity()) {
      const std::size_t work = stripe.expire(at.now, kMaxWork / 2, {});
      if (stripe.size() >= stripe.capacity()) {
        Bucket* victim = stripe.victim(at.now, kMaxWork - work, {});
        if (victim == nullptr) return false;
        stripe.remove(*victim);
        ++stripe.counts.evicted;
      }
    }
    stripe.attach(std::move(fresh));
    return true;
  }

  void settle_overflow(AdmissionRecord& record, const BucketSlot& slot) {
    const std::string key = limit::overflow_key(slot.policy);
    settle_in(record, slot, key, key, true);
  }

  // `charged_one`: it is the bucket that was charged, not one that has its key by now: that one
  // owes nothing back. Log entries and leases are told by their id.
  static void settle_counters(AdmissionRecord& record, const BucketSlot& slot, Bucket& bucket,
                              bool charged_one, const Moment& at) {
    const auto slots = record.slots_of(slot);
    bucket.advance(at);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const auto place = place_of(bucket, slot, i);
      if (!place || slots[i].skip) continue;
      const bool gives_back = slots[i].actual < slots[i].charged.amount;
      if (!charged_one && gives_back && !settles_by_id((*slot.limits)[i])) continue;
      bucket.counters()[*place].settle(bucket.limits()[*place], slots[i].charged, slots[i].actual,
                                       at);
    }
  }

  void renew(AdmissionRecord& record, const BucketSlot& slot, std::size_t limit) {
    std::string overflow_key;
    if (slot.overflow) overflow_key = limit::overflow_key(slot.policy);
    const std::string_view key = slot.overflow ? std::string_view(overflow_key) : slot.key;
    const std::string_view text = slot.overflow ? key : slot.text;
    const HashedKey hashed_key = hashed(key);
    Stripe& stripe = stripe_of(hashed_key);
    const base::MutexLock lock(stripe.mutex);
    const TimePoint now = time_->now();
    const TimePoint expiry = now + record.lease_ttl;
    Bucket* bucket = stripe.find(hashed_key);
    if (bucket != nullptr && !bucket->has_limits(slot.limits) && bucket->spent(now)) {
      stripe.remove(*bucket);
      bucket = nullptr;
    }
    if (bucket != nullptr) {
      const auto place = place_of(*bucket, slot, limit);
      bucket->advance({now, {}, kNoTtl});
      if (place) bucket->counters()[*place].renew(record.id, expiry);
      return;
    }
    // Reset, or expired while nobody renewed. A running request counts, at the cap too: there
    // are no more such buckets than requests in flight.
    auto fresh = Bucket::create(hashed_key.hash, key, text, slot.limits, slot.overflow);
    fresh->advance({now, {}, kNoTtl});
    fresh->counters()[limit].renew(record.id, expiry);
    stripe.attach(std::move(fresh));
  }

  void warn_of_overflow(const AdmissionRecord& record) {
    if (!options_.on_warning) return;
    std::int64_t due = next_warning_.load(std::memory_order_relaxed);
    const std::int64_t now = record.now.time_since_epoch().count();
    if (now < due || !next_warning_.compare_exchange_strong(due, now + kWarnEvery.count(),
                                                            std::memory_order_relaxed)) {
      return;
    }
    for (const BucketSlot& bucket : record.buckets) {
      if (!bucket.overflow) continue;
      options_.on_warning("the memory store is full and no bucket can go: new keys of policy " +
                          std::string(bucket.policy) + " share one bucket; raise max_buckets");
      return;
    }
  }

  MemoryStoreOptions options_;
  std::unique_ptr<TimeSource> time_;
  std::vector<std::unique_ptr<Stripe>> stripes_;
  std::atomic<std::int64_t> next_warning_{0};
};

MemoryStore::MemoryStore(MemoryStoreOptions options, std::unique_ptr<TimeSource> time)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(time))) {}
MemoryStore::~MemoryStore() = default;

void MemoryStore::acquire(AdmissionRecord& record) { impl_->acquire(record, false); }
void MemoryStore::peek(AdmissionRecord& record) { impl_->acquire(record, true); }
void MemoryStore::settle(AdmissionRecord& record) { impl_->settle(record); }
void MemoryStore::renew(std::span<AdmissionRecord* const> records) {
  for (AdmissionRecord* record : records) impl_->renew(*record);
}

void MemoryStore::acquire(AdmissionRecord& record, Done done) {
  acquire(record);
  done();
}
void MemoryStore::peek(AdmissionRecord& record, Done done) {
  peek(record);
  done();
}
void MemoryStore::settle(AdmissionRecord& record, Settled done) {
  settle(record);
  done({});
}
void MemoryStore::renew(std::span<AdmissionRecord* const> records, Done done) {
  renew(records);
  done();
}

void MemoryStore::reset(std::string_view pattern, std::uint64_t cursor, ResetPage& page,
                        Done done) {
  page = {};
  page.next = impl_->sweep(pattern, cursor, [&](Stripe& stripe, Bucket& bucket, TimePoint) {
    stripe.remove(bucket);
    ++page.removed;
    return true;
  });
  done();
}

void MemoryStore::list(std::string_view pattern, std::uint64_t cursor, std::size_t page_size,
                       BucketPage& page, Done done) {
  page = {};
  page.next = impl_->sweep(pattern, cursor, [&](Stripe&, Bucket& bucket, TimePoint now) {
    if (page.buckets.size() >= page_size) return false;
    bucket.advance({now, {}, kNoTtl});
    BucketInfo info{std::string(bucket.text()), {}};
    for (std::size_t i = 0; i < bucket.limits().size(); ++i) {
      const limit::Spec& spec = bucket.limits()[i];
      const limit::Counter& counter = bucket.counters()[i];
      const limit::Reading reading = counter.read(spec, now);
      info.counters.push_back({spec.name.unit, spec.name.algorithm, spec.name.window,
                               counter.value(spec), spec.quota, spec.capacity, reading.remaining,
                               reading.reset});
    }
    page.buckets.push_back(std::move(info));
    return true;
  });
  done();
}

StoreStats MemoryStore::stats() const { return impl_->stats(); }

}  // namespace stint::store
