// What was charged in this process: settled, renewed, handed out to be told to the store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/redis/local_counters.h"
#include "store/redis/local_testing.h"

namespace stint::store {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TEST(LocalSettlement, TheActualReplacesTheCharge) {
  Replica replica;
  const LocalAsk ask{.key = "k:a", .limits = set_of({tokens_per(kMinute, 100)}), .need = 40};
  LocalCall less = replica.decided({ask});
  LocalCall more = replica.decided({ask});
  EXPECT_TRUE(replica.settle(less, 10));
  EXPECT_TRUE(replica.settle(more, 55));
  EXPECT_EQ(replica.take()[0].spent[0].amount, 65);
}

TEST(LocalSettlement, WhatTheStoreMayHoldAlreadyIsNotToldToItAgain) {
  Replica replica;
  const LocalAsk ask{.key = "k:a",
                     .limits = set_of({tokens_per(kMinute, 100),
                                       requests_per(kMinute, 100, Algorithm::sliding_log)}),
                     .need = 40};
  const auto with_lost_answer = [&] {
    LocalCall call = replica.call({ask});
    call.record.buckets[0].maybe_charged = true;
    replica.decide(call);
    return call;
  };
  LocalCall less = with_lost_answer();
  LocalCall more = with_lost_answer();
  ASSERT_EQ(more.record.outcome, Outcome::admitted);
  EXPECT_EQ(more.slot().remaining, 20) << "here it counts";
  less.slot().actual = 10;
  less.slot(1).actual = 40;
  more.slot().actual = 55;
  more.slot(1).actual = 0;
  EXPECT_TRUE(replica.local.settle(less.record, 0, replica.now));
  EXPECT_TRUE(replica.local.settle(more.record, 0, replica.now));
  const auto spent = replica.take()[0].spent;
  EXPECT_EQ(spent[0].amount, 15) << "what was used beyond the charge";
  EXPECT_THAT(spent[1].log, SizeIs(1)) << "entries have an id, and may be told twice";
}

TEST(LocalSettlement, ASecondTimeChangesNothing) {
  Replica replica;
  const LocalAsk ask{.key = "k:a", .limits = set_of({tokens_per(kMinute, 100)}), .need = 40};
  LocalCall call = replica.decided({ask});
  LocalCall other = replica.decided({ask});
  EXPECT_TRUE(replica.settle(call, 10));
  EXPECT_TRUE(replica.settle(call, 10));
  EXPECT_EQ(replica.take()[0].spent[0].amount, 50);
}

TEST(LocalSettlement, ARefundGoesToTheWindowThatWasChargedAndAnOverspendToTheCurrentOne) {
  Replica replica;
  const LocalAsk ask{.key = "k:a", .limits = set_of({tokens_per(kMinute, 100)}), .need = 40};
  LocalCall less = replica.decided({ask});
  LocalCall more = replica.decided({ask});
  replica.now = kStart + kMinute;
  LocalCall current = replica.decided({ask});
  EXPECT_TRUE(replica.settle(less, 10));
  EXPECT_TRUE(replica.settle(more, 45));
  EXPECT_EQ(replica.take()[0].spent[0], (SpentLimit{.window = kStart + kMinute, .amount = 45}));
}

TEST(LocalSettlement, ATokenBucketIsGivenBackWhatItHasNotRegained) {
  Replica replica;
  const LocalAsk ask{.key = "k:a", .limits = set_of({bucket_per(kMinute, 60, 30)}), .need = 20};
  LocalCall call = replica.decided({ask});
  EXPECT_LT(call.slot().charged.window.time_since_epoch(), Duration::zero())
      << "an epoch that no bucket of the store has";
  replica.now += 5 * kSecond;
  EXPECT_TRUE(replica.settle(call, 12));
  EXPECT_EQ(replica.take()[0].spent[0].amount, 7);
}

TEST(LocalSettlement, FreesTheSlotOfTheRecordAlone) {
  Replica replica;
  const LocalAsk ask{.key = "k:a", .limits = set_of({in_flight(2)})};
  LocalCall first = replica.decided({ask});
  LocalCall second = replica.decided({ask});
  EXPECT_FALSE(replica.admits(ask));
  EXPECT_TRUE(replica.settle(first, 0));
  EXPECT_TRUE(replica.settle(first, 0));
  EXPECT_TRUE(replica.admits(ask));
  EXPECT_FALSE(replica.admits(ask));
}

TEST(LocalSettlement, TakesALogEntryAway) {
  Replica replica;
  const LocalAsk ask{.key = "k:a",
                     .limits = set_of({requests_per(kMinute, 2, Algorithm::sliding_log)})};
  LocalCall first = replica.decided({ask});
  EXPECT_TRUE(replica.admits(ask));
  EXPECT_FALSE(replica.admits(ask));
  EXPECT_TRUE(replica.settle(first, 0));
  EXPECT_TRUE(replica.admits(ask));
  EXPECT_THAT(replica.take()[0].spent[0].log, SizeIs(2));
}

TEST(LocalRenewal, MovesTheExpiryAndPutsBackALeaseThatExpired) {
  Replica replica;
  const LocalAsk ask{.key = "k:a", .limits = set_of({in_flight(2), requests_per(10 * kMinute, 9)})};
  LocalCall call = replica.decided({ask});
  replica.now += 20 * kSecond;
  EXPECT_TRUE(replica.local.renew(call.record, 0, replica.now));
  replica.now += 29 * kSecond;
  EXPECT_EQ(replica.decided({ask}).slot(0).remaining, 0);
  replica.now += 10 * kMinute - kMinute;
  EXPECT_TRUE(replica.local.renew(call.record, 0, replica.now));
  LocalCall other = replica.decided({ask});
  EXPECT_EQ(other.slot(0).remaining, 0);
  EXPECT_THAT(replica.take()[0].spent[0].leases,
              testing::ElementsAre(SpentLease{{1, 1}, replica.now + kTtl},
                                   SpentLease{{1, 3}, replica.now + kTtl}));
}

TEST(LocalCarry, HandsOutEachChargeOnceWithAllThatTheStoreNeeds) {
  Replica replica(2);
  const LocalAsk ask{.key = "k:a", .limits = set_of({requests_per(kMinute, 100), in_flight(10)})};
  replica.hear(ask, 10);
  LocalCall call = replica.decided({ask});
  const auto taken = replica.take();
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].key, "k:a");
  EXPECT_EQ(taken[0].text, "k:a");
  EXPECT_EQ(taken[0].limits, ask.limits);
  EXPECT_EQ(taken[0].spent[0], (SpentLimit{.window = kStart, .amount = 1}));
  EXPECT_EQ(taken[0].spent[1].leases, (std::vector<SpentLease>{{{1, 1}, kStart + kTtl}}));
  EXPECT_THAT(replica.take(), IsEmpty());
  EXPECT_EQ(replica.local.stats().unsent, 0U);
  EXPECT_EQ(replica.local.stats().under_way, 1U);
  replica.local.told();
  EXPECT_EQ(replica.local.stats().under_way, 0U);
  EXPECT_FALSE(replica.settle(call, 0)) << "the store has it";
  EXPECT_FALSE(replica.local.renew(call.record, 0, replica.now));
}

