// Listing and resetting by pattern, page by page.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "limit/bucket_key.h"
#include "tests/contract/store_contract.h"

namespace stint::store {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

STINT_STORE_CONTRACT(Sweep);

std::vector<std::string> keys(const std::vector<BucketInfo>& buckets) {
  std::vector<std::string> names;
  names.reserve(buckets.size());
  for (const BucketInfo& bucket : buckets) names.push_back(bucket.key);
  return names;
}

TEST_P(Sweep, EveryBucketIsListedExactlyOnceWhateverThePageSize) {
  const auto set = limits({requests_per(kDay, 10)});
  std::vector<std::string> made;
  for (int i = 0; i < 250; ++i) {
    made.push_back("p:n=" + std::to_string(i));
    ASSERT_TRUE(admits(made.back(), set));
  }
  std::ranges::sort(made);
  for (const std::size_t page_size :
       {std::size_t{1}, std::size_t{7}, std::size_t{100}, std::size_t{1000}}) {
    SCOPED_TRACE(page_size);
    std::vector<std::string> listed = keys(list("*", page_size));
    std::ranges::sort(listed);
    EXPECT_EQ(listed, made);
  }
}

TEST_P(Sweep, AListingThatBucketsJoinAndLeaveCoversThoseThatStay) {
  const auto set = limits({requests_per(kDay, 10)});
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(admits("stay:n=" + std::to_string(i), set));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(admits("go:n=" + std::to_string(i), set));
  std::multiset<std::string> seen;
  std::uint64_t cursor = 0;
  int round = 0;
  do {
    const BucketPage page = list_page("stay:*", cursor, 3);
    for (const BucketInfo& bucket : page.buckets) seen.insert(bucket.key);
    cursor = page.next;
    if (round < 100) {
      reset("go:n=" + std::to_string(round));
      ASSERT_TRUE(admits("new:n=" + std::to_string(round), set));
    }
    ++round;
  } while (cursor != 0);
  EXPECT_EQ(seen.size(), 100U) << "each once";
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen.count("stay:n=" + std::to_string(i)), 1U) << i;
}

TEST_P(Sweep, AListingShowsEveryCounterInTheOrderOfTheLimits) {
  const auto set =
      limits({requests_per(kMinute, 10), tokens_per(kHour, 1000),
              requests_per(kMinute, 10, Algorithm::sliding_log), token_bucket(60, kHour, 20),
              in_flight(5), tokens_per(kMinute, 50, Algorithm::sliding_window)});
  ASSERT_TRUE(acquired({{"a", set, {{1}, {300}, {2}, {3}, {1}, {7}}}}).admitted());
  const auto buckets = list();
  ASSERT_EQ(buckets.size(), 1U);
  ASSERT_EQ(buckets[0].counters.size(), set->size());
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < set->size(); ++i) {
    const BucketInfo::Counter& counter = buckets[0].counters[i];
    EXPECT_EQ(counter.unit, (*set)[i].name.unit);
    EXPECT_EQ(counter.algorithm, (*set)[i].name.algorithm);
    EXPECT_EQ(counter.window, (*set)[i].name.window);
    values.push_back(counter.value);
  }
  EXPECT_THAT(values, ElementsAre(1, 300, 2, 17, 1, 7));
}

TEST_P(Sweep, AListingShowsHowEachLimitStandsAsAPeekDoes) {
  const auto set =
      limits({requests_per(kMinute, 10), tokens_per(kHour, 1000),
              requests_per(kMinute, 10, Algorithm::sliding_log), token_bucket(60, kHour, 20),
              in_flight(2), tokens_per(kMinute, 50, Algorithm::sliding_window)});
  ASSERT_TRUE(acquired({{"a", set, {{1}, {300}, {2}, {3}, {1}, {7}}}}).admitted());
  advance(20 * kSecond);
  ASSERT_TRUE(acquired({{"a", set, {{1}, {300}, {2}, {3}, {1}, {7}}}}).admitted());
  advance(15 * kSecond);
  Call seen = peeked({{"a", set, {{0}, {0}, {0}, {0}, {0}, {0}}}});
  const auto buckets = list();
  ASSERT_EQ(buckets.size(), 1U);
  for (std::size_t i = 0; i < set->size(); ++i) {
    SCOPED_TRACE(i);
    const BucketInfo::Counter& counter = buckets[0].counters.at(i);
    EXPECT_EQ(counter.quota, (*set)[i].quota);
    EXPECT_EQ(counter.capacity, (*set)[i].capacity);
    EXPECT_EQ(counter.remaining, seen.slot(i).remaining);
    EXPECT_EQ(counter.reset, seen.slot(i).reset);
  }
}

