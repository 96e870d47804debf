#include "store/redis/local_counters.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "store/redis/local_testing.h"

namespace stint::store {
namespace {

constexpr TimePoint kNow = kStart + 20 * kSecond;

// Each bucket by its own rule.

TEST(LocalCounters, CountAgainstTheShareOfWhatWasLeft) {
  Replica replica(3);
  replica.now = kNow;
  const LocalAsk ask{.key = "p:a", .limits = set_of({requests_per(kMinute, 100)})};
  replica.hear(ask, 60);
  LocalCall first = replica.decided({ask});
  EXPECT_EQ(first.record.outcome, Outcome::admitted);
  EXPECT_EQ(first.record.now, kNow);
  EXPECT_TRUE(first.record.buckets[0].charged);
  EXPECT_NE(first.record.buckets[0].local, 0U);
  EXPECT_EQ(first.slot().verdict, Verdict::fits);
  EXPECT_EQ(first.slot().remaining, 19);
  EXPECT_EQ(first.slot().reset, 40 * kSecond);
  EXPECT_EQ(first.slot().charged, (limit::Charge{1, kStart}));
  EXPECT_EQ(replica.admitted_of(100, ask), 19);
  LocalCall refused = replica.decided({ask});
  EXPECT_EQ(refused.record.outcome, Outcome::refused);
  EXPECT_FALSE(refused.record.buckets[0].charged);
  EXPECT_EQ(refused.record.buckets[0].local, 0U);
  EXPECT_EQ(refused.slot().verdict, Verdict::refused);
  EXPECT_EQ(refused.slot().wait, 40 * kSecond);
  replica.now = kStart + kMinute;
  EXPECT_EQ(replica.admitted_of(100, ask), 34);
}

TEST(LocalCounters, TheWholeQuotaWithLocalFull) {
  Replica replica(3);
  const LocalAsk ask{.key = "p:a",
                     .limits = set_of({requests_per(kMinute, 100)}),
                     .rule = OnStoreError::local_full};
  replica.hear(ask, 0);
  EXPECT_EQ(replica.admitted_of(200, ask), 100);
}

TEST(LocalCounters, TheShareIsFixedWhenTheBucketBegins) {
  Replica replica(2);
  const LocalAsk ask{.key = "p:a", .limits = set_of({requests_per(kMinute, 100)})};
  EXPECT_TRUE(replica.admits(ask));
  replica.hear(ask, 4);
  replica.replicas = 1;
  EXPECT_EQ(replica.admitted_of(100, ask), 49);
  replica.now = kStart + kMinute;  // nothing of it counts any more
  EXPECT_EQ(replica.admitted_of(200, ask), 100);
}

TEST(LocalCounters, ReplicasThatAreNotKnownAreOne) {
  Replica replica(0);
  const LocalAsk ask{.key = "p:a", .limits = set_of({requests_per(kMinute, 100)})};
  EXPECT_EQ(replica.admitted_of(200, ask), 100);
}

TEST(LocalCounters, AllowAdmitsAndCountsNothing) {
  Replica replica;
  const LocalAsk ask{.key = "p:a",
                     .limits = set_of({requests_per(kMinute, 1), bucket_per(kMinute, 1, 7)}),
                     .rule = OnStoreError::allow};
  LocalCall call = replica.decided({ask});
  EXPECT_EQ(call.record.outcome, Outcome::admitted);
  EXPECT_FALSE(call.record.buckets[0].charged);
  EXPECT_EQ(call.slot(0).verdict, Verdict::fits);
  EXPECT_EQ(call.slot(0).remaining, 1);
  EXPECT_EQ(call.slot(1).remaining, 7);
  EXPECT_EQ(replica.admitted_of(10, ask), 10);
  EXPECT_EQ(replica.local.stats().buckets, 0U);
  EXPECT_TRUE(replica.settle(call, 0));
}

TEST(LocalCounters, DenyIsUndecidedBeforeALocalRefusal) {
  Replica replica;
  const auto limits = set_of({requests_per(kMinute, 1)});
  const LocalAsk local{.key = "p:a", .limits = limits};
  const LocalAsk deny{.key = "q:a", .limits = limits, .rule = OnStoreError::deny};
  EXPECT_TRUE(replica.admits(local));
  for (const auto& asks : {std::vector{local, deny}, std::vector{deny, local}}) {
    LocalCall call = replica.decided(asks);
    EXPECT_EQ(call.record.outcome, Outcome::undecided);
    EXPECT_EQ(call.record.error.code, ErrorCode::unavailable);
    EXPECT_FALSE(call.record.error.message.empty());
    EXPECT_FALSE(call.record.buckets[0].charged);
    EXPECT_FALSE(call.record.buckets[1].charged);
  }
}

TEST(LocalCounters, ACertainRefusalOfTheStoreComesFirst) {
  Replica replica;
  const auto limits = set_of({requests_per(kMinute, 1)});
  for (const OnStoreError rule : {OnStoreError::deny, OnStoreError::local, OnStoreError::allow}) {
    for (const Verdict verdict : {Verdict::refused, Verdict::never_fits}) {
      LocalCall call = replica.call(
          {{.key = "p:a", .limits = limits}, {.key = "q:a", .limits = limits, .rule = rule}});
      call.slot(0, 0).verdict = verdict;
      const std::size_t undecided[] = {1};
      replica.local.decide(call.record, undecided, kNow, 1, replica.heard);
      EXPECT_EQ(call.record.outcome, Outcome::refused);
      EXPECT_FALSE(call.record.buckets[1].charged);
      EXPECT_EQ(call.slot(0, 0).verdict, verdict);
    }
  }
  EXPECT_EQ(replica.local.stats().buckets, 0U);
}

TEST(LocalCounters, AShadowBucketThatRefusedAtTheStoreRefusesNothing) {
  Replica replica;
  const auto limits = set_of({requests_per(kMinute, 1)});
  LocalCall call = replica.call(
      {{.key = "p:a", .limits = limits, .shadow = true}, {.key = "q:a", .limits = limits}});
  call.slot(0, 0).verdict = Verdict::refused;
  const std::size_t undecided[] = {1};
  replica.local.decide(call.record, undecided, kNow, 1, replica.heard);
  EXPECT_EQ(call.record.outcome, Outcome::admitted);
  EXPECT_TRUE(call.record.buckets[1].charged);
}

TEST(LocalCounters, WhatTheStoreDecidedIsLeftAlone) {
  Replica replica;
  const auto limits = set_of({requests_per(kMinute, 10)});
  LocalCall call =
      replica.call({{.key = "p:a", .limits = limits}, {.key = "q:a", .limits = limits}});
  call.record.buckets[0].charged = true;
  call.slot(0, 0).remaining = 3;
  call.slot(0, 0).charged = {1, kStart};
  const std::size_t undecided[] = {1};
  replica.local.decide(call.record, undecided, kNow, 1, replica.heard);
  EXPECT_EQ(call.record.outcome, Outcome::admitted);
  EXPECT_TRUE(call.record.buckets[0].charged);
  EXPECT_EQ(call.record.buckets[0].local, 0U);
  EXPECT_EQ(call.slot(0, 0).remaining, 3);
  EXPECT_EQ(call.slot(0, 1).remaining, 9);
  EXPECT_FALSE(replica.settle(call, 0, 0)) << "it was charged at the store";
  EXPECT_TRUE(replica.settle(call, 0, 1));
}

// All or nothing.

TEST(LocalCounters, ChargeAllBucketsOrNone) {
  Replica replica;
  const LocalAsk key{.key = "k:a", .limits = set_of({requests_per(kMinute, 10), in_flight(10)})};
  const LocalAsk team{.key = "t:a", .limits = set_of({requests_per(kMinute, 3)})};
  EXPECT_EQ(replica.decided({team}).record.outcome, Outcome::admitted);
  EXPECT_EQ(replica.decided({key, team}).record.outcome, Outcome::admitted);
  EXPECT_EQ(replica.decided({team, key}).record.outcome, Outcome::admitted);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(replica.decided({key, team}).record.outcome, Outcome::refused);
    EXPECT_EQ(replica.decided({team, key}).record.outcome, Outcome::refused);
  }
  LocalCall last = replica.decided({key});
  EXPECT_EQ(last.slot(0).remaining, 7);
  EXPECT_EQ(last.slot(1).remaining, 7);
}

TEST(LocalCounters, AShadowBucketNeverRefusesAndIsChargedWhenItFits) {
  Replica replica;
  const LocalAsk real{.key = "k:a", .limits = set_of({requests_per(kMinute, 3)})};
  LocalAsk shadow{.key = "s:a", .limits = set_of({requests_per(kMinute, 1)})};
  shadow.shadow = true;
  LocalCall first = replica.decided({shadow, real});
  EXPECT_TRUE(first.record.buckets[0].charged);
  LocalCall second = replica.decided({shadow, real});
  EXPECT_EQ(second.record.outcome, Outcome::admitted);
  EXPECT_FALSE(second.record.buckets[0].charged);
  EXPECT_EQ(second.slot(0, 0).verdict, Verdict::refused);
  EXPECT_TRUE(second.record.buckets[1].charged);
  EXPECT_TRUE(replica.admits(real));
  // A refused admission charges no shadow bucket either.
  replica.now = kStart + 10 * kSecond;
  LocalAsk other = shadow;
  other.key = "s:b";
  LocalCall refused = replica.decided({other, real});
  EXPECT_EQ(refused.record.outcome, Outcome::refused);
  EXPECT_FALSE(refused.record.buckets[0].charged);
  EXPECT_EQ(replica.local.stats().buckets, 2U);
}

TEST(LocalCounters, AShadowBucketThatSaysDenyHasNoSay) {
  Replica replica;
  LocalAsk shadow{.key = "s:a",
                  .limits = set_of({requests_per(kMinute, 1)}),
                  .rule = OnStoreError::deny,
                  .shadow = true};
  LocalCall call = replica.decided({shadow});
  EXPECT_EQ(call.record.outcome, Outcome::admitted);
  EXPECT_FALSE(call.record.buckets[0].charged);
  EXPECT_EQ(call.slot().verdict, Verdict::skipped);
}

TEST(LocalCounters, ASkippedLimitIsNeitherCheckedNorCharged) {
  Replica replica;
  const LocalAsk ask{.key = "k:a", .limits = set_of({requests_per(kMinute, 3), in_flight(1)})};
  for (int i = 0; i < 3; ++i) {
    LocalCall call = replica.call({ask});
    call.slot(1).skip = true;
    EXPECT_EQ(replica.decide(call), Outcome::admitted);
    EXPECT_EQ(call.slot(1).verdict, Verdict::skipped);
    EXPECT_EQ(call.slot(1).remaining, 1);
  }
}

TEST(LocalCounters, APeekAnswersAsIfChargedAndChargesNothing) {
  Replica replica(2);
  const LocalAsk ask{.key = "k:a", .limits = set_of({requests_per(kMinute, 10), in_flight(10)})};
  const auto peeked = [&] {
    LocalCall call = replica.call({ask});
    replica.local.peek(call.record, call.all(), replica.now, 2, replica.heard);
    EXPECT_EQ(call.record.outcome, Outcome::admitted);
    EXPECT_FALSE(call.record.buckets[0].charged);
    EXPECT_EQ(call.slot(0).charged, limit::Charge{});
    return call.slot(0).remaining;
  };
  EXPECT_EQ(peeked(), 4);
  EXPECT_EQ(replica.local.stats().buckets, 0U);
  EXPECT_TRUE(replica.admits(ask));
  EXPECT_EQ(peeked(), 3);
  EXPECT_EQ(peeked(), 3);
  LocalCall other = replica.call({{.key = "k:a", .limits = set_of({in_flight(7)})}});
  replica.local.peek(other.record, other.all(), replica.now, 2, replica.heard);
  EXPECT_EQ(other.slot().remaining, 2);
  EXPECT_EQ(peeked(), 3) << "as if nobody had looked by other limits";
  EXPECT_EQ(replica.take()[0].spent[0].amount, 1);
}

TEST(LocalCounters, AReloadKeepsWhatWasCounted) {
  Replica replica;
  LocalAsk ask{.key = "k:a", .limits = set_of({requests_per(kMinute, 10)})};
  EXPECT_EQ(replica.admitted_of(4, ask), 4);
  ask.limits = set_of({in_flight(2), requests_per(kMinute, 5)});
  EXPECT_EQ(replica.admitted_of(9, ask), 1);
  ask.rule = OnStoreError::local_full;
  EXPECT_EQ(replica.admitted_of(9, ask), 0);
  const auto taken = replica.take();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].limits, ask.limits);
  EXPECT_EQ(taken[0].spent[0].leases.size(), 1U);
  EXPECT_EQ(taken[0].spent[1].amount, 5);
}