TEST(LocalCarry, LeavesOutWhatIsOver) {
  Replica replica;
  const auto second = set_of({requests_per(kSecond, 100)});
  const auto both = set_of({requests_per(kSecond, 100), requests_per(kMinute, 100)});
  EXPECT_TRUE(replica.admits({.key = "p:a", .limits = second}));
  EXPECT_TRUE(replica.admits({.key = "p:b", .limits = both}));
  replica.now += 2 * kSecond;
  const auto taken = replica.take();
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].key, "p:b");
  EXPECT_TRUE(taken[0].spent[0].empty());
  EXPECT_EQ(taken[0].spent[1].amount, 1);
  EXPECT_EQ(replica.local.stats().unsent, 0U);
}

TEST(LocalCarry, GoesOnWithACursorAndTakesOnlyWhatIsWanted) {
  Replica replica;
  const auto limits = set_of({requests_per(kMinute, 100)});
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(replica.admits(
        {.key = (i % 2 == 0 ? "even:" : "odd:") + std::to_string(i), .limits = limits}));
  }
  const auto even = [](std::string_view key) { return key.starts_with("even"); };
  auto page = replica.local.take_spent(replica.now, 3, 0, even);
  EXPECT_THAT(page.buckets, SizeIs(3));
  EXPECT_NE(page.next, 0U);
  page = replica.local.take_spent(replica.now, 3, page.next, even);
  EXPECT_THAT(page.buckets, SizeIs(2));
  EXPECT_EQ(page.next, 0U);
  EXPECT_EQ(replica.local.stats().unsent, 5U);
  EXPECT_THAT(replica.take(), SizeIs(5));
}

