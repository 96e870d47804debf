#include "store/redis/heard.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "store/redis/local_testing.h"

namespace stint::store {
namespace {

struct Answer {
  std::int64_t remaining = 0;
  Duration reset{0};
};

void note(Heard& heard, const std::string& key, const limit::LimitSetPtr& limits,
          const std::vector<Answer>& answers, TimePoint store_now, Duration now) {
  LocalCall call(1, {{.key = key, .limits = limits}});
  for (std::size_t i = 0; i < answers.size(); ++i) {
    call.slot(i).remaining = answers[i].remaining;
    call.slot(i).reset = answers[i].reset;
  }
  heard.note(call.record.buckets[0], call.record.slots_of(call.record.buckets[0]), store_now, now);
}
void note(Heard& heard, const std::string& key, const limit::LimitSetPtr& limits,
          const std::vector<Answer>& answers, TimePoint now = kStart) {
  note(heard, key, limits, answers, now, now.time_since_epoch());
}

TEST(Heard, KnowsNothingOfABucketThatWasNotHeardOf) {
  const Heard heard(HeardOptions{});
  EXPECT_FALSE(heard.find("p:a"));
  EXPECT_EQ(heard.size(), 0U);
}

TEST(Heard, KeepsWhatIsUsedOfEachLimitAndHowLongThatCounts) {
  Heard heard(HeardOptions{.lease_ttl = std::chrono::seconds{20}});
  const auto limits =
      set_of({requests_per(kMinute, 100), requests_per(kMinute, 50, Algorithm::sliding_window),
              requests_per(kMinute, 30, Algorithm::sliding_log), bucket_per(kMinute, 60, 10),
              in_flight(5)});
  note(heard, "p:a", limits,
       {{70, 40 * kSecond}, {45, 90 * kSecond}, {29, 50 * kSecond}, {4, 6 * kSecond}, {3, {}}},
       kStart + 20 * kSecond);
  const auto bucket = heard.find("p:a");
  ASSERT_TRUE(bucket);
  EXPECT_EQ(bucket->at, kStart + 20 * kSecond);
  const std::int64_t used[] = {30, 5, 1, 4, 2};  // of the token bucket: its level
  const Duration until[] = {60 * kSecond, 110 * kSecond, 70 * kSecond, 26 * kSecond, 40 * kSecond};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(bucket->values[i].value, used[i]) << i;
    EXPECT_EQ(bucket->values[i].until, kStart + until[i]) << i;
  }
}

TEST(Heard, TheDebtOfATokenBucketIsReadFromItsTimeToFull) {
  Heard heard(HeardOptions{});
  const auto limits = set_of({bucket_per(kMinute, 60, 10)});  // one a second
  note(heard, "p:a", limits, {{0, 25 * kSecond}});
  EXPECT_EQ(heard.find("p:a")->values[0].value, -15);
  note(heard, "p:a", limits, {{0, 10 * kSecond}});
  EXPECT_EQ(heard.find("p:a")->values[0].value, 0);
}

TEST(Heard, LimitsAreFoundByNameWhateverAReloadDidToThem) {
  Heard heard(HeardOptions{});
  note(heard, "p:a", set_of({requests_per(kMinute, 100), requests_per(kSecond, 10)}),
       {{70, kMinute}, {9, kSecond}});
  const auto bucket = heard.find("p:a");
  ASSERT_TRUE(bucket);
  const auto reloaded = set_of({requests_per(kSecond, 20), requests_per(2 * kMinute, 100)});
  ASSERT_NE(bucket->find((*reloaded)[0].name), nullptr);
  EXPECT_EQ(bucket->find((*reloaded)[0].name)->value, 1);
  EXPECT_EQ(bucket->find((*reloaded)[1].name), nullptr);
}

TEST(Heard, ANewAnswerReplacesTheLastAndAnOlderOneDoesNot) {
  Heard heard(HeardOptions{});
  const auto limits = set_of({requests_per(kMinute, 100)});
  note(heard, "p:a", limits, {{70, kMinute}}, kStart + kSecond);
  note(heard, "p:a", limits, {{60, kMinute}}, kStart + 2 * kSecond);
  EXPECT_EQ(heard.find("p:a")->values[0].value, 40);
  note(heard, "p:a", limits, {{65, kMinute}}, kStart + 2 * kSecond - Duration{1});
  EXPECT_EQ(heard.find("p:a")->values[0].value, 40);
}

TEST(Heard, AClockThatWasSetBackIsFollowed) {
  Heard heard(HeardOptions{});
  const auto limits = set_of({requests_per(kMinute, 100)});
  note(heard, "p:a", limits, {{70, kMinute}}, kStart + kMinute);
  note(heard, "p:a", limits, {{60, kMinute}}, kStart);
  EXPECT_EQ(heard.find("p:a")->at, kStart);
}

TEST(Heard, ABucketOfWhichNothingIsUsedIsForgotten) {
  Heard heard(HeardOptions{});
  const auto limits = set_of({requests_per(kMinute, 100), in_flight(3)});
  note(heard, "p:a", limits, {{100, {}}, {3, {}}});
  EXPECT_EQ(heard.size(), 0U);
  note(heard, "p:a", limits, {{100, {}}, {2, {}}});
  EXPECT_EQ(heard.size(), 1U);
  note(heard, "p:a", limits, {{100, {}}, {3, {}}});
  EXPECT_EQ(heard.size(), 0U);
  EXPECT_FALSE(heard.find("p:a"));
}

TEST(Heard, NotesWhoseTimeIsOverGoAsOthersCome) {
  Heard heard(HeardOptions{.max_buckets = 100'000});
  const auto limits = set_of({requests_per(kSecond, 100)});
  for (int i = 0; i < 1000; ++i) note(heard, "p:" + std::to_string(i), limits, {{1, kSecond}});
  EXPECT_EQ(heard.size(), 1000U);
  for (int i = 0; i < 2000; ++i) {
    note(heard, "q:" + std::to_string(i), limits, {{1, kSecond}}, kStart + 2 * kSecond);
  }
  EXPECT_LT(heard.size(), 2200U);
}

// Two servers may have times that are far apart.
TEST(Heard, NotesDoNotGoByTheTimeOfAnotherServer) {
  Heard heard(HeardOptions{.max_buckets = 50});  // one stripe
  const auto limits = set_of({requests_per(kMinute, 100)});
  note(heard, "behind", limits, {{1, kMinute}}, kStart, kSecond);
  for (int i = 0; i < 20; ++i) {
    note(heard, "ahead", limits, {{1, kMinute}}, kStart + 60 * kMinute, 2 * kSecond);
    note(heard, "p:" + std::to_string(i), limits, {{1, kMinute}}, kStart + 60 * kMinute,
         2 * kSecond);
  }
  EXPECT_TRUE(heard.find("behind"));
  for (int i = 0; i < 500; ++i) {
    note(heard, "ahead", limits, {{1, kMinute}}, kStart + 60 * kMinute, 3 * kMinute);
  }
  EXPECT_EQ(heard.size(), 1U);
}

TEST(Heard, IsBoundedAndKeepsWhatIsHeardOfAgainAndAgain) {
  Heard heard(HeardOptions{.max_buckets = 50});  // one stripe
  const auto limits = set_of({requests_per(kMinute, 100)});
  for (int i = 0; i < 1000; ++i) {
    if (i % 5 == 0) note(heard, "hot", limits, {{1, kMinute}});
    note(heard, "p:" + std::to_string(i), limits, {{1, kMinute}});
    EXPECT_TRUE(heard.find("hot")) << i;
  }
  EXPECT_EQ(heard.size(), 50U);
  EXPECT_TRUE(heard.find("p:999"));
  EXPECT_FALSE(heard.find("p:0"));
}

TEST(Heard, AnswersFromTheWireCannotOverflow) {
  Heard heard(HeardOptions{});
  const auto limits = set_of({bucket_per(kMinute, 60, 10), requests_per(kMinute, 100)});
  note(heard, "p:a", limits,
       {{0, Duration::max()}, {std::numeric_limits<std::int64_t>::min() / 2, Duration::max()}});
  EXPECT_LT(heard.find("p:a")->values[0].value, 0);
  EXPECT_EQ(heard.find("p:a")->values[1].value, 100);
}

TEST(Heard, ManyThreadsNoteAndFind) {
  Heard heard(HeardOptions{.max_buckets = 1000});
  const auto limits = set_of({requests_per(kMinute, 100)});
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const std::string key = "p:" + std::to_string(i * (t + 1) % 700);
        note(heard, key, limits, {{42, kMinute}});
        if (const auto bucket = heard.find(key)) {
          EXPECT_EQ(bucket->values[0].value, 58);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(heard.size(), 1000U);
}

}  // namespace
}  // namespace stint::store
