// Random histories: local counting keeps its bound, and without an outage's unknowns it is the
// memory store.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "limit/sliding_window.h"
#include "store/memory/memory_store.h"
#include "store/redis/local_testing.h"

namespace stint::store {
namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::int64_t upto(std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(engine_);
  }

 private:
  std::mt19937_64 engine_;
};

constexpr Algorithm kWindowed[] = {Algorithm::fixed_window, Algorithm::sliding_window,
                                   Algorithm::sliding_log};

// What the replicas of one store admit of one bucket.
struct Fleet {
  Fleet(std::int64_t count, const LocalAsk& asked) : ask(asked) {
    for (std::int64_t i = 0; i < count; ++i) {
      replicas.push_back(std::make_unique<Replica>(count));
      replicas.back()->next_id = static_cast<std::uint64_t>(i) << 32;
    }
  }
  void hear(TimePoint now, std::int64_t remaining, Duration reset) {
    for (const auto& replica : replicas) {
      replica->now = now;
      replica->hear(ask, remaining, reset);
    }
  }
  // Random askers at one instant; how much they get.
  std::int64_t ask_at(TimePoint now, Random& random, std::int64_t tries) {
    std::int64_t admitted = 0;
    for (std::int64_t i = 0; i < tries; ++i) {
      const auto who =
          static_cast<std::size_t>(random.upto(static_cast<std::int64_t>(replicas.size()) - 1));
      replicas[who]->now = now;
      LocalAsk one = ask;
      one.need = 1 + random.upto(2);
      if (replicas[who]->admits(one)) admitted += one.need;
    }
    return admitted;
  }

  LocalAsk ask;
  std::vector<std::unique_ptr<Replica>> replicas;
};

TEST(LocalBound, ReplicasThatHeardTheSameStayWithinTheQuotaAndOneEach) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::int64_t count = 1 + random.upto(4);
    const std::int64_t quota = 1 + random.upto(60);
    const std::int64_t heard = random.upto(quota);
    const Algorithm algorithm = kWindowed[random.upto(2)];
    const LocalAsk ask{.key = "p:a", .limits = set_of({requests_per(kMinute, quota, algorithm)})};
    Fleet fleet(count, ask);
    const bool log = algorithm == Algorithm::sliding_log;
    fleet.hear(kStart, quota - heard,
               algorithm == Algorithm::sliding_window ? 2 * kMinute : kMinute);
    std::int64_t first = 0;
    std::int64_t second = 0;
    for (std::int64_t s = 0; s < 120; s += 4) {
      (s < 60 ? first : second) += fleet.ask_at(kStart + s * kSecond, random, random.upto(20));
    }
    EXPECT_LE(first, quota - heard + count);
    EXPECT_LE(second, quota + count);
    if (!log) continue;
    for (const auto& replica : fleet.replicas) EXPECT_LE(replica->local.stats().buckets, 1U);
  }
}

TEST(LocalBound, AtEveryInstantOfASlidingWindow) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::int64_t count = 1 + random.upto(4);
    const std::int64_t quota = 1 + random.upto(60);
    const std::int64_t heard = random.upto(quota);
    Fleet fleet(count,
                {.key = "p:a",
                 .limits = set_of({requests_per(kMinute, quota, Algorithm::sliding_window)})});
    fleet.hear(kStart, quota - heard, 2 * kMinute);
    // What the store would count, had it been told of all.
    limit::SlidingWindow whole{kStart, heard, 0};
    const limit::Spec& spec = (*fleet.ask.limits)[0];
    for (std::int64_t s = 0; s < 200; s += 3) {
      const TimePoint now = kStart + s * kSecond;
      whole.advance(spec, now);
      (void)whole.charge(spec, fleet.ask_at(now, random, random.upto(15)));
      EXPECT_LE(whole.current + whole.weight(spec, now), quota + count) << s;
    }
  }
}

TEST(LocalBound, ATokenBucketGetsItsCapacityAndItsRateAndOneOfEachPerReplica) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::int64_t count = 1 + random.upto(4);
    const std::int64_t quota = 1 + random.upto(60);
    const std::int64_t burst = 1 + random.upto(30);
    const std::int64_t level = random.upto(burst);
    Fleet fleet(count, {.key = "p:a", .limits = set_of({bucket_per(kMinute, quota, burst)})});
    fleet.hear(kStart, level, std::chrono::minutes{10});
    std::int64_t admitted = 0;
    for (std::int64_t s = 0; s < 120; s += 3) {
      admitted += fleet.ask_at(kStart + s * kSecond, random, random.upto(9));
      EXPECT_LE(admitted, level + count + (quota + count) * s / 60 + count) << s;
    }
  }
}