// Bounded.

TEST(LocalCounters, AtTheCapNewKeysOfAPolicyShareOneBucket) {
  Replica replica(1, {.max_buckets = 2});
  const auto limits = set_of({requests_per(kMinute, 3)});
  EXPECT_TRUE(replica.admits({.key = "p:a", .limits = limits}));
  EXPECT_TRUE(replica.admits({.key = "p:b", .limits = limits}));
  EXPECT_TRUE(replica.admits({.key = "p:c", .limits = limits}));
  LocalCall shared = replica.decided({{.key = "p:d", .limits = limits}});
  EXPECT_TRUE(shared.record.buckets[0].overflow);
  EXPECT_EQ(shared.slot().remaining, 1);
  EXPECT_TRUE(replica.admits({.key = "p:e", .limits = limits}));
  EXPECT_FALSE(replica.admits({.key = "p:f", .limits = limits}));
  EXPECT_TRUE(replica.admits({.key = "q:f", .limits = limits})) << "another policy";
  EXPECT_TRUE(replica.admits({.key = "p:a", .limits = limits})) << "had its own before";
  EXPECT_EQ(replica.local.stats().buckets, 4U);
  EXPECT_EQ(replica.local.stats().overflow_buckets, 2U);
  EXPECT_EQ(replica.local.stats().overflowed, 4U);
  // What the shared bucket holds is settled there and told to nobody.
  EXPECT_TRUE(replica.settle(shared, 0));
  EXPECT_TRUE(replica.admits({.key = "p:f", .limits = limits}));
  for (const SpentBucket& spent : replica.take()) {
    EXPECT_TRUE(spent.key == "p:a" || spent.key == "p:b") << spent.key;
  }
  // Once it is gone there is nobody to settle with.
  replica.now = kStart + 2 * kMinute;
  for (int i = 0; i < 9; ++i) (void)replica.admits({.key = "p:a", .limits = limits});
  EXPECT_EQ(replica.local.stats().overflow_buckets, 0U);
  EXPECT_TRUE(replica.settle(shared, 5));
}

