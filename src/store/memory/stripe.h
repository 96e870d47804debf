// A part of the memory store with a lock of its own: buckets found by key, freed when spent.
#pragma once

#include <boost/unordered/unordered_flat_set.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "store/memory/bucket.h"
#include "store/memory/due_queue.h"

namespace stint::store {

// What a key is found by: its text and the hash of it.
struct HashedKey {
  std::uint64_t hash = 0;
  std::string_view key;
};

// Not thread-safe: every function but the constructor is to be called with `mutex` held.
class Stripe {
 public:
  struct Counts {
    std::uint64_t expired = 0;
    std::uint64_t evicted = 0;
    std::uint64_t overflowed = 0;
    std::uint64_t max_work = 0;  // see StoreStats::max_work_per_call
    std::size_t overflow_buckets = 0;
    std::uint64_t calls = 0;  // of acquire
  };

  // `start`: no time before it is expected. `capacity`: the most buckets, overflow ones apart.
  Stripe(TimePoint start, std::size_t capacity) : start_(start), capacity_(capacity) {}
  ~Stripe();
  Stripe(const Stripe&) = delete;
  Stripe& operator=(const Stripe&) = delete;

  [[nodiscard]] Bucket* find(const HashedKey& key) noexcept;
  // Buckets that count for the cap.
  [[nodiscard]] std::size_t size() const noexcept {
    return table_.size() - counts.overflow_buckets;
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

  // Tells the bucket from those that had its key before it, or will after it.
  [[nodiscard]] std::uint32_t birth(const Bucket& bucket) const noexcept {
    return births_[bucket.slot];
  }

  // Its key must not be there. The caller has seen to the capacity.
  void attach(Bucket::Owner bucket);
  void remove(Bucket& bucket) noexcept;
  // Makes the bucket fit other limits, where it lies or by replacing it; returns it. One that is
  // spent starts anew: it is gone already where somebody came by in time to free it.
  Bucket* fit(Bucket* bucket, const limit::LimitSetPtr& limits, TimePoint now);

  // Looks at up to `budget` buckets whose time has come and frees those that are spent, but none
  // of `keep`. Returns how many it looked at.
  std::size_t expire(TimePoint now, std::size_t budget, std::span<Bucket* const> keep);
  // At the cap: a bucket that may be forgotten for a new one; none of `keep`. The one with most
  // left of the next 16 (a spent one has most), or the first of which at least 7/8 is left, or if
  // none of them may be forgotten the first of up to `budget` that may. Null if there is none.
  // Removes nothing.
  [[nodiscard]] Bucket* victim(TimePoint now, std::size_t budget, std::span<Bucket* const> keep);

  // The bucket in a slot, or null; slots are 0 to slot_count() - 1. A bucket keeps its slot.
  [[nodiscard]] std::size_t slot_count() const noexcept { return slots_.size(); }
  [[nodiscard]] Bucket* at_slot(std::size_t slot) const noexcept {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the tagged words are what keeps a slot at 8 bytes
    return (slots_[slot] & kFree) != 0 ? nullptr : reinterpret_cast<Bucket*>(slots_[slot]);
  }

  base::Mutex mutex;
  Counts counts;

 private:
  struct Hash {
    using is_avalanching = void;
    using is_transparent = void;
    std::size_t operator()(const Bucket* bucket) const noexcept { return bucket->hash(); }
    std::size_t operator()(const HashedKey& key) const noexcept { return key.hash; }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Bucket* a, const Bucket* b) const noexcept { return a == b; }
    bool operator()(const HashedKey& a, const Bucket* b) const noexcept {
      return a.hash == b->hash() && a.key == b->key();
    }
    bool operator()(const Bucket* a, const HashedKey& b) const noexcept { return (*this)(b, a); }
  };

  // A free slot holds the number of the next free one, above a low bit that no pointer has.
  static constexpr std::uintptr_t kFree = 1;
  static constexpr std::uint32_t kNoSlot = 0xFFFFFFFF;

  void set_slot(std::uint32_t slot, Bucket* bucket) noexcept {
    slots_[slot] = reinterpret_cast<std::uintptr_t>(bucket);
  }
  [[nodiscard]] std::uint32_t due_at(TimePoint when) const noexcept;

  const TimePoint start_;
  const std::size_t capacity_;
  boost::unordered_flat_set<Bucket*, Hash, Equal> table_;
  std::vector<std::uintptr_t> slots_;
  std::vector<std::uint32_t> births_;  // by slot
  std::uint32_t births_so_far_ = 0;
  std::uint32_t first_free_ = kNoSlot;
  DueQueue due_;
  std::size_t hand_ = 0;  // the slot that the next search for a victim starts at
};

}  // namespace stint::store
