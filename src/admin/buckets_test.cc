#include "admin/buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/loop_testing.h"

namespace stint::admin {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

// Sweeps from a script, whose calls are answered at once, by another thread, or never.
class ScriptedStore final : public store::RateStore {
 public:
  enum class Answers : std::uint8_t { at_once, later, never };

  ~ScriptedStore() override {
    for (std::thread& thread : threads_) thread.join();
  }

  Answers answers = Answers::at_once;
  std::function<void(std::uint64_t cursor, std::size_t size, BucketPage&)> on_list;
  std::function<void(std::uint64_t cursor, store::ResetPage&)> on_reset;
  std::vector<std::uint64_t> cursors;  // that were asked for
  std::vector<std::size_t> sizes;
  std::vector<std::string> patterns;

  void list(std::string_view pattern, std::uint64_t cursor, std::size_t size, BucketPage& page,
            store::Done done) override {
    note(pattern, cursor);
    sizes.push_back(size);
    on_list(cursor, size, page);
    complete(std::move(done));
  }
  void reset(std::string_view pattern, std::uint64_t cursor, store::ResetPage& page,
             store::Done done) override {
    note(pattern, cursor);
    on_reset(cursor, page);
    complete(std::move(done));
  }
  void acquire(store::AdmissionRecord&, store::Done) override {}
  void peek(store::AdmissionRecord&, store::Done) override {}
  void settle(store::AdmissionRecord&, store::Settled) override {}
  void renew(std::span<store::AdmissionRecord* const>, store::Done) override {}
  [[nodiscard]] store::StoreStats stats() const override { return {}; }

 private:
  void note(std::string_view pattern, std::uint64_t cursor) {
    patterns.emplace_back(pattern);
    cursors.push_back(cursor);
  }
  void complete(store::Done done) {
    if (answers == Answers::at_once) return done();
    if (answers == Answers::never) return open_.push_back(std::move(done));
    threads_.emplace_back([done = std::move(done)]() mutable { done(); });
  }

  std::vector<std::thread> threads_;
  std::vector<store::Done> open_;
};

void add_buckets(BucketPage& page, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) page.buckets.push_back({"p:n=" + std::to_string(i), {}});
}

class AdminBuckets : public testing::TestWithParam<ScriptedStore::Answers> {
 protected:
  AdminBuckets() { store_.answers = GetParam(); }
  BucketPage list(Sweep sweep) {
    return net::run(loop_, list_buckets(loop_, store_, std::move(sweep)));
  }
  store::ResetPage reset(Sweep sweep) {
    return net::run(loop_, reset_buckets(loop_, store_, std::move(sweep)));
  }
  net::EventLoop loop_;
  ScriptedStore store_;
};

INSTANTIATE_TEST_SUITE_P(, AdminBuckets,
                         testing::Values(ScriptedStore::Answers::at_once,
                                         ScriptedStore::Answers::later));

TEST_P(AdminBuckets, AreAskedForUntilThereIsSomethingToShow) {
  store_.on_list = [](std::uint64_t cursor, std::size_t, BucketPage& page) {
    add_buckets(page, cursor == 0 ? 0 : 2);
    page.next = cursor + 7;
  };
  const BucketPage page = list({.pattern = "p*", .limit = 10});
  EXPECT_THAT(store_.cursors, ElementsAre(0, 7, 14, 21));
  EXPECT_THAT(store_.sizes, ElementsAre(10, 10, 8, 6)) << "never more than are wanted";
  EXPECT_THAT(store_.patterns, testing::Each("p*"));
  EXPECT_THAT(page.buckets, SizeIs(6));
  EXPECT_EQ(page.next, 28U);
}

TEST_P(AdminBuckets, AreAskedForUntilAllWereSeen) {
  store_.on_list = [](std::uint64_t cursor, std::size_t, BucketPage& page) {
    add_buckets(page, 1);
    page.next = cursor < 3 ? cursor + 1 : 0;
    if (cursor == 1) page.unreached.push_back({"b", "away"});
  };
  const BucketPage page = list({.pattern = "*", .cursor = 1, .limit = 100});
  EXPECT_THAT(store_.cursors, ElementsAre(1, 2, 3));
  EXPECT_THAT(page.buckets, SizeIs(3));
  EXPECT_EQ(page.next, 0U);
  ASSERT_THAT(page.unreached, SizeIs(1));
  EXPECT_EQ(page.unreached[0].where, "b");
}

TEST_P(AdminBuckets, OneIsListedWhereOneIsWanted) {
  store_.on_list = [](std::uint64_t cursor, std::size_t size, BucketPage& page) {
    EXPECT_EQ(size, 1U);
    add_buckets(page, 1);
    page.next = cursor + 1;
  };
  EXPECT_THAT(list({.pattern = "*", .limit = 1}).buckets, SizeIs(1));
  EXPECT_THAT(store_.cursors, SizeIs(1));
}

TEST_P(AdminBuckets, AreResetUntilAllWereSeen) {
  store_.on_reset = [](std::uint64_t cursor, store::ResetPage& page) {
    page.removed = 5;
    page.next = cursor < 2 ? cursor + 1 : 0;
    if (cursor == 0) page.unreached.push_back({"a", "away"});
  };
  const store::ResetPage page = reset({.pattern = "x"});
  EXPECT_THAT(store_.cursors, ElementsAre(0, 1, 2));
  EXPECT_EQ(page.removed, 15U);
  EXPECT_EQ(page.next, 0U);
  EXPECT_THAT(page.unreached, SizeIs(1));
}

