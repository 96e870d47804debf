// What is particular to the memory store: how it frees memory, and how much work that is. What
// every store must do is in tests/contract.
#include "store/memory/memory_store.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace stint::store {
namespace {

using namespace std::chrono_literals;

class SteppedTime final : public TimeSource {
 public:
  explicit SteppedTime(const TimePoint& now) : now_(now) {}
  TimePoint now() noexcept override { return now_; }

 private:
  const TimePoint& now_;
};

class MemoryStoreTest : public testing::Test {
 protected:
  void make(std::size_t max_buckets, std::size_t expire_per_call = 4) {
    store_ = std::make_unique<MemoryStore>(
        MemoryStoreOptions{.max_buckets = max_buckets, .expire_per_call = expire_per_call},
        std::make_unique<SteppedTime>(now_));
  }

  struct Ask {
    std::string key;
    std::int64_t cost = 1;
    std::string policy = "p";
  };
  // One admission over one bucket for each of `asks`, each with all of `limits`.
  std::unique_ptr<AdmissionRecord> acquire(const std::vector<Ask>& asks,
                                           const std::vector<Limit>& limits) {
    keys_.push_back(std::make_unique<std::vector<Ask>>(asks));
    auto record = std::make_unique<AdmissionRecord>();
    record->id = {1, ++ids_};
    record->lease_ttl = 30s;
    const limit::LimitSetPtr set = *limit::LimitSet::create(limits);
    for (const Ask& ask : *keys_.back()) {
      record->buckets.push_back({.key = ask.key,
                                 .text = ask.key,
                                 .policy = ask.policy,
                                 .limits = set,
                                 .first_slot = record->slots.size()});
      for (std::size_t i = 0; i < set->size(); ++i) {
        record->slots.push_back({.need = ask.cost, .charge = ask.cost});
      }
    }
    store_->acquire(*record);
    return record;
  }
  void give_back(AdmissionRecord& record) {
    for (LimitSlot& slot : record.slots) slot.actual = 0;
    store_->settle(record);
  }

