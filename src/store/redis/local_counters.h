// What this process counts by itself while a Redis server is away: the outage rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "stint/time.h"
#include "store/rate_store.h"
#include "store/redis/heard.h"
#include "store/redis/spent.h"

namespace stint::store {

struct LocalOptions {
  // The most buckets that are counted in this process, those that policies share apart. When it is
  // reached and none is spent, new keys of a policy share one bucket. 0 is taken as 1.
  std::size_t max_buckets = 1'000'000;
  // Secret, random: keeps senders from choosing keys that meet in the table.
  std::uint64_t hash_seed = 0;
};

struct LocalStats {
  std::size_t buckets = 0;           // in memory, those included whose spending was taken
  std::size_t unsent = 0;            // of them: charged since, and not taken; shared ones apart
  std::size_t under_way = 0;         // taken, and neither restored nor told
  std::size_t overflow_buckets = 0;  // shared ones
  std::uint64_t overflowed = 0;      // charges to shared ones
};

// One for all servers of a store. A bucket begins when it is first decided here and ends when its
// spending was taken and its windows are over.
//
// The share of `local`, fixed when a bucket begins: of each limit ceil(quota / replicas), of which
// max(1, ceil((quota - heard) / replicas)) is left; the rest counts as used, at the instant at
// which it was heard, and goes as it would go in the store. `local_full`: the whole quota, nothing
// used. So while no bucket is heard of again, R replicas that heard the same admit at most
// (quota - heard) + R in the window they heard of, and quota + R - 1 in any later one. Token
// buckets: capacity and refill are those shares, and the level that was heard and what it regained
// since, divided by the replicas and rounded up. Leases that were heard of count for one ttl.
//
// Thread rule: any thread, for one record one call at a time. `now` is the store's time as last
// learned by the caller; one that steps back is treated as in limit/.
class LocalCounters {
 public:
  explicit LocalCounters(LocalOptions options);
  ~LocalCounters();
  LocalCounters(const LocalCounters&) = delete;
  LocalCounters& operator=(const LocalCounters&) = delete;

  // Decides the buckets of the record that the store could not decide, each by its own rule, and
  // charges all of them that count here or none. The other buckets must carry the store's answer;
  // if one of them, not in shadow, refused, the record is refused and nothing is charged here;
  // else, if an undecided one that is no shadow says `deny`, the record is undecided.
  // `replicas`: below 1 is taken as 1.
  //
  // Sets record.outcome, now and error, and of the buckets named their slots' answers, `charged`,
  // `overflow` and `local`; of the others nothing. If the outcome is not `admitted`, what they
  // were charged is the caller's to give back. A limit's cost above the share but not above the
  // quota is refused with one window as its wait. A shadow bucket with `deny` is left out: its
  // verdicts are `skipped`.
  void decide(AdmissionRecord& record, std::span<const std::size_t> undecided, TimePoint now,
              std::int64_t replicas, const Heard& heard);

  // Answers as `decide` would, as if charged; charges and creates nothing.
  void peek(AdmissionRecord& record, std::span<const std::size_t> undecided, TimePoint now,
            std::int64_t replicas, const Heard& heard);

  // As RateStore::settle, for one bucket: slot.actual replaces slot.charged.amount, which becomes
  // `actual`, so that a second call changes nothing. False: nothing was done, the charge is not
  // here (any more): it was made at the store or has been taken; the caller settles it there.
  // What was charged to a shared bucket that is gone is gone with it: true.
  [[nodiscard]] bool settle(AdmissionRecord& record, std::size_t bucket, TimePoint now);

  // As RateStore::renew, for one bucket. False: as with `settle`.
  [[nodiscard]] bool renew(AdmissionRecord& record, std::size_t bucket, TimePoint now);

  struct Taken {
    std::vector<SpentBucket> buckets;
    std::uint64_t next = 0;  // cursor of the next call; 0: all were looked at
  };
  using Wanted = std::function<bool(std::string_view key)>;

  // Hands out what was spent and still counts, of up to `max_buckets` buckets whose key is wanted
  // (those of one server; empty: all), each charge once. Then settlements and renewals of those
  // charges find nothing here. Looks at a bounded number of buckets: go on with the cursor, which
  // starts at 0. `wanted` is called with the lock held. Shared buckets are never handed out: whose
  // spending it was is not known.
  //
  // What is left of the share stays as it was, in case that the server goes away again before the
  // bucket is heard of; a later note makes it begin anew.
  [[nodiscard]] Taken take_spent(TimePoint now, std::size_t max_buckets, std::uint64_t cursor = 0,
                                 const Wanted& wanted = {});

  // Puts back what was taken and was certainly not carried to the store; settlements find their
  // charges again.
  void restore(SpentBucket spent, TimePoint now);
  // One that was taken is at the store, or nobody knows whether it is. Each that was taken comes to
  // this or to `restore`, once.
  void told();

  [[nodiscard]] LocalStats stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stint::store