TEST(LocalCarry, LooksAtABoundedNumberOfBuckets) {
  Replica replica;
  const auto limits = set_of({requests_per(kMinute, 100)});
  for (int i = 0; i < 3000; ++i) {
    EXPECT_TRUE(replica.admits({.key = "p:" + std::to_string(i), .limits = limits}));
  }
  std::size_t looked = 0;
  std::uint64_t cursor = 0;
  int calls = 0;
  do {
    std::size_t now = 0;
    cursor = replica.local
                 .take_spent(replica.now, 100, cursor,
                             [&](std::string_view) {
                               ++now;
                               return false;
                             })
                 .next;
    EXPECT_LE(now, 1024U);
    looked += now;
    ++calls;
  } while (cursor != 0);
  EXPECT_EQ(looked, 3000U);
  EXPECT_EQ(calls, 3);
}

TEST(LocalCarry, TheShareStaysUsedUntilTheBucketIsHeardOfAgain) {
  Replica replica(2);
  const LocalAsk ask{.key = "k:a", .limits = set_of({requests_per(kMinute, 100)})};
  replica.hear(ask, 80);
  EXPECT_EQ(replica.admitted_of(100, ask), 40);
  EXPECT_EQ(replica.take()[0].spent[0].amount, 40);
  EXPECT_FALSE(replica.admits(ask)) << "the store went away again";
  replica.now += kSecond;
  replica.hear(ask, 30);
  EXPECT_EQ(replica.admitted_of(100, ask), 15);
  EXPECT_EQ(replica.take()[0].spent[0].amount, 15);
}

TEST(LocalCarry, WhatWasNotSentIsPutBack) {
  Replica replica;
  const LocalAsk ask{.key = "k:a",
                     .limits = set_of({tokens_per(kMinute, 100),
                                       tokens_per(kMinute, 100, Algorithm::sliding_window),
                                       bucket_per(kMinute, 60, 50), in_flight(9),
                                       requests_per(kMinute, 50, Algorithm::sliding_log)}),
                     .need = 1};
  LocalCall first = replica.decided({ask});
  LocalCall second = replica.decided({ask});
  auto taken = replica.take();
  ASSERT_THAT(taken, SizeIs(1));
  const std::vector<SpentLimit> before = taken[0].spent;
  EXPECT_FALSE(replica.settle(first, 0));
  replica.local.restore(taken[0], replica.now);
  EXPECT_EQ(replica.local.stats().unsent, 1U);
  EXPECT_EQ(replica.local.stats().under_way, 0U);
  LocalCall third = replica.decided({ask});
  EXPECT_EQ(third.slot(0).remaining, 97) << "not counted twice";
  EXPECT_TRUE(replica.settle(third, 0));
  EXPECT_TRUE(replica.settle(second, 0)) << "is here again";
  EXPECT_TRUE(replica.local.renew(first.record, 0, replica.now));
  taken = replica.take();
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].spent[0].amount, 1);
  EXPECT_EQ(taken[0].spent[1].amount, 1);
  EXPECT_EQ(taken[0].spent[2].amount, 1);
  EXPECT_THAT(taken[0].spent[3].leases, SizeIs(1));
  EXPECT_THAT(taken[0].spent[4].log, SizeIs(1));
  EXPECT_EQ(before[0].amount, 2);
}