  TimePoint now_{1'767'312'000s};
  std::unique_ptr<MemoryStore> store_;
  std::vector<std::unique_ptr<std::vector<Ask>>> keys_;  // what the records point to
  std::uint64_t ids_ = 0;
};

// Also in the stripes where no call comes by any more: only one key is still asked for.
TEST_F(MemoryStoreTest, FreesSpentBucketsAFewACallAndNeverAllAtOnce) {
  make(1'000'000);
  for (int i = 0; i < 1000; ++i) acquire({{"old-" + std::to_string(i)}}, {requests_per(1s, 5)});
  now_ += 10s;
  std::uint64_t expired = 0;
  for (int i = 0; i < 5000; ++i) {
    acquire({{"new"}}, {requests_per(1s, 9000)});
    const std::uint64_t now_expired = store_->stats().expired;
    ASSERT_LE(now_expired - expired, 8U);
    expired = now_expired;
  }
  EXPECT_EQ(expired, 1000U);
  EXPECT_EQ(store_->stats().buckets, 1U);
  EXPECT_LE(store_->stats().max_work_per_call, 8U);
}

TEST_F(MemoryStoreTest, NoCallLooksAtMoreThan64EntriesToFreeMemory) {
  make(2000);
  for (int i = 0; i < 6000; ++i) {
    // Alternately nearly unused, half used and at the limit, and some admissions of several.
    const std::string number = std::to_string(i);
    acquire({{"k" + number, 1 + i % 3}}, {requests_per(1h, 3)});
    if (i % 10 == 0) {
      acquire({{"a" + number}, {"b" + number, 3, "q"}, {"c" + number, 2, "r"}},
              {requests_per(60s, 3)});
    }
    if (i % 500 == 0) now_ += 61s;
  }
  const StoreStats stats = store_->stats();
  EXPECT_LE(stats.max_work_per_call, 64U);
  EXPECT_GT(stats.max_work_per_call, 16U);
  EXPECT_LE(stats.buckets - stats.overflow_buckets, 2000U);
  EXPECT_GT(stats.expired, 0U);
  EXPECT_GT(stats.evicted, 0U);
}

TEST_F(MemoryStoreTest, AtTheCapTheBucketWithMostLeftGoes) {
  make(8);
  for (int used = 1; used <= 8; ++used) {
    acquire({{"used-" + std::to_string(used), used}}, {requests_per(1h, 9)});
  }
  acquire({{"new"}}, {requests_per(1h, 9)});
  BucketPage page;
  store_->list("used-1", 0, 10, page, [] {});
  EXPECT_TRUE(page.buckets.empty());
  store_->list("used-*", 0, 10, page, [] {});
  EXPECT_EQ(page.buckets.size(), 7U);
  EXPECT_EQ(store_->stats().evicted, 1U);
}

TEST_F(MemoryStoreTest, BucketsAtTheirLimitInDebtOrWithLeasesNeverGo) {
  make(3);
  acquire({{"full", 5}}, {requests_per(1h, 5)});
  const auto stream = acquire({{"stream"}}, {in_flight(5)});
  auto debt = acquire({{"debt", 1}}, {tokens_per(1h, 5, Algorithm::token_bucket)});
  debt->slots[0].actual = 9;
  store_->settle(*debt);
  for (int i = 0; i < 100; ++i) acquire({{"flood-" + std::to_string(i)}}, {requests_per(1h, 5)});
  BucketPage page;
  store_->list("*", 0, 10, page, [] {});
  ASSERT_EQ(page.buckets.size(), 4U);  // and the shared one
  EXPECT_EQ(store_->stats().evicted, 0U);
  EXPECT_EQ(store_->stats().overflowed, 5U);  // as many as the shared bucket holds
}

TEST_F(MemoryStoreTest, ARefusedNewBucketEvictsNothingAndLeavesNothing) {
  make(4);
  for (int i = 0; i < 4; ++i) acquire({{"k" + std::to_string(i)}}, {requests_per(1h, 5)});
  const auto refused = acquire({{"too-much", 6}}, {requests_per(1h, 5)});
  EXPECT_EQ(refused->outcome, Outcome::refused);
  EXPECT_EQ(store_->stats().evicted, 0U);
  EXPECT_EQ(store_->stats().buckets, 4U);
}

TEST_F(MemoryStoreTest, OneAdmissionOverNewBucketsFindsRoomForAllOrSharesForEach) {
  make(2);
  acquire({{"a", 5}, {"b", 5, "q"}}, {requests_per(1h, 5)});
  const auto record = acquire({{"c"}, {"d", 1, "q"}}, {requests_per(1h, 5)});
  EXPECT_EQ(record->outcome, Outcome::admitted);
  EXPECT_TRUE(record->buckets[0].overflow);
  EXPECT_TRUE(record->buckets[1].overflow);
  EXPECT_EQ(store_->stats().overflow_buckets, 2U);
  give_back(*record);
  BucketPage page;
  store_->list("*overflow", 0, 10, page, [] {});
  EXPECT_TRUE(page.buckets.empty());  // given back: spent, and so not listed
}

TEST_F(MemoryStoreTest, AnEvictionNeverTakesABucketOfTheSameAdmission) {
  make(2);
  acquire({{"a"}, {"b", 1, "q"}}, {requests_per(1h, 9)});
  for (int i = 0; i < 50; ++i) {
    const std::string fresh = "new-" + std::to_string(i);
    const auto record = acquire({{"a"}, {fresh, 1, "q"}}, {requests_per(1h, 90)});
    ASSERT_EQ(record->outcome, Outcome::admitted);
    ASSERT_EQ(record->slots[0].remaining, 90 - 2 - i);
  }
}

TEST_F(MemoryStoreTest, ASpentBucketOfTheAdmissionItselfIsNotFreedUnderIt) {
  make(2, 8);
  acquire({{"a"}, {"b", 1, "q"}}, {requests_per(1s, 9)});
  now_ += 10s;
  const auto record = acquire({{"a"}, {"c", 1, "q"}, {"d", 1, "r"}}, {requests_per(1s, 9)});
  EXPECT_EQ(record->outcome, Outcome::admitted);
  EXPECT_EQ(record->slots[0].remaining, 8);
}

TEST_F(MemoryStoreTest, WithoutExpiryPerCallSpentBucketsGoAtTheCap) {
  make(100, 0);
  for (int i = 0; i < 100; ++i) acquire({{"k" + std::to_string(i)}}, {requests_per(1s, 5)});
  now_ += 10s;
  acquire({{"k0"}}, {requests_per(1s, 5)});
  EXPECT_EQ(store_->stats().expired, 0U);
  acquire({{"new"}}, {requests_per(1s, 5)});
  EXPECT_GT(store_->stats().expired, 0U);
  EXPECT_EQ(store_->stats().evicted, 0U);
}

TEST_F(MemoryStoreTest, TheCapIsDividedAmongTheStripesWithoutLoss) {
  constexpr std::size_t kCap = 50'001;
  make(kCap);
  for (int i = 0; i < 200'000; ++i) acquire({{"k" + std::to_string(i)}}, {requests_per(1h, 9)});
  EXPECT_EQ(store_->stats().buckets, kCap);
}

}  // namespace
}  // namespace stint::store
