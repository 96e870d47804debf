#include "tests/model/reference_store.h"

#include <algorithm>
#include <utility>

#include "limit/bucket_key.h"

namespace stint::model {
namespace {

using base::MutexLock;
using limit::Check;
using limit::Reading;
using store::AdmissionRecord;
using store::BucketSlot;
using store::LimitSlot;

// Longer than any ttl: for those who cut no leases.
constexpr Duration kNoCut = std::chrono::days{366};
constexpr std::size_t kKeptText = 1024;
constexpr std::size_t kResetPage = 100;

}  // namespace

ReferenceStore::ReferenceStore(std::function<TimePoint()> time) : time_(std::move(time)) {}

ReferenceStore::Bucket ReferenceStore::Bucket::copy() const {
  Bucket other{number, text, limits, {}};
  for (const auto& counter : counters) other.counters.push_back(counter->copy());
  return other;
}

ReferenceLimit* ReferenceStore::Bucket::find(const limit::LimitName& name) const {
  const auto place = limits->find(name);
  return place ? counters[*place].get() : nullptr;
}

void ReferenceStore::Bucket::reload(const limit::LimitSetPtr& others) {
  std::vector<std::unique_ptr<ReferenceLimit>> kept;
  for (const limit::Spec& spec : others->specs()) {
    const ReferenceLimit* counter = find(spec.name);
    kept.push_back(counter != nullptr ? counter->copy() : ReferenceLimit::fresh(spec));
    kept.back()->reload(spec);
  }
  counters = std::move(kept);
  limits = others;
}

void ReferenceStore::Bucket::advance(TimePoint now, Duration lease_ttl) {
  for (const auto& counter : counters) counter->advance(now, lease_ttl);
}

bool ReferenceStore::Bucket::spent(TimePoint now) const {
  return std::ranges::all_of(counters, [&](const auto& counter) { return counter->spent(now); });
}

const ReferenceStore::Bucket* ReferenceStore::find(const BucketSlot& slot, TimePoint now) const {
  const auto found = buckets_.find(slot.key);
  if (found == buckets_.end()) return nullptr;
  const Bucket& bucket = found->second;
  return bucket.limits != slot.limits && bucket.spent(now) ? nullptr : &bucket;
}

ReferenceStore::Bucket ReferenceStore::fresh(const BucketSlot& slot, TimePoint now) {
  Bucket bucket{next_number_++, std::string(slot.text), slot.limits, {}};
  for (const limit::Spec& spec : slot.limits->specs()) {
    bucket.counters.push_back(ReferenceLimit::fresh(spec));
  }
  bucket.advance(now, kNoCut);
  return bucket;
}

ReferenceStore::Bucket& ReferenceStore::find_or_make(const BucketSlot& slot, TimePoint now) {
  if (find(slot, now) == nullptr) {
    buckets_.insert_or_assign(std::string(slot.key), fresh(slot, now));
  }
  return buckets_.find(slot.key)->second;
}

void ReferenceStore::decide(AdmissionRecord& record, bool charge) {
  record.now = time_();
  // The buckets as they are now: copies, so that nothing is changed before all is decided.
  std::vector<Bucket> buckets;
  std::vector<bool> ahead(record.buckets.size(), false);
  for (const BucketSlot& slot : record.buckets) {
    const Bucket* found = find(slot, record.now);
    buckets.push_back(found != nullptr ? found->copy() : fresh(slot, record.now));
    buckets.back().reload(slot.limits);
    const auto slots = record.slots_of(slot);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const Duration ttl = slots[i].skip ? kNoCut : record.lease_ttl;
      ReferenceLimit& counter = *buckets.back().counters[i];
      if (found != nullptr && counter.ahead(record.now, ttl)) ahead[buckets.size() - 1] = true;
      counter.advance(record.now, ttl);
    }
  }

  std::vector<bool> fits(buckets.size(), true);
  record.outcome = Outcome::admitted;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const auto slots = record.slots_of(record.buckets[b]);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      Check check{Verdict::skipped, Duration{0}};
      if (!slots[i].skip) check = buckets[b].counters[i]->check(slots[i].need);
      slots[i].verdict = check.verdict;
      slots[i].wait = check.wait;
      if (!slots[i].skip && check.verdict != Verdict::fits) fits[b] = false;
    }
    if (!fits[b] && !record.buckets[b].shadow) record.outcome = Outcome::refused;
  }

  for (std::size_t b = 0; b < buckets.size(); ++b) {
    BucketSlot& slot = record.buckets[b];
    const bool charged = fits[b] && record.outcome == Outcome::admitted;
    const auto slots = record.slots_of(slot);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      ReferenceLimit& counter = *buckets[b].counters[i];
      slots[i].charged = {};
      if (charged && !slots[i].skip) {
        const limit::Charge made =
            counter.charge(slots[i].charge, record.id, record.now + record.lease_ttl);
        if (charge) slots[i].charged = made;
      }
      const Reading reading = counter.read();
      slots[i].remaining = reading.remaining;
      slots[i].reset = reading.reset;
    }
    slot.charged = charge && charged;
    slot.birth = buckets[b].number;
    slot.overflow = false;
    if (charge && (charged || ahead[b])) {
      buckets_.insert_or_assign(std::string(slot.key), std::move(buckets[b]));
    }
  }
}