TEST_P(Sweep, AListingShowsTheQuotaThatWasLastChargedWith) {
  ASSERT_TRUE(admits("a", limits({requests_per(kDay, 10)}), 4));
  const auto lower = limits({requests_per(kDay, 3)});
  EXPECT_FALSE(admits("a", lower));
  EXPECT_EQ(list().at(0).counters.at(0).quota, 10);
  EXPECT_EQ(list().at(0).counters.at(0).remaining, 6);
  ASSERT_TRUE(admits("a", limits({requests_per(kDay, 5)})));
  EXPECT_EQ(list().at(0).counters.at(0).quota, 5);
  EXPECT_EQ(list().at(0).counters.at(0).remaining, 0);
}

TEST_P(Sweep, AListingShowsCountersAsOfNow) {
  const auto set = limits({requests_per(kMinute, 10), requests_per(kDay, 10),
                           requests_per(kMinute, 10, Algorithm::sliding_log),
                           token_bucket(60, kMinute, 120), in_flight(5)});
  ASSERT_TRUE(acquired({{"a", set, {{1}, {1}, {2}, {100}, {1}}}}).admitted());
  advance(70 * kSecond);
  const auto buckets = list();
  ASSERT_EQ(buckets.size(), 1U);
  std::vector<std::int64_t> values;
  for (const auto& counter : buckets[0].counters) values.push_back(counter.value);
  EXPECT_THAT(values, ElementsAre(0, 1, 0, 90, 0));
}

TEST_P(Sweep, AListingChangesNothing) {
  const auto set = limits({token_bucket(60, kMinute, 100), in_flight(2),
                           requests_per(kMinute, 100, Algorithm::sliding_window)});
  ASSERT_TRUE(acquired({{"a", set, {{100}, {1}, {1}}}}, kHour).admitted());
  for (int i = 0; i < 30; ++i) {
    advance(kSecond);
    list();
  }
  EXPECT_EQ(remaining("a", set, 0), 30);
  EXPECT_EQ(remaining("a", set, 2), 99);
  set_time(kStart + kHour - kTick);
  EXPECT_EQ(remaining("a", limits({in_flight(2)})), 1);
}

TEST_P(Sweep, PatternsMatchTheKey) {
  const auto set = limits({requests_per(kDay, 10)});
  for (const char* key : {"a:team=red", "a:team=blue", "ab:team=red", "a"}) {
    ASSERT_TRUE(admits(key, set));
  }
  EXPECT_THAT(keys(list("a:*")), UnorderedElementsAre("a:team=red", "a:team=blue"));
  EXPECT_THAT(keys(list("*=red")), UnorderedElementsAre("a:team=red", "ab:team=red"));
  EXPECT_THAT(keys(list("a?:*")), UnorderedElementsAre("ab:team=red"));
  EXPECT_THAT(keys(list("a")), UnorderedElementsAre("a"));
  EXPECT_TRUE(list("").empty());
  EXPECT_TRUE(list("b*").empty());
  EXPECT_EQ(list("*").size(), 4U);
}

