#include "store/redis/heard.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <limits>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/mutex.h"
#include "limit/fixed_window.h"

namespace stint::store {
namespace {

// Below so many buckets a stripe, one lock does.
constexpr std::size_t kMinStripe = 64;
constexpr std::size_t kMaxStripes = 64;
// Answers of one server may pass each other on their way through the threads of this process; an
// older one by more than this comes from a clock that was set back.
constexpr Duration kOutOfOrder = std::chrono::seconds{1};
// Notes looked at for being over: by one that is new, and by every so many that are not.
constexpr int kLooksOfNew = 2;
constexpr std::uint32_t kNotesPerLook = 8;
// Full: so many notes that were renewed lately are passed over for one that was not.
constexpr int kChances = 4;

// The level of a bucket of which nothing is left: what it owes shows in the time to full only.
std::int64_t owed_level(const limit::Spec& spec, Duration reset) noexcept {
  if (spec.quota == 0) return 0;
  const std::int64_t most = kMaxQuantity / spec.quota;  // no product beyond what counts exactly
  const std::int64_t ticks = std::min<std::int64_t>(reset / spec.tick, most);
  return std::min<std::int64_t>(spec.capacity - ticks * spec.quota / spec.window_ticks, 0);
}

HeardLimit heard_of(const limit::Spec& spec, const LimitSlot& slot, TimePoint at,
                    Duration lease_ttl) noexcept {
  const Duration reset = std::clamp(slot.reset, Duration::zero(), Duration{kMaxQuantity});
  if (spec.name.algorithm == Algorithm::token_bucket) {
    if (slot.remaining >= spec.capacity) return {spec.capacity, at};
    return {slot.remaining > 0 ? slot.remaining : owed_level(spec, reset), at + reset};
  }
  const std::int64_t used = std::clamp<std::int64_t>(spec.quota - slot.remaining, 0, spec.quota);
  if (used == 0) return {0, at};
  switch (spec.name.algorithm) {
    case Algorithm::fixed_window:
      return {used, limit::align(at, spec.window()) + spec.window()};
    case Algorithm::concurrency:
      return {used, at + lease_ttl};
    default:
      return {used, at + reset};
  }
}

}  // namespace

const HeardLimit* HeardBucket::find(const limit::LimitName& name) const noexcept {
  const auto place = limits->find(name);
  return place ? &values[*place] : nullptr;
}

// Notes in slots that a hand goes round, found by the hash of their key.
class Heard::Stripe {
 public:
  void set_capacity(std::size_t capacity) STINT_NO_ANALYSIS { capacity_ = capacity; }

  void note(std::uint64_t hash, const BucketSlot& bucket, std::span<const LimitSlot> slots,
            TimePoint store_now, Duration now, Duration lease_ttl) {
    const base::MutexLock lock(mutex_);
    const auto found = places_.find(hash);
    if (found != places_.end()) {
      Note& note = notes_[found->second];
      if (store_now < note.heard.at && note.heard.at - store_now < kOutOfOrder) return;
      if (!write(note, bucket, slots, store_now, now, lease_ttl)) forget(found->second);
      if (++calls_ % kNotesPerLook == 0) look(now);
      return;
    }
    Note fresh;
    fresh.hash = hash;
    if (!write(fresh, bucket, slots, store_now, now, lease_ttl)) return;
    fresh.lately = false;  // seen once: the first to go
    for (int i = 0; i < kLooksOfNew; ++i) look(now);
    const std::uint32_t place = make_room();
    notes_[place] = std::move(fresh);
    places_.emplace(hash, place);
  }

  [[nodiscard]] std::optional<HeardBucket> find(std::uint64_t hash) const {
    const base::MutexLock lock(mutex_);
    const auto found = places_.find(hash);
    if (found == places_.end()) return std::nullopt;
    return notes_[found->second].heard;
  }

  [[nodiscard]] std::size_t size() const {
    const base::MutexLock lock(mutex_);
    return places_.size();
  }

 private:
  struct Note {
    std::uint64_t hash = 0;
    HeardBucket heard;  // without limits: the slot is free
    Duration until{0};  // the steady time at which the last of its limits is whole
    bool lately = false;
  };
  struct Hash {  // the key is a hash already
    using is_avalanching = void;
    std::size_t operator()(std::uint64_t hash) const noexcept { return hash; }
  };

