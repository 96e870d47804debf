// Many threads on the same buckets: what is admitted in all is exact, to the last one.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <latch>
#include <map>
#include <memory>
#include <numeric>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "limit/limit_set.h"
#include "store/memory/memory_store.h"

namespace stint::store {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitizer = true;
#elif defined(__has_feature)
constexpr bool kSanitizer = __has_feature(thread_sanitizer) || __has_feature(address_sanitizer);
#else
constexpr bool kSanitizer = false;
#endif

// In all threads together.
constexpr std::int64_t kTries = kSanitizer ? 100'000 : 1'000'000;
constexpr std::int64_t kQuota = 1'000;
constexpr Duration kSecond = std::chrono::seconds{1};
constexpr Duration kMinute = std::chrono::minutes{1};
constexpr Duration kLeaseTtl = std::chrono::seconds{30};
// The start of a minute.
constexpr TimePoint kStart{std::chrono::minutes{29'000'000}};

class MovedTime final : public TimeSource {
 public:
  explicit MovedTime(std::shared_ptr<std::atomic<TimePoint>> now) : now_(std::move(now)) {}
  [[nodiscard]] TimePoint now() noexcept override { return now_->load(); }

 private:
  std::shared_ptr<std::atomic<TimePoint>> now_;
};

limit::LimitSetPtr limits(const std::vector<Limit>& limits) {
  return limit::LimitSet::create(limits).value();
}

// Runs one function on every thread at once; each gets its number.
void on_threads(int threads, const std::function<void(int)>& run) {
  std::latch start{threads};
  std::vector<std::thread> all;
  all.reserve(static_cast<std::size_t>(threads));
  for (int number = 0; number < threads; ++number) {
    all.emplace_back([&, number] {
      start.arrive_and_wait();
      run(number);
    });
  }
  for (std::thread& thread : all) thread.join();
}

class ExactTotals : public testing::Test {
 protected:
  // A record for one unit of each limit of each bucket. The keys must outlive it.
  AdmissionRecord record(const std::vector<const std::string*>& keys,
                         const limit::LimitSetPtr& set) {
    AdmissionRecord record;
    record.id = base::Id{1, next_id_.fetch_add(1)};
    record.lease_ttl = kLeaseTtl;
    for (const std::string* key : keys) {
      BucketSlot bucket;
      bucket.key = bucket.text = bucket.policy = *key;
      bucket.limits = set;
      bucket.first_slot = record.slots.size();
      record.buckets.push_back(bucket);
      for (std::size_t i = 0; i < set->size(); ++i) {
        LimitSlot slot;
        slot.need = slot.charge = 1;
        record.slots.push_back(slot);
      }
    }
    return record;
  }

  bool admits(const std::string& key, const limit::LimitSetPtr& set) {
    AdmissionRecord asked = record({&key}, set);
    store_.acquire(asked);
    return asked.outcome == Outcome::admitted;
  }

  void give_back(AdmissionRecord& record) {
    for (LimitSlot& slot : record.slots) slot.actual = 0;
    store_.settle(record);
  }

  std::map<std::string, std::int64_t> values() {
    std::map<std::string, std::int64_t> values;
    std::uint64_t cursor = 0;
    do {
      BucketPage page;
      store_.list("*", cursor, 100, page, [] {});
      for (const BucketInfo& bucket : page.buckets) {
        values[bucket.key] = bucket.counters.front().value;
      }
      cursor = page.next;
    } while (cursor != 0);
    return values;
  }

