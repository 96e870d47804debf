// Settling replaces what was charged by what was really used.
#include <string>
#include <vector>

#include "tests/contract/store_contract.h"

namespace stint::store {
namespace {

STINT_STORE_CONTRACT(Settlement);

TEST_P(Settlement, ARefundGoesToTheWindowThatWasCharged) {
  const auto set = limits({tokens_per(kMinute, 100)});
  Call made = acquired({{"a", set, {{60}}}});
  advance(kMinute - kTick);
  EXPECT_TRUE(settle(made, {25}));
  EXPECT_EQ(value("a"), 25);
  EXPECT_EQ(remaining("a", set), 75);
}

TEST_P(Settlement, ARefundToAFixedWindowThatIsOverIsDropped) {
  const auto set = limits({tokens_per(kMinute, 100)});
  Call old = acquired({{"a", set, {{60}}}});
  advance(kMinute);
  ASSERT_TRUE(admits("a", set, 40));
  EXPECT_TRUE(settle(old, {0}));
  EXPECT_EQ(remaining("a", set), 60);
}

TEST_P(Settlement, ASlidingWindowTakesARefundToItsLastWindowToo) {
  const auto set = limits({tokens_per(kMinute, 100, Algorithm::sliding_window)});
  Call old = acquired({{"a", set, {{80}}}});
  set_time(kStart + kMinute + 30 * kSecond);
  ASSERT_TRUE(admits("a", set, 10));
  EXPECT_EQ(remaining("a", set), 50);
  EXPECT_TRUE(settle(old, {20}));
  EXPECT_EQ(remaining("a", set), 80) << "20 of the last window weigh 10 by now";
  EXPECT_EQ(value("a"), 10);
}

TEST_P(Settlement, ASlidingWindowDropsARefundToTheWindowBeforeTheLast) {
  const auto set = limits({tokens_per(kMinute, 100, Algorithm::sliding_window)});
  Call old = acquired({{"a", set, {{80}}}});
  set_time(kStart + kMinute);
  ASSERT_TRUE(admits("a", set, 15));
  set_time(kStart + 2 * kMinute);
  ASSERT_TRUE(admits("a", set, 10));
  EXPECT_TRUE(settle(old, {0}));
  EXPECT_EQ(remaining("a", set), 75);
}

TEST_P(Settlement, AnOverspendIsChargedToTheCurrentWindowWhateverIsLeft) {
  for (const Algorithm algorithm : {Algorithm::fixed_window, Algorithm::sliding_window}) {
    const auto set = limits({tokens_per(kMinute, 100, algorithm)});
    const std::string key(to_string(algorithm));
    SCOPED_TRACE(key);
    set_time(kStart);
    Call made = acquired({{key, set, {{60}}}});
    set_time(kStart + 3 * kMinute);
    ASSERT_TRUE(admits(key, set, 70));
    EXPECT_TRUE(settle(made, {200}));
    EXPECT_EQ(value(key), 70 + 140);
    EXPECT_EQ(remaining(key, set), 0) << "never below 0";
    EXPECT_FALSE(admits(key, set));
    EXPECT_EQ(acquired({{key, set, {{.need = 0}}}}).record().outcome, Outcome::refused)
        << "more than the quota is used";
  }
}

TEST_P(Settlement, AFixedWindowForgetsAnOverspendWithItsWindow) {
  const auto set = limits({tokens_per(kMinute, 100)});
  Call made = acquired({{"a", set, {{60}}}});
  EXPECT_TRUE(settle(made, {1'000'000}));
  advance(kMinute);
  EXPECT_EQ(remaining("a", set), 100);
}

TEST_P(Settlement, ATokenBucketOwesAnOverspendAndRefillsFromThere) {
  const auto set = limits({token_bucket(60, kMinute, 100)});
  Call made = acquired({{"a", set, {{100}}}});
  EXPECT_TRUE(settle(made, {130}));
  EXPECT_EQ(value("a"), -30);
  EXPECT_EQ(remaining("a", set), 0);
  advance(29 * kSecond);
  EXPECT_EQ(value("a"), -1);
  EXPECT_FALSE(acquired({{"a", set, {{.need = 0}}}}).admitted()) << "still in debt";
  advance(kSecond);
  EXPECT_TRUE(acquired({{"a", set, {{.need = 0}}}}).admitted());
  advance(kSecond);
  EXPECT_TRUE(admits("a", set));
}

TEST_P(Settlement, ARefundNeverLiftsATokenBucketAboveItsCapacity) {
  const auto set = limits({token_bucket(60, kMinute, 10)});
  Call made = acquired({{"a", set, {{8}}}});
  advance(5 * kSecond);
  EXPECT_TRUE(give_back(made));
  EXPECT_EQ(remaining("a", set), 10);
  EXPECT_EQ(admitted_of(20, {{"a", set}}), 10);
}

// The bucket is reset in between: the one that has its key by now was not charged.
TEST_P(Settlement, ARefundIsNotTakenOffABucketThatCameLater) {
  for (const Algorithm algorithm : {Algorithm::fixed_window, Algorithm::sliding_window}) {
    const auto set = limits({tokens_per(kMinute, 100, algorithm)});
    const std::string key(to_string(algorithm));
    SCOPED_TRACE(key);
    Call made = acquired({{key, set, {{90}}}});
    EXPECT_EQ(reset(key), 1U);
    ASSERT_TRUE(admits(key, set, 10));
    EXPECT_TRUE(give_back(made));
    EXPECT_EQ(remaining(key, set), 90);
    EXPECT_EQ(admitted_of(200, {{key, set}}), 90);
  }
}

TEST_P(Settlement, ALogEntryIsTakenAwayByItsId) {
  const auto set = limits({requests_per(kMinute, 3, Algorithm::sliding_log)});
  Call first = acquired({{"a", set}});
  advance(kSecond);
  Call second = acquired({{"a", set, {{2}}}});
  EXPECT_TRUE(give_back(first));
  EXPECT_EQ(remaining("a", set), 1);
  const Call refused = acquired({{"a", set, {{2}}}});
  EXPECT_EQ(refused.wait(), kMinute) << "it is the second that stays";
  EXPECT_TRUE(give_back(second));
  EXPECT_EQ(remaining("a", set), 3);
}

TEST_P(Settlement, ALogEntryThatIsGoneCannotBeTakenAwayAgain) {
  const auto set = limits({requests_per(kMinute, 3, Algorithm::sliding_log)});
  Call old = acquired({{"a", set}});
  advance(kMinute);
  ASSERT_TRUE(admits("a", set));
  EXPECT_TRUE(give_back(old));
  EXPECT_EQ(remaining("a", set), 2);
}

TEST_P(Settlement, ACommitOfRequestsAloneChangesNothing) {
  const auto set = limits({requests_per(kMinute, 5), tokens_per(kMinute, 100),
                           requests_per(kMinute, 5, Algorithm::sliding_log)});
  Call made = acquired({{"a", set, {{1}, {30}, {1}}}});
  EXPECT_TRUE(settle(made, {1, 30, 1}));
  EXPECT_EQ(remaining("a", set, 0), 4);
  EXPECT_EQ(remaining("a", set, 1), 70);
  EXPECT_EQ(remaining("a", set, 2), 4);
}

TEST_P(Settlement, EveryBucketAndLimitIsSettledByItsOwnAmount) {
  const auto two = limits({tokens_per(kMinute, 1000), token_bucket(60, kMinute, 50)});
  const auto one = limits({tokens_per(kHour, 1000)});
  Call made = acquired({{"a", two, {{100}, {10}}}, {"b", one, {{200}}}});
  EXPECT_TRUE(settle(made, {80, 20, 500}));
  EXPECT_EQ(value("a", 0), 80);
  EXPECT_EQ(value("a", 1), 30);
  EXPECT_EQ(value("b"), 500);
}

TEST_P(Settlement, AShadowBucketThatWasNotChargedGetsNothing) {
  const auto wide = limits({tokens_per(kMinute, 1000)});
  const auto narrow = limits({tokens_per(kMinute, 100)});
  ASSERT_TRUE(admits("shadow", narrow, 60));
  Call made = acquired({{"real", wide, {{50}}}, {"shadow", narrow, {{50}}, true}});
  ASSERT_TRUE(made.admitted());
  ASSERT_FALSE(made.bucket(1).charged);
  EXPECT_TRUE(settle(made, {0, 0}));
  EXPECT_EQ(value("shadow"), 60);
  Call more = acquired({{"real", wide, {{50}}}, {"shadow", narrow, {{50}}, true}});
  EXPECT_TRUE(settle(more, {500, 500}));
  EXPECT_EQ(value("shadow"), 60);
  EXPECT_EQ(value("real"), 500);
}

TEST_P(Settlement, ABucketThatIsGoneGetsNothingBack) {
  const auto set = limits({tokens_per(kMinute, 100), token_bucket(60, kMinute, 100),
                           requests_per(kMinute, 5, Algorithm::sliding_log), in_flight(3)});
  Call made = acquired({{"a", set, {{50}, {50}, {1}, {1}}}});
  EXPECT_EQ(reset("a"), 1U);
  EXPECT_TRUE(give_back(made));
  EXPECT_TRUE(list("a").empty()) << "a refund makes no bucket";
  for (std::size_t i = 0; i < set->size(); ++i) {
    EXPECT_EQ(remaining("a", set, i), (*set)[i].capacity);
  }
}

TEST_P(Settlement, AnOverspendOfABucketThatIsGoneIsChargedToANewOne) {
  const auto set = limits({tokens_per(kMinute, 100), token_bucket(60, kMinute, 100)});
  Call made = acquired({{"a", set, {{50}, {50}}}});
  EXPECT_EQ(reset("a"), 1U);
  EXPECT_TRUE(settle(made, {70, 80}));
  EXPECT_EQ(remaining("a", set, 0), 80);
  EXPECT_EQ(remaining("a", set, 1), 70);
  ASSERT_EQ(list("a").size(), 1U);
}

TEST_P(Settlement, WhatWasExpectedIsReplacedNotAdded) {
  // Postpaid: a little must fit, more is charged, the real use comes last.
  const auto set = limits({tokens_per(kMinute, 10)});
  Call first = acquired({{"a", set, {{.need = 1, .charge = 8}}}});
  ASSERT_TRUE(first.admitted());
  EXPECT_TRUE(settle(first, {8}));
  Call second = acquired({{"a", set, {{.need = 1, .charge = 8}}}});
  ASSERT_TRUE(second.admitted());
  EXPECT_EQ(second.slot().remaining, 0);
  EXPECT_TRUE(settle(second, {3}));
  EXPECT_EQ(value("a"), 11);
  EXPECT_FALSE(acquired({{"a", set, {{.need = 1, .charge = 8}}}}).admitted());
}

}  // namespace
}  // namespace stint::store
