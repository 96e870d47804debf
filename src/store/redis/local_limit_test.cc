#include "store/redis/local_limit.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "limit/step_testing.h"
#include "store/redis/local_testing.h"

namespace stint::store {
namespace {

using limit::kFits;
using limit::kNeverFits;
using limit::refused_for;
using limit::Spec;
using limit::spec_of;

limit::Moment moment(TimePoint now, std::uint64_t id = 1) { return {now, base::Id{1, id}, kTtl}; }

// A limit that begins at `now`, having heard at `heard_at` what counts until `until`.
LocalLimit heard_of(const Spec& spec, std::int64_t replicas, std::int64_t value, TimePoint heard_at,
                    TimePoint until, TimePoint now) {
  const HeardLimit heard{value, until};
  LocalLimit limit(spec, {.replicas = replicas, .heard = &heard, .heard_at = heard_at}, now);
  limit.advance(moment(now));
  return limit;
}

std::int64_t left(LocalLimit& limit, TimePoint now) {
  limit.advance(moment(now));
  return limit.read(now).remaining;
}

TEST(LocalLimit, TheShareIsWhatWasLeftDividedByTheReplicasRoundedUpAndAtLeastOne) {
  struct Case {
    std::int64_t quota, heard, replicas, now, later;
  };
  const Case cases[] = {
      {100, 0, 1, 100, 100}, {100, 40, 1, 60, 100}, {100, 100, 1, 1, 100}, {100, 0, 2, 50, 50},
      {100, 40, 2, 30, 50},  {100, 100, 2, 1, 50},  {100, 0, 3, 34, 34},   {100, 40, 3, 20, 34},
      {100, 41, 3, 20, 34},  {100, 99, 3, 1, 34},   {100, 100, 3, 1, 34},  {1, 0, 3, 1, 1},
      {1, 1, 3, 1, 1},       {0, 0, 3, 0, 0},       {10, 40, 2, 1, 5},  // a reload has made the
                                                                        // quota smaller since
  };
  for (const Algorithm algorithm :
       {Algorithm::fixed_window, Algorithm::sliding_window, Algorithm::sliding_log}) {
    for (const Case& one : cases) {
      const TimePoint at = kStart + 20 * kSecond;
      LocalLimit limit = heard_of(spec_of(requests_per(kMinute, one.quota, algorithm)),
                                  one.replicas, one.heard, at, kStart + 80 * kSecond, at);
      const auto told = "quota " + std::to_string(one.quota) + " heard " +
                        std::to_string(one.heard) + " replicas " + std::to_string(one.replicas) +
                        " " + std::string(to_string(algorithm));
      EXPECT_EQ(left(limit, at), one.now) << told;
      EXPECT_EQ(left(limit, kStart + 3 * kMinute), one.later) << told;
    }
  }
}

TEST(LocalLimit, OfAWindowThatIsOverNothingWasHeard) {
  const Spec spec = spec_of(requests_per(kMinute, 100));
  LocalLimit limit =
      heard_of(spec, 2, 100, kStart, kStart + kMinute, kStart + kMinute);  // just begun
  EXPECT_EQ(left(limit, kStart + kMinute), 50);
  // One of which only the window before was left is whole when its own is over.
  LocalLimit sliding = heard_of(spec_of(requests_per(kMinute, 100, Algorithm::sliding_window)), 2,
                                80, kStart, kStart + kMinute, kStart + kMinute);
  EXPECT_EQ(left(sliding, kStart + kMinute), 50);
}

TEST(LocalLimit, AFixedWindowWaitsForTheNextOne) {
  const TimePoint now = kStart + 20 * kSecond;
  LocalLimit limit = heard_of(spec_of(requests_per(kMinute, 100)), 2, 100, kStart + 10 * kSecond,
                              kStart + kMinute, now);
  EXPECT_EQ(limit.check(1, now), kFits);
  (void)limit.charge(1, moment(now));
  EXPECT_EQ(limit.check(1, now), refused_for(40 * kSecond));
  EXPECT_EQ(limit.read(now).remaining, 0);
  EXPECT_EQ(limit.read(now).reset, 40 * kSecond);
  EXPECT_EQ(left(limit, kStart + kMinute), 50);
}

TEST(LocalLimit, ASlidingWindowForgetsWhatWasHeardBitByBit) {
  const TimePoint now = kStart + 20 * kSecond;
  // A share of 50, 40 of them used: it counts in full until its window is over, then by the part
  // of it that is still covered.
  LocalLimit limit = heard_of(spec_of(requests_per(kMinute, 100, Algorithm::sliding_window)), 2, 80,
                              now, kStart + 2 * kMinute, now);
  EXPECT_EQ(left(limit, now), 10);
  EXPECT_EQ(left(limit, kStart + 59 * kSecond), 10);
  EXPECT_EQ(left(limit, kStart + 90 * kSecond), 30);
  EXPECT_EQ(left(limit, kStart + 2 * kMinute), 50);
}

TEST(LocalLimit, ALogIsTakenToBeAsOldAsItsYoungestEntry) {
  const TimePoint now = kStart + 20 * kSecond;
  LocalLimit limit = heard_of(spec_of(requests_per(kMinute, 10, Algorithm::sliding_log)), 2, 10,
                              now, kStart + 70 * kSecond, now);
  EXPECT_EQ(left(limit, now), 1);
  (void)limit.charge(1, moment(now));
  EXPECT_EQ(limit.check(1, now), refused_for(50 * kSecond));
  EXPECT_EQ(left(limit, kStart + 70 * kSecond - Duration{1}), 0);
  EXPECT_EQ(left(limit, kStart + 70 * kSecond), 4);
  EXPECT_EQ(left(limit, kStart + 80 * kSecond), 5);
}

TEST(LocalLimit, ATokenBucketStartsFromWhatItHasRegainedAndRefillsByItsShare) {
  // 60 a minute and a burst of 30, by 3 replicas: 20 a minute each and a burst of 10.
  const Spec spec = spec_of(bucket_per(kMinute, 60, 30));
  const TimePoint now = kStart + 5 * kSecond;
  LocalLimit limit = heard_of(spec, 3, 6, kStart, kStart + 24 * kSecond, now);
  EXPECT_EQ(left(limit, now), 4);  // (6 + 5) / 3, rounded up
  EXPECT_EQ(left(limit, now + 3 * kSecond), 5);
  EXPECT_EQ(left(limit, now + kMinute), 10);
  LocalLimit owes = heard_of(spec, 3, -16, kStart, kStart + 46 * kSecond, now);
  EXPECT_EQ(left(owes, now), 0);
  EXPECT_EQ(owes.check(1, now), refused_for(12 * kSecond));  // from -3 to 1 at one in 3 s
  LocalLimit unheard(spec, {.replicas = 3}, now);
  EXPECT_EQ(left(unheard, now), 10);
}

TEST(LocalLimit, LeasesThatWereHeardOfCountUntilTheyWouldHaveEnded) {
  const TimePoint now = kStart + 10 * kSecond;
  LocalLimit limit = heard_of(spec_of(in_flight(10)), 2, 7, kStart, kStart + 30 * kSecond, now);
  EXPECT_EQ(left(limit, now), 2);
  (void)limit.charge(1, moment(now, 1));
  (void)limit.charge(1, moment(now, 2));
  EXPECT_EQ(limit.check(1, now), refused_for(kSecond));
  EXPECT_EQ(left(limit, kStart + 30 * kSecond - Duration{1}), 0);
  EXPECT_EQ(left(limit, kStart + 30 * kSecond), 3);  // 5, and two of its own
  LocalLimit full = heard_of(spec_of(in_flight(10)), 2, 10, kStart, kStart + 30 * kSecond, now);
  EXPECT_EQ(left(full, now), 1);
}

TEST(LocalLimit, OnlyTheRealQuotaSaysNever) {
  const TimePoint now = kStart + 20 * kSecond;
  LocalLimit limit(spec_of(tokens_per(kMinute, 100)), {.replicas = 3}, now);
  limit.advance(moment(now));
  EXPECT_EQ(limit.check(34, now), kFits);
  EXPECT_EQ(limit.check(35, now), refused_for(kMinute));
  EXPECT_EQ(limit.check(100, now), refused_for(kMinute));
  EXPECT_EQ(limit.check(101, now), kNeverFits);
  LocalLimit burst(spec_of(bucket_per(kMinute, 60, 30)), {.replicas = 3}, now);
  EXPECT_EQ(burst.check(11, now), refused_for(kMinute));
  EXPECT_EQ(burst.check(31, now), kNeverFits);
  for (const Limit& none : {requests_per(kMinute, 0), bucket_per(kMinute, 60, 0), in_flight(0)}) {
    LocalLimit closed(spec_of(none), {.replicas = 3}, now);
    closed.advance(moment(now));
    EXPECT_EQ(closed.check(0, now), kNeverFits);
  }
}

TEST(LocalLimit, OtherQuotasAndReplicasKeepWhatWasCounted) {
  const TimePoint now = kStart + 20 * kSecond;
  LocalLimit limit(spec_of(requests_per(kMinute, 100)), {.replicas = 2}, now);
  limit.advance(moment(now));
  (void)limit.charge(15, moment(now));
  limit.refit(spec_of(requests_per(kMinute, 40)), 2);
  EXPECT_EQ(left(limit, now), 5);
  limit.refit(spec_of(requests_per(kMinute, 40)), 4);
  EXPECT_EQ(left(limit, now), 0);
  EXPECT_EQ(limit.take(now).amount, 15);
}

TEST(LocalLimit, ACopyCountsByItself) {
  const TimePoint now = kStart;
  for (const Limit& one : {requests_per(kMinute, 5), in_flight(5), bucket_per(kMinute, 5, 5),
                           requests_per(kMinute, 5, Algorithm::sliding_log)}) {
    LocalLimit limit(spec_of(one), {}, now);
    limit.advance(moment(now));
    LocalLimit copy(limit);
    (void)copy.charge(1, moment(now, 7));
    EXPECT_EQ(left(limit, now), 5);
    EXPECT_EQ(left(copy, now), 4);
    EXPECT_TRUE(limit.take(now).empty());
    EXPECT_FALSE(copy.take(now).empty());
  }
}

// What is handed out: the own spending, not what was heard, and only what still counts.

TEST(LocalLimit, WhatWasHeardIsNotSpent) {
  const TimePoint at = kStart + 20 * kSecond;
  for (const Limit& one : {requests_per(kMinute, 90), bucket_per(kMinute, 90, 90), in_flight(90),
                           requests_per(kMinute, 90, Algorithm::sliding_log),
                           requests_per(kMinute, 90, Algorithm::sliding_window)}) {
    LocalLimit limit = heard_of(spec_of(one), 3, 45, at, kStart + 65 * kSecond, at);
    EXPECT_TRUE(limit.take(at).empty()) << to_string(one.algorithm);
  }
}

TEST(LocalLimit, SpentWindowsAreThoseThatCount) {
  const TimePoint now = kStart + 20 * kSecond;
  LocalLimit fixed(spec_of(requests_per(kMinute, 100)), {}, now);
  LocalLimit sliding(spec_of(requests_per(kMinute, 100, Algorithm::sliding_window)), {}, now);
  for (LocalLimit* limit : {&fixed, &sliding}) {
    limit->advance(moment(now));
    (void)limit->charge(7, moment(now));
    limit->advance(moment(now + kMinute));
    (void)limit->charge(3, moment(now + kMinute));
  }
  EXPECT_EQ(fixed.take(now + kMinute), (SpentLimit{.window = kStart + kMinute, .amount = 3}));
  EXPECT_EQ(sliding.take(now + kMinute),
            (SpentLimit{.window = kStart + kMinute, .amount = 3, .previous = 7}));
  EXPECT_TRUE(fixed.take(now + kMinute).empty());
  EXPECT_TRUE(sliding.take(now + kMinute).empty());
}

TEST(LocalLimit, SpentOfATokenBucketIsWhatItHasNotRegained) {
  LocalLimit limit(spec_of(bucket_per(kMinute, 60, 30)), {}, kStart);  // one a second
  limit.advance(moment(kStart));
  (void)limit.charge(20, moment(kStart));
  LocalLimit later(limit);
  EXPECT_EQ(limit.take(kStart).amount, 20);
  later.advance(moment(kStart + 15 * kSecond));
  EXPECT_EQ(later.take(kStart + 15 * kSecond).amount, 5);
  EXPECT_EQ(later.take(kStart + 15 * kSecond).amount, 0);
  // Heard at 10, it would have been at 25 of 30 by now: all that was spent is missing.
  LocalLimit heard =
      heard_of(spec_of(bucket_per(kMinute, 60, 30)), 1, 10, kStart, kStart + 20 * kSecond, kStart);
  (void)heard.charge(4, moment(kStart));
  heard.advance(moment(kStart + 15 * kSecond));
  EXPECT_EQ(heard.take(kStart + 15 * kSecond).amount, 4);
}

TEST(LocalLimit, SpentEntriesAndLeasesAreToldByTheirIds) {
  LocalLimit log(spec_of(requests_per(kMinute, 10, Algorithm::sliding_log)), {}, kStart);
  LocalLimit leases(spec_of(in_flight(10)), {}, kStart);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    const TimePoint now = kStart + static_cast<std::int64_t>(id) * 10 * kSecond;
    log.advance(moment(now, id));
    leases.advance(moment(now, id));
    (void)log.charge(2, moment(now, id));
    (void)leases.charge(1, moment(now, id));
  }
  log.settle({2, {}}, 0, moment(kStart + 30 * kSecond, 2));
  const TimePoint now = kStart + 45 * kSecond;
  EXPECT_EQ(log.take(now).log, (std::vector<SpentEntry>{{{1, 1}, 2, kStart + 10 * kSecond},
                                                        {{1, 3}, 2, kStart + 30 * kSecond}}));
  // The first has expired by now.
  EXPECT_EQ(leases.take(now).leases, (std::vector<SpentLease>{{{1, 2}, kStart + 50 * kSecond},
                                                              {{1, 3}, kStart + 60 * kSecond}}));
}

}  // namespace
}  // namespace stint::store
