// A store that is slow and obvious: what the real ones are compared with.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "store/rate_store.h"
#include "tests/model/reference_limit.h"

namespace stint::model {

// Everything that RateStore leaves to be said, in one place:
//
// - A bucket that is spent (whole again), by the limits it has, is as good as gone: whoever comes
//   with other limits makes a new one. So nobody can tell when a store frees memory.
// - `acquire` brings the buckets that it charges to its time and its limits, and leaves the others
//   as they were, but for those that lie ahead (something in them was written down at a time still
//   to come, because the clock was set back): those it brings, too. `settle`, of those it changes,
//   and `renew` bring them to their time; the bucket's limits stay. `peek` and `list` move nothing.
// - A charge of 0 leaves nothing: no log entry and no lease.
// - A skipped limit answers how it stands. Only an admission that asks for a slot cuts the leases
//   it finds to its own ttl: a settlement or a skipped limit may come with any ttl, or none.
// - Only the bucket that was charged gets something back (BucketSlot::birth), not one that has its
//   key by now; log entries and leases are told by their id.
// - Settling meets the limits that the bucket has then: a limit that a reload took away gets
//   nothing, neither back nor more.
//
// Thread rule: as RateStore; `done` is always called before the call returns.
class ReferenceStore final : public store::RateStore {
 public:
  explicit ReferenceStore(std::function<TimePoint()> time);

  void acquire(store::AdmissionRecord& record, store::Done done) override;
  void peek(store::AdmissionRecord& record, store::Done done) override;
  void settle(store::AdmissionRecord& record, store::Settled done) override;
  void renew(std::span<store::AdmissionRecord* const> records, store::Done done) override;
  void reset(std::string_view pattern, std::uint64_t cursor, store::ResetPage& page,
             store::Done done) override;
  void list(std::string_view pattern, std::uint64_t cursor, std::size_t page_size, BucketPage& page,
            store::Done done) override;
  [[nodiscard]] store::StoreStats stats() const override;

 private:
  struct Bucket {
    std::uint64_t number = 0;  // in the order of their making; what cursors count
    std::string text;
    limit::LimitSetPtr limits;
    std::vector<std::unique_ptr<ReferenceLimit>> counters;  // one for each of `limits`

    [[nodiscard]] Bucket copy() const;
    [[nodiscard]] ReferenceLimit* find(const limit::LimitName& name) const;
    void reload(const limit::LimitSetPtr& others);
    void advance(TimePoint now, Duration lease_ttl);
    [[nodiscard]] bool spent(TimePoint now) const;
  };

  void decide(store::AdmissionRecord& record, bool charge) STINT_REQUIRES(mutex_);
  void settle(const store::AdmissionRecord& record, const store::BucketSlot& slot)
      STINT_REQUIRES(mutex_);
  // Null if there is none, or one that is spent and has other limits.
  [[nodiscard]] const Bucket* find(const store::BucketSlot& slot, TimePoint now) const
      STINT_REQUIRES(mutex_);
  [[nodiscard]] Bucket fresh(const store::BucketSlot& slot, TimePoint now) STINT_REQUIRES(mutex_);
  // A new one if `find` finds none.
  [[nodiscard]] Bucket& find_or_make(const store::BucketSlot& slot, TimePoint now)
      STINT_REQUIRES(mutex_);
  // Buckets that are not spent, match, and have a number from `cursor` on; in that order.
  [[nodiscard]] std::map<std::uint64_t, std::string> matching(std::string_view pattern,
                                                              std::uint64_t cursor) const
      STINT_REQUIRES(mutex_);

  const std::function<TimePoint()> time_;
  mutable base::Mutex mutex_;
  std::map<std::string, Bucket, std::less<>> buckets_ STINT_GUARDED_BY(mutex_);
  std::uint64_t next_number_ STINT_GUARDED_BY(mutex_) = 1;
};

}  // namespace stint::model