  std::shared_ptr<std::atomic<TimePoint>> now_ = std::make_shared<std::atomic<TimePoint>>(kStart);
  MemoryStore store_{MemoryStoreOptions{.hash_seed = 99}, std::make_unique<MovedTime>(now_)};
  std::atomic<std::uint64_t> next_id_{1};
  const std::string key_ = "bucket";
};

struct Crowd {
  Algorithm algorithm{};
  int threads = 0;
};
std::string name_of(const Crowd& crowd) {
  return std::string(to_string(crowd.algorithm)) + "_" + std::to_string(crowd.threads);
}
// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest calls
void PrintTo(const Crowd& crowd, std::ostream* out) { *out << name_of(crowd); }

class EveryAlgorithm : public ExactTotals, public testing::WithParamInterface<Crowd> {};

TEST_P(EveryAlgorithm, AdmitsExactlyItsQuota) {
  const auto [algorithm, threads] = GetParam();
  const auto set =
      limits({algorithm == Algorithm::concurrency ? in_flight(kQuota)
                                                  : requests_per(kMinute, kQuota, algorithm)});
  std::atomic<std::int64_t> admitted{0};
  on_threads(threads, [&](int) {
    std::int64_t mine = 0;
    for (std::int64_t i = 0; i < kTries / threads; ++i) mine += admits(key_, set) ? 1 : 0;
    admitted += mine;
  });
  EXPECT_EQ(admitted, kQuota);
  EXPECT_FALSE(admits(key_, set));
}

INSTANTIATE_TEST_SUITE_P(Crowds, EveryAlgorithm, testing::ValuesIn([] {
                           std::vector<Crowd> crowds;
                           for (const Algorithm algorithm :
                                {Algorithm::fixed_window, Algorithm::sliding_window,
                                 Algorithm::sliding_log, Algorithm::token_bucket,
                                 Algorithm::concurrency}) {
                             for (const int threads : {2, 16})
                               crowds.push_back({algorithm, threads});
                           }
                           return crowds;
                         }()),
                         [](const auto& crowd) { return name_of(crowd.param); });

// Every admission's instant, while time goes on under the threads that ask.
class GoingOn : public ExactTotals, public testing::WithParamInterface<int> {
 protected:
  // Thread 0 moves the time by `step` so many times; the others ask until it is there. Before
  // and after, the bucket is emptied.
  std::vector<TimePoint> admissions(const limit::LimitSetPtr& set, Duration step, int steps) {
    std::vector<std::vector<TimePoint>> instants(static_cast<std::size_t>(GetParam()));
    const auto ask = [&](std::vector<TimePoint>& mine) {
      AdmissionRecord asked = record({&key_}, set);
      store_.acquire(asked);
      if (asked.outcome == Outcome::admitted) mine.push_back(asked.now);
      return asked.outcome == Outcome::admitted;
    };
    while (ask(instants[0])) {
    }
    std::atomic<bool> there{false};
    on_threads(GetParam(), [&](int number) {
      auto& mine = instants[static_cast<std::size_t>(number)];
      if (number == 0) {
        for (int i = 0; i < steps; ++i) {
          now_->store(now_->load() + step);
          ask(mine);
        }
        there = true;
      }
      while (!there) ask(mine);
    });
    while (ask(instants[0])) {
    }
    std::vector<TimePoint> all;
    for (const auto& some : instants) all.insert(all.end(), some.begin(), some.end());
    std::ranges::sort(all);
    return all;
  }

