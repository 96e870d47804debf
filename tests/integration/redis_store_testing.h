// What the tests of the Redis store on real servers share.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "store/redis/layout.h"
#include "tests/contract/store_contract.h"
#include "tests/integration/redis_rig.h"

namespace stint::redis_testing {

using store::Ask;
using store::BucketAsk;
using store::Call;
using store::kHour;
using store::kMinute;
using store::kSecond;
using store::limits;

// A window that no test sees the end of.
inline constexpr Duration kLong = std::chrono::days{366};

// Counts answers that come on other threads. Ends the program if they do not come in a minute.
// Thread rule: any thread.
class Answers {
 public:
  [[nodiscard]] store::Done expect();
  void wait();

 private:
  void arrived();

  std::mutex mutex_;
  std::condition_variable all_here_;
  std::size_t open_ = 0;
};

// An admission with an id that no other one of the program has.
[[nodiscard]] Call call_of(const std::vector<BucketAsk>& buckets,
                           OnStoreError rule = OnStoreError::deny,
                           Duration lease_ttl = std::chrono::seconds{30});

// Each waits for its answer.
Outcome acquire(StoreRig& rig, Call& call);
Outcome peek(StoreRig& rig, Call& call);
Result<void> settle(StoreRig& rig, Call& call, const std::vector<std::int64_t>& actual);
Result<void> give_back(StoreRig& rig, Call& call);
void renew(StoreRig& rig, Call& call);

// Runs `work(thread)` on so many threads and waits for all.
void on_threads(int threads, const std::function<void(int)>& work);

// What a store told. Thread rule: any thread.
class Told {
 public:
  // To be told to this, which must outlive the store.
  [[nodiscard]] store::RedisStoreHooks hooks();
  [[nodiscard]] std::size_t unknown_charges() const { return unknown_charges_.load(); }
  [[nodiscard]] std::size_t warnings_with(std::string_view text) const;
  [[nodiscard]] std::string warnings() const;

 private:
  std::atomic<std::size_t> unknown_charges_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> warnings_;
};

// Of a replica with two loops, on servers that take their time; it tells `told`.
[[nodiscard]] StoreRig::Options replica_on(const redis::Deployment& deployment, Told& told);

// What the first limit of a bucket, a fixed window, has used at that server; 0 if it is not there.
[[nodiscard]] std::int64_t used_at(RedisServer& server, std::string_view bucket);

// The keys of all buckets that match, page by page; one that is listed twice is there twice.
[[nodiscard]] std::multiset<std::string> list_all(StoreRig& rig, std::string_view pattern,
                                                  std::size_t page_size);
// Resets all that match; how many.
std::size_t reset_all(StoreRig& rig, std::string_view pattern);

// That the store in Redis answered what the reference model did.
void expect_same(const store::AdmissionRecord& redis, const store::AdmissionRecord& model);

// A server of its own for every test, and replicas that use it.
class RedisStoreTest : public ::testing::Test {
 protected:
  RedisStoreTest() = default;
  explicit RedisStoreTest(RedisServer::Options options) : server_(std::move(options)) {}

  // Of a replica that waits for seconds: for tests in which the server answers.
  [[nodiscard]] StoreRig::Options patient() const;
  [[nodiscard]] StoreRig::Options patient_through(const Gate& gate) const;
  // Once it is connected.
  [[nodiscard]] static std::unique_ptr<StoreRig> rig(StoreRig::Options options);
  [[nodiscard]] std::vector<std::unique_ptr<StoreRig>> replicas(std::size_t count,
                                                                std::size_t loops = 1) const;

  // What Redis holds.
  [[nodiscard]] static std::string counters_key(std::string_view bucket);
  [[nodiscard]] static std::string leases_key(std::string_view bucket);
  [[nodiscard]] static std::string log_key(std::string_view bucket, Duration window);
  [[nodiscard]] std::optional<store::StoredBucket> stored(std::string_view bucket);
  // What a fixed window has used, 0 if it is not there.
  [[nodiscard]] std::int64_t used(std::string_view bucket, std::size_t limit = 0);
  [[nodiscard]] std::int64_t count_of(std::string_view sorted_set);
  [[nodiscard]] std::int64_t leases(std::string_view bucket) {
    return count_of(leases_key(bucket));
  }
  [[nodiscard]] std::int64_t script_calls();
  // Keys that have no time to live, as a text.
  [[nodiscard]] std::string immortal_keys();

  RedisServer server_;
};

}  // namespace stint::redis_testing