TEST(LocalCarry, WhatWasChargedMeanwhileIsAddedToWhatIsPutBack) {
  Replica replica;
  const LocalAsk ask{.key = "k:a", .limits = set_of({requests_per(kMinute, 100), in_flight(9)})};
  LocalCall first = replica.decided({ask});
  auto taken = replica.take();
  LocalCall second = replica.decided({ask});
  replica.local.restore(taken[0], replica.now);
  EXPECT_TRUE(replica.settle(first, 1));
  EXPECT_TRUE(replica.settle(second, 1));
  taken = replica.take();
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].spent[0].amount, 2);
  EXPECT_FALSE(replica.settle(first, 0));
  EXPECT_FALSE(replica.settle(second, 0));
}

TEST(LocalCarry, OfWhatIsPutBackOnlyOpenWindowsCount) {
  Replica replica;
  const LocalAsk ask{.key = "k:a",
                     .limits = set_of({requests_per(kSecond, 100), requests_per(kMinute, 100),
                                       requests_per(kSecond, 9, Algorithm::sliding_window),
                                       requests_per(kSecond, 9, Algorithm::sliding_log)})};
  LocalCall call = replica.decided({ask});
  auto taken = replica.take();
  replica.now += kSecond;
  replica.local.restore(taken[0], replica.now);
  taken = replica.take();
  EXPECT_EQ(taken[0].spent[0].amount, 0);
  EXPECT_EQ(taken[0].spent[1].amount, 1);
  EXPECT_EQ(taken[0].spent[2].amount, 0);
  EXPECT_EQ(taken[0].spent[2].previous, 1);
  EXPECT_THAT(taken[0].spent[3].log, IsEmpty());
}

TEST(LocalCarry, WhatIsPutBackIntoABucketThatBeganAnewIsChargedToIt) {
  Replica replica(2);
  const LocalAsk ask{.key = "k:a",
                     .limits = set_of({requests_per(kMinute, 100), bucket_per(kMinute, 60, 60)})};
  EXPECT_EQ(replica.admitted_of(10, ask), 10);
  auto taken = replica.take();
  replica.now += kSecond;
  replica.hear(ask, 40, 20 * kSecond);
  EXPECT_TRUE(replica.admits(ask));  // of 20
  replica.local.restore(taken[0], replica.now);
  LocalCall last = replica.decided({ask});
  EXPECT_EQ(last.slot(0).remaining, 8);
  EXPECT_EQ(last.slot(1).remaining, 8);
  taken = replica.take();
  EXPECT_EQ(taken[0].spent[0].amount, 12);
  EXPECT_EQ(taken[0].spent[1].amount, 12);
}

TEST(LocalCarry, ABucketWhoseSpendingWasTakenIsFreedWhenItIsOver) {
  Replica replica;
  const LocalAsk ask{.key = "k:a", .limits = set_of({requests_per(kMinute, 100)})};
  EXPECT_TRUE(replica.admits(ask));
  auto taken = replica.take();
  EXPECT_EQ(replica.local.stats().buckets, 1U);
  replica.now += kMinute;
  EXPECT_THAT(replica.take(), IsEmpty());
  EXPECT_EQ(replica.local.stats().buckets, 0U);
  replica.local.restore(taken[0], replica.now);
  EXPECT_EQ(replica.local.stats().buckets, 0U);
  EXPECT_THAT(replica.take(), IsEmpty());
}

}  // namespace
}  // namespace stint::store