  static constexpr int kSteps = kSanitizer ? 1'000 : 100'000;
};

TEST_P(GoingOn, ATokenBucketGivesItsCapacityAndTheRateTimesTheSpan) {
  const auto set = limits({requests_per(kMinute, kQuota, Algorithm::token_bucket)});
  // 50 s, in which it cannot fill up again: 1,000 + floor(1,000 * 50 / 60).
  EXPECT_EQ(admissions(set, 50 * kSecond / kSteps, kSteps).size(), 1'000U + 833U);
}

TEST_P(GoingOn, AFixedWindowGivesItsQuotaInEachWindow) {
  const auto set = limits({requests_per(kMinute, kQuota)});
  std::map<std::int64_t, std::int64_t> windows;
  for (const TimePoint at : admissions(set, 10 * kMinute / kSteps, kSteps)) {
    ++windows[at.time_since_epoch() / kMinute];
  }
  for (const auto& [window, count] : windows) EXPECT_LE(count, kQuota) << window;
  EXPECT_EQ(windows.begin()->second, kQuota);
  EXPECT_EQ(windows.rbegin()->second, kQuota);
}

TEST_P(GoingOn, ASlidingLogGivesItsQuotaInAnySpanOfOneWindow) {
  const auto set = limits({requests_per(kMinute, kQuota, Algorithm::sliding_log)});
  const auto all = admissions(set, 10 * kMinute / kSteps, kSteps);
  ASSERT_GE(all.size(), static_cast<std::size_t>(kQuota));
  for (std::size_t i = kQuota; i < all.size(); ++i) {
    ASSERT_GE(all[i] - all[i - kQuota], kMinute) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, GoingOn, testing::Values(2, 16),
                         testing::PrintToStringParamName());

class Together : public ExactTotals, public testing::WithParamInterface<int> {};

TEST_P(Together, ConcurrencyIsNeverAboveItsQuotaAndEverySlotComesBack) {
  constexpr std::int64_t kSlots = 7;
  const auto set = limits({in_flight(kSlots)});
  std::atomic<std::int64_t> running{0};
  std::atomic<std::int64_t> most{0};
  std::atomic<std::int64_t> admitted{0};
  on_threads(GetParam(), [&](int number) {
    std::minstd_rand random(static_cast<unsigned>(number) + 1);
    std::vector<AdmissionRecord> held;
    for (std::int64_t i = 0; i < kTries / GetParam(); ++i) {
      AdmissionRecord asked = record({&key_}, set);
      store_.acquire(asked);
      if (asked.outcome == Outcome::admitted) {
        const std::int64_t now = ++running;
        std::int64_t seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        ++admitted;
        held.push_back(std::move(asked));
      }
      if (!held.empty() && random() % 3 == 0) {
        AdmissionRecord* renewed = &held.front();
        store_.renew({&renewed, 1});
      }
      if (!held.empty() && (held.size() > 2 || random() % 2 == 0)) {
        --running;  // before the slot is free, so that nobody is counted twice
        give_back(held.back());
        held.pop_back();
      }
    }
    for (AdmissionRecord& last : held) {
      --running;
      give_back(last);
    }
  });
  EXPECT_LE(most, kSlots);
  EXPECT_GT(admitted, kSlots);
  EXPECT_TRUE(values().empty()) << "a slot was not given back";
}

TEST_P(Together, TwoBucketsInOppositeOrdersAreChargedTogetherOrNotAtAll) {
  const std::string narrow = "narrow";
  const auto wide_set = limits({requests_per(kMinute, kQuota)});
  const auto narrow_set = limits({requests_per(kMinute, kQuota / 2)});
  std::atomic<std::int64_t> admitted{0};
  on_threads(GetParam(), [&](int number) {
    for (std::int64_t i = 0; i < kTries / GetParam(); ++i) {
      AdmissionRecord asked = record({&key_, &narrow}, wide_set);
      asked.buckets[1].limits = narrow_set;
      if ((number + i) % 2 == 0) {
        std::swap(asked.buckets[0], asked.buckets[1]);
      }
      store_.acquire(asked);
      if (asked.outcome == Outcome::admitted) ++admitted;
    }
  });
  EXPECT_EQ(admitted, kQuota / 2);
  EXPECT_EQ(values(),
            (std::map<std::string, std::int64_t>{{key_, kQuota / 2}, {narrow, kQuota / 2}}));
}

TEST_P(Together, ManyBucketsInAnyOrderAndGivenBackAddUp) {
  constexpr std::size_t kBuckets = 12;
  const auto set = limits({requests_per(kMinute, 5'000)});
  std::vector<std::string> keys;
  keys.reserve(kBuckets);
  for (std::size_t i = 0; i < kBuckets; ++i) keys.push_back("bucket" + std::to_string(i));
  // What each thread has charged to each bucket and not taken back.
  std::vector<std::vector<std::int64_t>> charged(static_cast<std::size_t>(GetParam()),
                                                 std::vector<std::int64_t>(kBuckets));
  on_threads(GetParam(), [&](int number) {
    std::minstd_rand random(static_cast<unsigned>(number) + 1);
    auto& mine = charged[static_cast<std::size_t>(number)];
    std::vector<std::size_t> order(kBuckets);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::int64_t i = 0; i < kTries / 10 / GetParam(); ++i) {
      std::ranges::shuffle(order, random);
      const std::size_t count = 1 + random() % 5;
      std::vector<const std::string*> some;
      some.reserve(count);
      for (std::size_t k = 0; k < count; ++k) some.push_back(&keys[order[k]]);
      AdmissionRecord asked = record(some, set);
      store_.acquire(asked);
      if (asked.outcome != Outcome::admitted) continue;
      if (random() % 4 == 0) {
        give_back(asked);
        continue;
      }
      for (std::size_t k = 0; k < count; ++k) ++mine[order[k]];
    }
  });
  const auto counted = values();
  for (std::size_t k = 0; k < kBuckets; ++k) {
    std::int64_t sum = 0;
    for (const auto& mine : charged) sum += mine[k];
    EXPECT_EQ(counted.at(keys[k]), sum) << keys[k];
    EXPECT_LE(sum, 5'000);
  }
}

TEST_P(Together, ListingsResetsPeeksAndStatsDisturbNothing) {
  const auto set = limits({requests_per(kMinute, kQuota)});
  std::atomic<bool> over{false};
  std::atomic<std::int64_t> admitted{0};
  std::thread others([&] {
    while (!over) {
      std::uint64_t cursor = 0;
      do {
        BucketPage page;
        store_.list("*", cursor, 10, page, [] {});
        cursor = page.next;
      } while (cursor != 0);
      ResetPage reset;
      store_.reset("noise*", 0, reset, [] {});
      AdmissionRecord seen = record({&key_}, set);
      store_.peek(seen);
      EXPECT_LE(store_.stats().max_work_per_call, 64U);
    }
  });
  on_threads(GetParam(), [&](int number) {
    for (std::int64_t i = 0; i < kTries / 4 / GetParam(); ++i) {
      if (admits(key_, set)) ++admitted;
      const std::string noise = "noise" + std::to_string(number) + std::to_string(i % 50);
      AdmissionRecord asked = record({&noise}, set);
      store_.acquire(asked);
      if (asked.outcome == Outcome::admitted) give_back(asked);
    }
  });
  over = true;
  others.join();
  EXPECT_EQ(admitted, kQuota);
  EXPECT_EQ(values().at(key_), kQuota);
}

INSTANTIATE_TEST_SUITE_P(Threads, Together, testing::Values(2, 16),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace stint::store
