// The suite that every store has to pass: what the tests of one theme share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "store/rate_store.h"

namespace stint::store {

// A store that a test owns, and its time.
class TestedStore {
 public:
  virtual ~TestedStore() = default;
  [[nodiscard]] virtual RateStore& store() = 0;
  // From now on the store decides by this time, which stands still. May step back.
  virtual void set_time(TimePoint now) = 0;
};

struct StoreFactory {
  std::string name;  // letters and digits: part of the names of the tests
  std::function<std::unique_ptr<TestedStore>(TimePoint start)> make;
};

// The stores that the program with the suite in it is about: stores.cc says which.
[[nodiscard]] std::vector<StoreFactory> tested_stores();
[[nodiscard]] std::string store_name(const testing::TestParamInfo<StoreFactory>& info);
// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest calls
void PrintTo(const StoreFactory& factory, std::ostream* out);

// What one limit is asked.
struct Ask {
  std::int64_t need = 1;
  std::int64_t charge = need;
  bool skip = false;
};

// What one bucket is asked: one Ask for each limit.
struct BucketAsk {
  std::string key;
  limit::LimitSetPtr limits;
  std::vector<Ask> asks = {Ask{}};
  bool shadow = false;
  std::string text = key;
};

// An admission and the texts it points to. Movable, the record with it.
class Call {
 public:
  Call(std::uint64_t id, Duration lease_ttl, const std::vector<BucketAsk>& buckets);
  Call(Call&&) noexcept = default;
  Call& operator=(Call&&) noexcept = default;

  [[nodiscard]] AdmissionRecord& record() noexcept { return record_; }
  [[nodiscard]] const AdmissionRecord& record() const noexcept { return record_; }
  [[nodiscard]] bool admitted() const noexcept { return record_.outcome == Outcome::admitted; }
  // The only bucket's, or one of several.
  [[nodiscard]] const LimitSlot& slot(std::size_t limit = 0, std::size_t bucket = 0) const;
  [[nodiscard]] const BucketSlot& bucket(std::size_t index = 0) const {
    return record_.buckets[index];
  }
  // The longest wait of all limits that refused, shadow ones apart.
  [[nodiscard]] Duration wait() const;

 private:
  std::deque<std::string> texts_;
  AdmissionRecord record_;
};

[[nodiscard]] limit::LimitSetPtr limits(const std::vector<Limit>& limits);
[[nodiscard]] Limit token_bucket(std::int64_t quota, Duration window, std::int64_t burst);

inline constexpr Duration kSecond = std::chrono::seconds{1};
inline constexpr Duration kMinute = std::chrono::minutes{1};
inline constexpr Duration kHour = std::chrono::hours{1};
inline constexpr Duration kDay = std::chrono::days{1};
inline constexpr Duration kTick{1};

class StoreContract : public testing::TestWithParam<StoreFactory> {
 protected:
  // A Thursday, midnight UTC: the start of a second, a minute, an hour and a day.
  static constexpr TimePoint kStart{
      std::chrono::sys_days{std::chrono::year{2026} / std::chrono::January / 1}};
  static constexpr Duration kLeaseTtl = std::chrono::seconds{30};

  StoreContract() : tested_(GetParam().make(kStart)) {}

  [[nodiscard]] RateStore& store() { return tested_->store(); }

  [[nodiscard]] TimePoint now() const { return now_; }
  void set_time(TimePoint now);
  void advance(Duration span) { set_time(now_ + span); }

  // A call with a new id, not yet sent.
  [[nodiscard]] Call call(const std::vector<BucketAsk>& buckets, Duration lease_ttl = kLeaseTtl);
  Outcome acquire(Call& call);
  Outcome peek(Call& call);
  // The same in one go.
  Call acquired(const std::vector<BucketAsk>& buckets, Duration lease_ttl = kLeaseTtl);
  Call peeked(const std::vector<BucketAsk>& buckets);
  // Of one bucket with one limit.
  bool admits(const std::string& key, const limit::LimitSetPtr& limits, std::int64_t cost = 1);
  // How many of so many tries are admitted.
  int admitted_of(int tries, const std::vector<BucketAsk>& buckets);

  // Settles with one amount for each limit, in the order of buckets and limits.
  Result<void> settle(Call& call, const std::vector<std::int64_t>& actual);
  Result<void> give_back(Call& call);
  void renew(const std::vector<Call*>& calls);

  BucketPage list_page(std::string_view pattern, std::uint64_t cursor, std::size_t page_size);
  // All pages, put together.
  std::vector<BucketInfo> list(std::string_view pattern = "*", std::size_t page_size = 100);
  std::size_t reset(std::string_view pattern);
  // What one counter of a bucket says; 0 if there is no such bucket.
  [[nodiscard]] std::int64_t value(std::string_view key, std::size_t counter = 0);
  // What is left, by a peek that asks for nothing.
  [[nodiscard]] std::int64_t remaining(const std::string& key, const limit::LimitSetPtr& limits,
                                       std::size_t limit = 0);

 private:
  std::unique_ptr<TestedStore> tested_;
  TimePoint now_ = kStart;
  std::uint64_t next_id_ = 1;
};

}  // namespace stint::store

// To be written once for each theme. NOLINTNEXTLINE(bugprone-macro-parentheses): a class's name
#define STINT_STORE_CONTRACT(Theme)      \
  class Theme : public StoreContract {}; \
  INSTANTIATE_TEST_SUITE_P(Stores, Theme, testing::ValuesIn(tested_stores()), store_name)
