// What the tests of counting in this process share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "limit/limit_set.h"
#include "store/rate_store.h"
#include "store/redis/heard.h"
#include "store/redis/local_counters.h"

namespace stint::store {

// A Thursday, midnight UTC: the start of a second, a minute, an hour and a day.
inline constexpr TimePoint kStart{
    std::chrono::sys_days{std::chrono::year{2026} / std::chrono::January / 1}};
inline constexpr Duration kSecond = std::chrono::seconds{1};
inline constexpr Duration kMinute = std::chrono::minutes{1};
inline constexpr Duration kTtl = std::chrono::seconds{30};

[[nodiscard]] inline limit::LimitSetPtr set_of(const std::vector<Limit>& limits) {
  return limit::LimitSet::create(limits).value();
}

[[nodiscard]] inline Limit bucket_per(Duration window, std::int64_t quota, std::int64_t burst) {
  Limit limit = requests_per(window, quota, Algorithm::token_bucket);
  limit.burst = burst;
  return limit;
}

// What one bucket is asked; `need` of each of its limits.
struct LocalAsk {
  std::string key;
  limit::LimitSetPtr limits;
  std::int64_t need = 1;
  OnStoreError rule = OnStoreError::local;
  bool shadow = false;
};

// An admission and the texts that it points to.
class LocalCall {
 public:
  LocalCall(std::uint64_t id, const std::vector<LocalAsk>& asks) {
    record.id = base::Id{1, id};
    record.lease_ttl = kTtl;
    for (const LocalAsk& ask : asks) {
      BucketSlot bucket;
      bucket.key = bucket.text = texts_.emplace_back(ask.key);
      bucket.policy = texts_.emplace_back(ask.key.substr(0, ask.key.find(':')));
      bucket.limits = ask.limits;
      bucket.first_slot = record.slots.size();
      bucket.shadow = ask.shadow;
      bucket.on_store_error = ask.rule;
      record.buckets.push_back(std::move(bucket));
      for (std::size_t i = 0; i < ask.limits->size(); ++i) {
        LimitSlot slot;
        slot.need = slot.charge = ask.need;
        record.slots.push_back(slot);
      }
    }
  }
  LocalCall(LocalCall&&) noexcept = default;
  LocalCall& operator=(LocalCall&&) noexcept = default;

  [[nodiscard]] LimitSlot& slot(std::size_t limit = 0, std::size_t bucket = 0) {
    return record.slots_of(record.buckets[bucket])[limit];
  }
  [[nodiscard]] std::vector<std::size_t> all() const {
    std::vector<std::size_t> indexes(record.buckets.size());
    std::iota(indexes.begin(), indexes.end(), std::size_t{0});
    return indexes;
  }
  // Every limit of every bucket.
  void set_actual(std::int64_t actual) {
    for (LimitSlot& slot : record.slots) slot.actual = actual;
  }

  AdmissionRecord record;

 private:
  std::deque<std::string> texts_;
};

// The counters of one process, and what it heard.
struct Replica {
  explicit Replica(std::int64_t count = 1, LocalOptions options = {})
      : replicas(count), heard(HeardOptions{}), local(options) {}

  Outcome decide(LocalCall& call) {
    local.decide(call.record, call.all(), now, replicas, heard);
    return call.record.outcome;
  }
  [[nodiscard]] LocalCall call(const std::vector<LocalAsk>& asks) {
    return LocalCall(++next_id, asks);
  }
  [[nodiscard]] LocalCall decided(const std::vector<LocalAsk>& asks) {
    LocalCall one = call(asks);
    decide(one);
    return one;
  }
  [[nodiscard]] bool admits(const LocalAsk& ask) {
    return decided({ask}).record.outcome == Outcome::admitted;
  }
  [[nodiscard]] int admitted_of(int tries, const LocalAsk& ask) {
    int admitted = 0;
    for (int i = 0; i < tries; ++i) admitted += admits(ask) ? 1 : 0;
    return admitted;
  }
  // The store answered at `now` that so much is left of each limit.
  void hear(const LocalAsk& ask, std::int64_t remaining, Duration reset = kMinute) {
    LocalCall answer(0, {ask});
    for (LimitSlot& slot : answer.record.slots) {
      slot.remaining = remaining;
      slot.reset = reset;
    }
    const BucketSlot& bucket = answer.record.buckets[0];
    heard.note(bucket, answer.record.slots_of(bucket), now, now.time_since_epoch());
  }
  bool settle(LocalCall& call, std::int64_t actual, std::size_t bucket = 0) {
    call.set_actual(actual);
    return local.settle(call.record, bucket, now);
  }
  [[nodiscard]] std::vector<SpentBucket> take(std::size_t most = 100) {
    return local.take_spent(now, most).buckets;
  }

  TimePoint now = kStart;
  std::int64_t replicas;
  std::uint64_t next_id = 0;
  Heard heard;
  LocalCounters local;
};

}  // namespace stint::store