TEST_P(Sweep, ALongKeyIsListedAndMatchedByItsFullText) {
  const auto set = limits({requests_per(kDay, 10)});
  std::string text;
  std::vector<BucketAsk> buckets;
  for (const char* tail : {"one", "two"}) {
    text.clear();
    limit::BucketKeyWriter writer(text, "p");
    const std::string value = std::string(300, 'x') + tail;
    writer.add("tenant", value);
    const limit::KeySpan span = writer.finish();
    ASSERT_LE(span.key_size, limit::kMaxKey);
    ASSERT_NE(span.key_begin, span.text_begin);
    buckets.push_back({text.substr(span.key_begin, span.key_size),
                       set,
                       {{1}},
                       false,
                       text.substr(span.text_begin, span.text_size)});
  }
  ASSERT_TRUE(acquired(buckets).admitted());
  ASSERT_TRUE(acquired({buckets[0]}).admitted());
  EXPECT_THAT(keys(list("*xxtwo")), ElementsAre(buckets[1].text));
  EXPECT_THAT(keys(list("p:tenant=*")), UnorderedElementsAre(buckets[0].text, buckets[1].text));
  EXPECT_TRUE(list("*%#*").empty()) << "the hash is nobody's business";
  EXPECT_EQ(reset("*xxone"), 1U);
  EXPECT_THAT(keys(list()), ElementsAre(buckets[1].text));
}

TEST_P(Sweep, ATextIsListedUpTo1024Bytes) {
  const auto set = limits({requests_per(kDay, 10)});
  const std::string text = "p:t=" + std::string(5000, 'y');
  ASSERT_TRUE(acquired({{"p:%#hash", set, {{1}}, false, text}}).admitted());
  EXPECT_THAT(keys(list("p:t=yy*")), ElementsAre(text.substr(0, 1024)));
}

TEST_P(Sweep, AResetForgetsWhatMatchesAndSaysHowMany) {
  const auto set = limits({requests_per(kDay, 1)});
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(admits("a:n=" + std::to_string(i), set));
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(admits("b:n=" + std::to_string(i), set));
  EXPECT_EQ(reset("a:*"), 40U);
  EXPECT_EQ(reset("a:*"), 0U);
  EXPECT_EQ(list().size(), 30U);
  EXPECT_TRUE(admits("a:n=7", set)) << "counted anew";
  EXPECT_FALSE(admits("b:n=7", set));
  EXPECT_EQ(reset("*"), 31U);
  EXPECT_TRUE(list().empty());
}

TEST_P(Sweep, AResetOfManyBucketsForgetsThemAll) {
  const auto set = limits({requests_per(kDay, 1)});
  constexpr std::size_t kMany = 9'000;
  for (std::size_t i = 0; i < kMany; ++i) ASSERT_TRUE(admits("a:n=" + std::to_string(i), set));
  EXPECT_EQ(reset("a:*"), kMany);
  EXPECT_TRUE(list().empty());
}

TEST_P(Sweep, AResetFreesSlotsInFlightAndTheirReturnIsHarmless) {
  const auto set = limits({in_flight(1)});
  Call held = acquired({{"a", set}});
  EXPECT_EQ(reset("a"), 1U);
  Call other = acquired({{"a", set}});
  EXPECT_TRUE(other.admitted());
  EXPECT_TRUE(give_back(held));
  EXPECT_FALSE(admits("a", set));
}

TEST_P(Sweep, ASpentBucketIsNotListed) {
  const auto set =
      limits({requests_per(kMinute, 10), requests_per(kMinute, 5, Algorithm::sliding_log)});
  Call made = acquired({{"a", set}});
  ASSERT_EQ(list().size(), 1U);
  EXPECT_TRUE(give_back(made));
  EXPECT_TRUE(list().empty());
  ASSERT_TRUE(acquired({{"a", set}}).admitted());
  advance(kMinute);
  EXPECT_TRUE(list().empty());
}

TEST_P(Sweep, ABucketIsNotListedAfterItsLastLeaseWhoeverHadTheLongestOne) {
  const auto set = limits({in_flight(5)});
  Call first = acquired({{"a", set}});
  Call second = acquired({{"a", set}});
  advance(10 * kSecond);
  renew({&second});
  EXPECT_TRUE(give_back(second));
  advance(kLeaseTtl - 10 * kSecond - kTick);
  EXPECT_EQ(list().size(), 1U);
  advance(kTick);
  EXPECT_TRUE(list().empty());
}

}  // namespace
}  // namespace stint::store
