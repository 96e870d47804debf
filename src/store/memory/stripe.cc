#include "store/memory/stripe.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/saturating.h"
#include "store/memory/grow.h"

namespace stint::store {
namespace {

// The unit of the queue's times: 32 bits of it last 17 years.
constexpr Duration kDueUnit = std::chrono::milliseconds{128};

// In the measure of Bucket::left: more than any bucket that is not spent; so much left that a
// better victim is not worth looking for; and how many looks are enough once one is found. A
// flood of keys seen once finds such a bucket at the first look.
constexpr std::int64_t kSpent = 1025;
constexpr std::int64_t kGoodVictim = 896;
constexpr std::size_t kEnoughLooks = 16;

std::uint32_t due_units(std::int64_t units) noexcept {
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max() - 1;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(units, 0, kMost));
}

// For looking at a bucket outside an admission: its leases were given by longer or shorter
// ttls, and none is cut here.
limit::Moment moment(TimePoint now) { return {now, {}, std::chrono::hours{1}}; }

}  // namespace

Stripe::~Stripe() {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) Bucket::Owner{at_slot(slot)}.reset();
}

Bucket* Stripe::find(const HashedKey& key) noexcept {
  const auto found = table_.find(key);
  return found == table_.end() ? nullptr : *found;
}

void Stripe::attach(Bucket::Owner owner) {
  if (first_free_ == kNoSlot) {
    grow(slots_, slots_.size() + 1);
    grow(births_, slots_.size() + 1);
    births_.push_back(0);
    slots_.push_back((std::uintptr_t{kNoSlot} << 1) | kFree);
    first_free_ = static_cast<std::uint32_t>(slots_.size() - 1);
  }
  due_.push(first_free_, due_at(owner->spent_at()));
  table_.insert(owner.get());
  Bucket* bucket = owner.release();
  bucket->slot = first_free_;
  first_free_ = static_cast<std::uint32_t>(slots_[bucket->slot] >> 1);
  set_slot(bucket->slot, bucket);
  births_[bucket->slot] = ++births_so_far_;
  if (bucket->overflow()) ++counts.overflow_buckets;
}

void Stripe::remove(Bucket& bucket) noexcept {
  if (bucket.overflow()) --counts.overflow_buckets;
  table_.erase(&bucket);
  due_.remove(bucket.slot);
  slots_[bucket.slot] = (std::uintptr_t{first_free_} << 1) | kFree;
  first_free_ = bucket.slot;
  Bucket::Owner{&bucket}.reset();
}

Bucket* Stripe::fit(Bucket* bucket, const limit::LimitSetPtr& limits, TimePoint now) {
  if (bucket->has_limits(limits)) return bucket;
  const bool spent = bucket->spent(now);
  if (!spent && bucket->limits().same_names(*limits)) {
    bucket->set_limits(limits);
    return bucket;
  }
  Bucket::Owner other = spent ? Bucket::create(bucket->hash(), bucket->key(), bucket->text(),
                                               limits, bucket->overflow())
                              : bucket->with_limits(limits);
  other->slot = bucket->slot;
  if (spent) births_[other->slot] = ++births_so_far_;
  table_.erase(bucket);
  table_.insert(other.get());
  set_slot(bucket->slot, other.get());
  Bucket::Owner{bucket}.reset();
  return other.release();
}

std::size_t Stripe::expire(TimePoint now, std::size_t budget, std::span<Bucket* const> keep) {
  const std::uint32_t due = due_units((now - start_) / kDueUnit);
  std::size_t work = 0;
  for (; work < budget && !due_.empty() && due_.first_due() <= due; ++work) {
    Bucket* bucket = at_slot(due_.first_slot());
    const TimePoint spent = bucket->spent_at();
    if (spent > now || std::ranges::count(keep, bucket) > 0) {
      due_.move(bucket->slot, std::max(due_at(spent), due + 1));
    } else {
      remove(*bucket);
      ++counts.expired;
    }
  }
  return work;
}

Bucket* Stripe::victim(TimePoint now, std::size_t budget, std::span<Bucket* const> keep) {
  Bucket* best = nullptr;
  std::int64_t best_left = -1;
  const std::size_t most = std::min(budget, slots_.size());
  for (std::size_t work = 0; work < most; ++work) {
    if (best_left >= kGoodVictim || (best != nullptr && work >= kEnoughLooks)) break;
    if (hand_ >= slots_.size()) hand_ = 0;
    Bucket* bucket = at_slot(hand_++);
    if (bucket == nullptr || bucket->overflow() || std::ranges::count(keep, bucket) > 0) continue;
    bucket->advance(moment(now));
    std::int64_t left = bucket->left(now);
    if (left >= 0 && bucket->spent(now)) left = kSpent;
    if (left > best_left) {
      best = bucket;
      best_left = left;
    }
  }
  return best;
}

std::uint32_t Stripe::due_at(TimePoint when) const noexcept {
  if (when <= start_) return 0;
  return due_units(base::div_ceil((when - start_).count(), kDueUnit.count()));
}

}  // namespace stint::store