TEST(LocalCounters, AtTheCapSpentBucketsGoFirst) {
  Replica replica(1, {.max_buckets = 3});
  const auto second = set_of({requests_per(kSecond, 3)});
  const auto minute = set_of({requests_per(kMinute, 3)});
  EXPECT_TRUE(replica.admits({.key = "p:a", .limits = minute}));
  EXPECT_TRUE(replica.admits({.key = "p:b", .limits = second}));
  EXPECT_TRUE(replica.admits({.key = "p:c", .limits = second}));
  replica.now += 2 * kSecond;
  LocalCall call =
      replica.decided({{.key = "p:d", .limits = minute}, {.key = "q:d", .limits = minute}});
  EXPECT_FALSE(call.record.buckets[0].overflow);
  EXPECT_FALSE(call.record.buckets[1].overflow);
  LocalCall none = replica.decided({{.key = "p:e", .limits = minute}});
  EXPECT_TRUE(none.record.buckets[0].overflow);
}

TEST(LocalCounters, TheBucketsOfOneAdmissionMakeNoRoomForEachOther) {
  Replica replica(1, {.max_buckets = 2});
  const auto limits = set_of({requests_per(kSecond, 3)});
  const auto asks = [&](const std::string& first, const std::string& second) {
    return std::vector<LocalAsk>{{.key = first, .limits = limits},
                                 {.key = second, .limits = limits}};
  };
  EXPECT_TRUE(replica.admits({.key = "p:a", .limits = limits}));
  LocalCall both = replica.decided(asks("p:b", "q:b"));  // room for one
  EXPECT_FALSE(both.record.buckets[0].overflow);
  EXPECT_TRUE(both.record.buckets[1].overflow);
  replica.now += 2 * kSecond;  // all are spent
  LocalCall again = replica.decided(asks("p:a", "q:a"));
  EXPECT_FALSE(again.record.buckets[0].overflow);
  EXPECT_FALSE(again.record.buckets[1].overflow) << "of the other bucket";
  Replica narrow(1, {.max_buckets = 1});
  EXPECT_TRUE(narrow.admits({.key = "p:a", .limits = limits}));
  narrow.now += 2 * kSecond;
  LocalCall last = narrow.decided(asks("p:a", "q:a"));
  EXPECT_FALSE(last.record.buckets[0].overflow);
  EXPECT_TRUE(last.record.buckets[1].overflow);
  EXPECT_EQ(last.slot(0, 0).remaining, 2);
  EXPECT_TRUE(narrow.settle(last, 0, 0));
}