TEST_P(AdminBuckets, WorkIsBounded) {
  store_.on_list = [](std::uint64_t cursor, std::size_t, BucketPage& page) {
    page.next = cursor + 1;
  };
  store_.on_reset = [](std::uint64_t cursor, store::ResetPage& page) { page.next = cursor + 1; };
  EXPECT_EQ(list({.pattern = "*"}).next, 64U);
  EXPECT_EQ(reset({.pattern = "*", .cursor = 64}).next, 128U);
  EXPECT_THAT(store_.cursors, SizeIs(128));
}

TEST(AdminSilentStore, IsToldAsUnreached) {
  net::EventLoop loop;
  ScriptedStore store;
  store.answers = ScriptedStore::Answers::never;
  store.on_list = [](std::uint64_t, std::size_t, BucketPage&) {};
  store.on_reset = [](std::uint64_t, store::ResetPage&) {};
  const Sweep sweep{.pattern = "*", .store_wait = std::chrono::milliseconds{1}};
  const BucketPage page = net::run(loop, list_buckets(loop, store, sweep));
  EXPECT_EQ(page.next, 0U);
  ASSERT_THAT(page.unreached, SizeIs(1));
  EXPECT_EQ(page.unreached[0].why, "it did not answer");
  EXPECT_THAT(net::run(loop, reset_buckets(loop, store, sweep)).unreached, SizeIs(1));
}

json::object only_limit(const BucketInfo::Counter& counter) {
  BucketPage page;
  page.buckets.push_back({"p", {counter}});
  const InMemory memory;
  const json::object shown = listing(page, memory, nullptr);
  return shown.at("buckets").at(0).at("limits").at(0).as_object();
}

std::int64_t used(const BucketInfo::Counter& counter) {
  return only_limit(counter).at("used").to_number<std::int64_t>();
}

TEST(AdminListing, ShowsHowALimitStands) {
  using std::chrono::seconds;
  const json::object shown = only_limit({Unit::tokens, Algorithm::fixed_window, seconds{60}, 30,
                                         100, 100, 70, std::chrono::microseconds{1'500'001}});
  EXPECT_EQ(json::serialize(shown),
            R"({"unit":"tokens","algorithm":"fixed_window","quota":100,"window_secs":60,"used":30,)"
            R"("remaining":70,"reset_ms":1501})");
  const json::object slots =
      only_limit({Unit::concurrency, Algorithm::concurrency, Duration{0}, 2, 2, 2, 0, seconds{1}});
  EXPECT_EQ(json::serialize(slots),
            R"({"unit":"concurrency","algorithm":"concurrency","quota":2,"window_secs":null,)"
            R"("used":2,"remaining":0,"reset_ms":1000})");
}

TEST(AdminListing, ShowsWhatIsUsedWhateverTheAlgorithm) {
  using std::chrono::seconds;
  const Duration minute = seconds{60};
  // Of the window before, a part counts.
  EXPECT_EQ(used({Unit::requests, Algorithm::sliding_window, minute, 3, 10, 10, 4, minute}), 6);
  // What is used up is not hidden by what remains being 0: an overspend, a lowered quota.
  EXPECT_EQ(used({Unit::tokens, Algorithm::fixed_window, minute, 130, 100, 100, 0, minute}), 130);
  EXPECT_EQ(used({Unit::requests, Algorithm::sliding_window, minute, 3, 10, 10, 0, minute}), 10);
  // A bucket counts down, and may owe.
  EXPECT_EQ(used({Unit::tokens, Algorithm::token_bucket, minute, 15, 60, 20, 15, minute}), 5);
  EXPECT_EQ(used({Unit::tokens, Algorithm::token_bucket, minute, -7, 60, 20, 0, minute}), 27);
}

// Two shards, told apart by the length of the key.
class TwoShards final : public Places {
 public:
  [[nodiscard]] Ring ring() const override { return {}; }
  [[nodiscard]] std::vector<ShardHealth> health() const override { return {}; }
  [[nodiscard]] std::string shard_of(std::string_view bucket_key) const override {
    return bucket_key.size() < 10 ? "short" : "long " + std::to_string(bucket_key.size());
  }
};

TEST(AdminListing, ShowsWhereEachBucketLives) {
  BucketPage page;
  page.buckets.push_back({"p:n=1", {}});
  page.buckets.push_back({"p:n=" + std::string(500, 'x'), {}});   // its key is a hash
  page.buckets.push_back({"p:n=" + std::string(1020, 'x'), {}});  // cut: nobody knows
  page.next = 18'446'744'073'709'551'615U;
  const TwoShards places;
  const json::object shown = listing(page, places, nullptr);
  EXPECT_EQ(shown.at("buckets").at(0).at("shard").as_string(), "short");
  EXPECT_EQ(shown.at("buckets").at(1).at("shard").as_string(), "long 36");
  EXPECT_TRUE(shown.at("buckets").at(2).at("shard").is_null());
  EXPECT_TRUE(shown.at("buckets").at(0).at("policy").is_null());
  EXPECT_EQ(shown.at("next").as_string(), "18446744073709551615");
  EXPECT_TRUE(shown.at("complete").as_bool());
}

TEST(AdminListing, SaysWhatIsMissing) {
  BucketPage page;
  page.unreached.push_back({"b", "connection \xff refused"});
  const InMemory memory;
  EXPECT_EQ(json::serialize(listing(page, memory, nullptr)),
            "{\"buckets\":[],\"next\":null,\"complete\":false,\"unreached\":[{\"shard\":\"b\","
            "\"why\":\"connection \xEF\xBF\xBD refused\"}]}");
  store::ResetPage cleared{.removed = 3, .next = 9, .unreached = {{"b", "gone"}}};
  EXPECT_EQ(
      json::serialize(reset_result(cleared)),
      R"({"removed":3,"next":"9","complete":false,"unreached":[{"shard":"b","why":"gone"}]})");
}

}  // namespace
}  // namespace stint::admin