  // False: nothing is used, there is nothing to remember.
  static bool write(Note& note, const BucketSlot& bucket, std::span<const LimitSlot> slots,
                    TimePoint store_now, Duration now, Duration lease_ttl) {
    // Seldom another one: the count in it is shared by all threads.
    if (note.heard.limits != bucket.limits) {
      note.heard.limits = bucket.limits;
      note.heard.values.resize(slots.size());
    }
    note.heard.at = store_now;
    note.lately = true;
    TimePoint until = store_now;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      note.heard.values[i] = heard_of((*bucket.limits)[i], slots[i], store_now, lease_ttl);
      until = std::max(until, note.heard.values[i].until);
    }
    note.until = now + (until - store_now);
    return until > store_now;
  }

  void forget(std::uint32_t place) STINT_REQUIRES(mutex_) {
    places_.erase(notes_[place].hash);
    notes_[place] = {};
    free_.push_back(place);
  }

  // Moves the hand by one and forgets what it finds there if its time is over.
  void look(Duration now) STINT_REQUIRES(mutex_) {
    if (notes_.empty()) return;
    hand_ = hand_ + 1 < notes_.size() ? hand_ + 1 : 0;
    if (notes_[hand_].heard.limits && notes_[hand_].until <= now) forget(hand_);
  }

  [[nodiscard]] std::uint32_t make_room() STINT_REQUIRES(mutex_) {
    if (free_.empty() && notes_.size() < capacity_) {
      notes_.emplace_back();
      return static_cast<std::uint32_t>(notes_.size() - 1);
    }
    for (int chance = 0; free_.empty(); ++chance) {
      hand_ = hand_ + 1 < notes_.size() ? hand_ + 1 : 0;
      if (notes_[hand_].lately && chance < kChances) {
        notes_[hand_].lately = false;
      } else {
        forget(hand_);
      }
    }
    const std::uint32_t place = free_.back();
    free_.pop_back();
    return place;
  }

  mutable base::Mutex mutex_;
  std::size_t capacity_ STINT_GUARDED_BY(mutex_) = 1;
  std::vector<Note> notes_ STINT_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> free_ STINT_GUARDED_BY(mutex_);
  boost::unordered_flat_map<std::uint64_t, std::uint32_t, Hash> places_ STINT_GUARDED_BY(mutex_);
  std::uint32_t hand_ STINT_GUARDED_BY(mutex_) = 0;
  std::uint32_t calls_ STINT_GUARDED_BY(mutex_) = 0;
};

Heard::Heard(HeardOptions options)
    : options_(options),
      stripe_count_(std::clamp<std::size_t>(options.max_buckets / kMinStripe, 1, kMaxStripes)) {
  stripes_ = std::make_unique<Stripe[]>(stripe_count_);
  const std::size_t most = std::min<std::size_t>(std::max<std::size_t>(options.max_buckets, 1),
                                                 std::numeric_limits<std::uint32_t>::max());
  for (std::size_t i = 0; i < stripe_count_; ++i) {
    stripes_[i].set_capacity(most / stripe_count_ + (i < most % stripe_count_ ? 1 : 0));
  }
}
Heard::~Heard() = default;

// By the upper bits; the tables use the others.
Heard::Stripe& Heard::stripe_of(std::uint64_t hash) const noexcept {
  return stripes_[(hash >> 48) % stripe_count_];
}

void Heard::note(const BucketSlot& bucket, std::span<const LimitSlot> slots, TimePoint store_now,
                 Duration now) {
  const std::uint64_t hash = base::hash(bucket.key, options_.hash_seed);
  stripe_of(hash).note(hash, bucket, slots, store_now, now, options_.lease_ttl);
}

std::optional<HeardBucket> Heard::find(std::string_view key) const {
  const std::uint64_t hash = base::hash(key, options_.hash_seed);
  return stripe_of(hash).find(hash);
}

std::size_t Heard::size() const {
  std::size_t total = 0;
  for (std::size_t i = 0; i < stripe_count_; ++i) total += stripes_[i].size();
  return total;
}

}  // namespace stint::store