// One replica that heard nothing: the same history, the same answers, as from a memory store.

class SetTime final : public TimeSource {
 public:
  explicit SetTime(std::shared_ptr<std::atomic<TimePoint>> time) : time_(std::move(time)) {}
  [[nodiscard]] TimePoint now() noexcept override { return time_->load(); }

 private:
  std::shared_ptr<std::atomic<TimePoint>> time_;
};

void expect_same(LocalCall& mine, LocalCall& theirs, bool peeked) {
  ASSERT_EQ(mine.record.outcome, theirs.record.outcome);
  for (std::size_t b = 0; b < mine.record.buckets.size(); ++b) {
    EXPECT_EQ(mine.record.buckets[b].charged, theirs.record.buckets[b].charged) << b;
  }
  for (std::size_t i = 0; i < mine.record.slots.size(); ++i) {
    const LimitSlot& a = mine.record.slots[i];
    const LimitSlot& b = theirs.record.slots[i];
    EXPECT_EQ(a.verdict, b.verdict) << i;
    EXPECT_EQ(a.remaining, b.remaining) << i;
    EXPECT_EQ(a.reset, b.reset) << i;
    EXPECT_EQ(a.wait, b.wait) << i;
    if (mine.record.outcome == Outcome::admitted && !peeked) {
      EXPECT_EQ(a.charged.amount, b.charged.amount) << i;
    }
  }
}

struct Pair {
  LocalCall mine;
  LocalCall theirs;
};

void run_history(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  auto time = std::make_shared<std::atomic<TimePoint>>(kStart);
  MemoryStore memory({}, std::make_unique<SetTime>(time));
  Replica replica;
  const limit::LimitSetPtr sets[] = {
      set_of({requests_per(kMinute, 9), in_flight(4)}),
      set_of(
          {requests_per(10 * kSecond, 6, Algorithm::sliding_window), bucket_per(kMinute, 20, 8)}),
      set_of({requests_per(20 * kSecond, 7, Algorithm::sliding_log)}),
  };
  std::deque<Pair> held;
  for (int step = 0; step < 300 && !testing::Test::HasFailure(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    replica.now += random.upto(3) == 0 ? random.upto(15) * kSecond : Duration{random.upto(900'000)};
    time->store(replica.now);
    const std::int64_t what = random.upto(9);
    if (what < 6) {
      std::vector<LocalAsk> asks;
      for (std::size_t s = 0; s < 3; ++s) {
        if (random.upto(1) == 0) continue;
        asks.push_back({.key = "p" + std::to_string(s) + ":" + std::to_string(random.upto(1)),
                        .limits = sets[s],
                        .need = random.upto(1),
                        .shadow = random.upto(4) == 0});
      }
      const auto id = static_cast<std::uint64_t>(step) + 1;
      Pair pair{LocalCall(id, asks), LocalCall(id, asks)};
      if (what == 0) {
        replica.local.peek(pair.mine.record, pair.mine.all(), replica.now, 1, replica.heard);
        memory.peek(pair.theirs.record);
      } else {
        replica.decide(pair.mine);
        memory.acquire(pair.theirs.record);
      }
      expect_same(pair.mine, pair.theirs, what == 0);
      if (what != 0 && pair.mine.record.outcome == Outcome::admitted)
        held.push_back(std::move(pair));
    } else if (!held.empty() && what < 9) {
      // Given back in full, or in part what was charged (leases and entries in full).
      Pair pair = std::move(held.front());
      held.pop_front();
      for (std::size_t i = 0; i < pair.mine.record.slots.size(); ++i) {
        const std::int64_t actual = random.upto(1) * pair.mine.record.slots[i].charged.amount;
        pair.mine.record.slots[i].actual = pair.theirs.record.slots[i].actual = actual;
      }
      memory.settle(pair.theirs.record);
      // False: everything that was charged is over, a refund of it is nothing.
      for (std::size_t b = 0; b < pair.mine.record.buckets.size(); ++b) {
        (void)replica.local.settle(pair.mine.record, b, replica.now);
      }
    } else if (!held.empty()) {
      Pair& pair = held.back();
      bool here = true;
      for (std::size_t b = 0; b < pair.mine.record.buckets.size(); ++b) {
        here = here && replica.local.renew(pair.mine.record, b, replica.now);
      }
      AdmissionRecord* record = &pair.theirs.record;
      if (here) memory.renew(std::span(&record, 1));
      if (!here) return;  // from here on they know different things
    }
  }
}

TEST(LocalModel, OneReplicaThatHeardNothingAnswersAsTheMemoryStore) {
  for (std::uint64_t seed = 1; seed <= 100 && !HasFailure(); ++seed) run_history(seed);
}

}  // namespace
}  // namespace stint::store