TEST(LocalCounters, SpentBucketsAreFreedByTheWay) {
  Replica replica;
  const auto limits = set_of({requests_per(kSecond, 3)});
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(replica.admits({.key = "p:" + std::to_string(i), .limits = limits}));
  }
  EXPECT_EQ(replica.local.stats().buckets, 100U);
  EXPECT_EQ(replica.local.stats().unsent, 100U);
  replica.now += 5 * kSecond;
  for (int i = 0; i < 60; ++i)
    EXPECT_EQ(replica.admitted_of(1, {.key = "q", .limits = limits}), i < 3);
  EXPECT_EQ(replica.local.stats().buckets, 1U);
  EXPECT_EQ(replica.local.stats().unsent, 1U);
}

TEST(LocalCounters, EightThreadsAreAdmittedExactlyTheQuota) {
  Replica replica;
  const auto wide = set_of({requests_per(kMinute, 1000), in_flight(kMaxQuantity)});
  const auto narrow = set_of({requests_per(kMinute, 700)});
  std::atomic<int> admitted{0};
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 150; ++i) {
        const LocalAsk key{.key = "k:a", .limits = wide};
        const LocalAsk team{.key = "t:a", .limits = narrow};
        const auto asks = t % 2 == 0 ? std::vector{key, team} : std::vector{team, key};
        LocalCall call(static_cast<std::uint64_t>(t * 1000 + i), asks);
        if (replica.decide(call) == Outcome::admitted) ++admitted;
        // Every fifth is given back.
        if (call.record.outcome == Outcome::admitted && i % 5 == 0) {
          call.set_actual(0);
          EXPECT_TRUE(replica.local.settle(call.record, 0, replica.now));
          EXPECT_TRUE(replica.local.settle(call.record, 1, replica.now));
          --admitted;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(admitted.load(), 700);
  const auto taken = replica.take();
  ASSERT_EQ(taken.size(), 2U);
  for (const SpentBucket& bucket : taken) EXPECT_EQ(bucket.spent[0].amount, 700) << bucket.key;
}

}  // namespace
}  // namespace stint::store