void ReferenceStore::settle(const AdmissionRecord& record, const BucketSlot& slot) {
  const auto slots = record.slots_of(slot);
  bool changes = false;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].skip || slots[i].actual == slots[i].charged.amount) continue;
    const Algorithm algorithm = (*slot.limits)[i].name.algorithm;
    const bool by_id = algorithm == Algorithm::sliding_log || algorithm == Algorithm::concurrency;
    changes = changes || !by_id || slots[i].actual == 0;  // of an entry: it goes or stays
  }
  if (!slot.charged || !changes) return;

  const TimePoint now = time_();
  Bucket& bucket = find_or_make(slot, now);
  bucket.advance(now, kNoCut);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    ReferenceLimit* counter = bucket.find((*slot.limits)[i].name);
    if (counter == nullptr || slots[i].skip) continue;
    // A bucket that came later owes nothing back for the one that was charged.
    const Algorithm algorithm = (*slot.limits)[i].name.algorithm;
    const bool by_id = algorithm == Algorithm::sliding_log || algorithm == Algorithm::concurrency;
    const bool gives_back = slots[i].actual < slots[i].charged.amount;
    if (gives_back && !by_id && bucket.number != slot.birth) continue;
    counter->settle(slots[i].charged, slots[i].actual, record.id);
  }
}

std::map<std::uint64_t, std::string> ReferenceStore::matching(std::string_view pattern,
                                                              std::uint64_t cursor) const {
  const TimePoint now = time_();
  std::map<std::uint64_t, std::string> keys;
  for (const auto& [key, bucket] : buckets_) {
    if (bucket.number < cursor || bucket.spent(now)) continue;
    if (limit::matches(pattern, bucket.text)) keys.emplace(bucket.number, key);
  }
  return keys;
}

void ReferenceStore::acquire(AdmissionRecord& record, store::Done done) {
  {
    const MutexLock lock(mutex_);
    decide(record, true);
  }
  done();
}

void ReferenceStore::peek(AdmissionRecord& record, store::Done done) {
  {
    const MutexLock lock(mutex_);
    decide(record, false);
  }
  done();
}

void ReferenceStore::settle(AdmissionRecord& record, store::Settled done) {
  {
    const MutexLock lock(mutex_);
    for (const BucketSlot& slot : record.buckets) settle(record, slot);
  }
  done({});
}

void ReferenceStore::renew(std::span<AdmissionRecord* const> records, store::Done done) {
  {
    const MutexLock lock(mutex_);
    const TimePoint now = time_();
    for (const AdmissionRecord* record : records) {
      for (const BucketSlot& slot : record->buckets) {
        const auto slots = record->slots_of(slot);
        for (std::size_t i = 0; i < slots.size(); ++i) {
          const limit::LimitName& name = (*slot.limits)[i].name;
          const bool lease = name.unit == Unit::concurrency && slots[i].charged.amount > 0;
          if (!slot.charged || !lease) continue;
          Bucket& bucket = find_or_make(slot, now);
          bucket.advance(now, kNoCut);
          ReferenceLimit* counter = bucket.find(name);
          if (counter != nullptr) counter->renew(record->id, now + record->lease_ttl);
        }
      }
    }
  }
  done();
}

void ReferenceStore::reset(std::string_view pattern, std::uint64_t cursor, store::ResetPage& page,
                           store::Done done) {
  page = {};
  {
    const MutexLock lock(mutex_);
    for (const auto& [number, key] : matching(pattern, cursor)) {
      if (page.removed == kResetPage) {
        page.next = number;
        break;
      }
      buckets_.erase(buckets_.find(key));
      ++page.removed;
    }
  }
  done();
}

void ReferenceStore::list(std::string_view pattern, std::uint64_t cursor, std::size_t page_size,
                          BucketPage& page, store::Done done) {
  page = {};
  {
    const MutexLock lock(mutex_);
    for (const auto& [number, key] : matching(pattern, cursor)) {
      if (page.buckets.size() == page_size) {
        page.next = number;
        break;
      }
      Bucket bucket = buckets_.find(key)->second.copy();
      bucket.advance(time_(), kNoCut);
      BucketInfo info{bucket.text.substr(0, kKeptText), {}};
      for (std::size_t i = 0; i < bucket.counters.size(); ++i) {
        const limit::Spec& spec = (*bucket.limits)[i];
        const Reading reading = bucket.counters[i]->read();
        info.counters.push_back({spec.name.unit, spec.name.algorithm, spec.name.window,
                                 bucket.counters[i]->value(), spec.quota, spec.capacity,
                                 reading.remaining, reading.reset});
      }
      page.buckets.push_back(std::move(info));
    }
  }
  done();
}

store::StoreStats ReferenceStore::stats() const {
  const MutexLock lock(mutex_);
  store::StoreStats stats;
  stats.buckets = buckets_.size();
  return stats;
}

}  // namespace stint::model
