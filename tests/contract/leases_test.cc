// Leases of concurrency limits: who holds them, how long, and who gives them back.
#include <string>
#include <vector>

#include "tests/contract/store_contract.h"

namespace stint::store {
namespace {

STINT_STORE_CONTRACT(Leases);

TEST_P(Leases, ALeaseThatNobodyRenewsFreesItselfAtItsTtl) {
  const auto set = limits({in_flight(1)});
  ASSERT_TRUE(admits("a", set));
  advance(kLeaseTtl - kTick);
  EXPECT_FALSE(admits("a", set));
  advance(kTick);
  EXPECT_TRUE(admits("a", set));
}

TEST_P(Leases, EachLeaseHasItsOwnTtl) {
  const auto set = limits({in_flight(2)});
  ASSERT_TRUE(acquired({{"a", set}}, 30 * kSecond).admitted());
  advance(20 * kSecond);
  ASSERT_TRUE(acquired({{"a", set}}, 30 * kSecond).admitted());
  advance(10 * kSecond);
  EXPECT_EQ(remaining("a", set), 1) << "the first is gone, the second has 20 s";
  advance(20 * kSecond);
  EXPECT_EQ(remaining("a", set), 2);
}

TEST_P(Leases, ARenewalMovesTheExpiryToATtlFromNow) {
  const auto set = limits({in_flight(1)});
  Call held = acquired({{"a", set}});
  for (int i = 0; i < 10; ++i) {
    advance(kLeaseTtl - kTick);
    EXPECT_FALSE(admits("a", set));
    renew({&held});
  }
  advance(kLeaseTtl - kTick);
  EXPECT_FALSE(admits("a", set));
  advance(kTick);
  EXPECT_TRUE(admits("a", set));
}

TEST_P(Leases, ARenewalIsForAllRecordsAndAllTheirBuckets) {
  const auto set = limits({requests_per(kDay, 100), in_flight(2)});
  Call first = acquired({{"a", set}, {"b", set}});
  Call second = acquired({{"b", set}, {"a", set}});
  ASSERT_TRUE(first.admitted() && second.admitted());
  advance(20 * kSecond);
  renew({&first, &second});
  advance(20 * kSecond);
  EXPECT_EQ(remaining("a", set, 1), 0);
  EXPECT_EQ(remaining("b", set, 1), 0);
  EXPECT_EQ(remaining("a", set, 0), 98) << "a renewal charges nothing else";
}

TEST_P(Leases, ARenewalPutsBackALeaseThatExpired) {
  const auto set = limits({in_flight(1)});
  Call held = acquired({{"a", set}});
  advance(kLeaseTtl + kSecond);
  EXPECT_EQ(remaining("a", set), 1);
  renew({&held});
  EXPECT_EQ(remaining("a", set), 0) << "the stream is running, whatever the store thinks";
  EXPECT_TRUE(give_back(held));
  EXPECT_EQ(remaining("a", set), 1);
}

TEST_P(Leases, ARenewalPutsBackALeaseEvenAboveTheQuota) {
  const auto set = limits({in_flight(1)});
  Call held = acquired({{"a", set}});
  advance(kLeaseTtl);
  Call other = acquired({{"a", set}});
  ASSERT_TRUE(other.admitted());
  renew({&held});
  EXPECT_EQ(value("a"), 2);
  EXPECT_EQ(remaining("a", set), 0);
  EXPECT_TRUE(give_back(other));
  EXPECT_FALSE(admits("a", set));
  EXPECT_TRUE(give_back(held));
  EXPECT_TRUE(admits("a", set));
}

TEST_P(Leases, ARenewalPutsBackALeaseOfABucketThatIsGone) {
  const auto set = limits({requests_per(kDay, 100), in_flight(1)});
  Call held = acquired({{"a", set}});
  EXPECT_EQ(reset("a"), 1U);
  renew({&held});
  EXPECT_EQ(remaining("a", set, 1), 0);
  EXPECT_EQ(remaining("a", set, 0), 100) << "the lease comes back, the request does not";
}

TEST_P(Leases, ARenewalOfWhatHoldsNoLeaseMakesNone) {
  const auto set = limits({requests_per(kDay, 100), in_flight(1)});
  Call skipping = acquired({{"a", set, {{1}, {.need = 1, .skip = true}}}});
  ASSERT_TRUE(skipping.admitted());
  renew({&skipping});
  EXPECT_EQ(remaining("a", set, 1), 1);
  Call refused = acquired({{"b", limits({requests_per(kDay, 0), in_flight(1)})}});
  ASSERT_FALSE(refused.admitted());
  renew({&refused});
  EXPECT_EQ(value("b", 1), 0);
  renew({});
}

TEST_P(Leases, AShadowBucketThatRefusedHoldsNoLease) {
  const auto real = limits({requests_per(kDay, 100)});
  const auto shadow = limits({in_flight(1)});
  Call first = acquired({{"real", real}, {"shadow", shadow, {{1}}, true}});
  Call second = acquired({{"real", real}, {"shadow", shadow, {{1}}, true}});
  ASSERT_TRUE(first.admitted() && second.admitted());
  renew({&second});
  EXPECT_EQ(value("shadow"), 1);
  EXPECT_TRUE(settle(second, {1, 0}));
  EXPECT_EQ(value("shadow"), 1) << "the first one's";
  EXPECT_TRUE(settle(first, {1, 0}));
  EXPECT_EQ(value("shadow"), 0);
}

TEST_P(Leases, SettlingTwiceFreesNobodyElsesSlot) {
  const auto set = limits({in_flight(2)});
  Call first = acquired({{"a", set}});
  Call second = acquired({{"a", set}});
  EXPECT_TRUE(give_back(first));
  EXPECT_TRUE(give_back(first));
  EXPECT_EQ(value("a"), 1);
  Call third = acquired({{"a", set}});
  EXPECT_TRUE(third.admitted());
  EXPECT_TRUE(give_back(first));
  EXPECT_EQ(value("a"), 2);
}

TEST_P(Leases, SettlingAnExpiredLeaseFreesNobodyElsesSlot) {
  const auto set = limits({in_flight(1)});
  Call late = acquired({{"a", set}});
  advance(kLeaseTtl);
  Call other = acquired({{"a", set}});
  ASSERT_TRUE(other.admitted());
  EXPECT_TRUE(give_back(late));
  EXPECT_FALSE(admits("a", set));
}

TEST_P(Leases, AForeignIdFreesNothing) {
  const auto set = limits({in_flight(2)});
  Call held = acquired({{"a", set}});
  Call foreign = acquired({{"b", set}});
  // As if it had been charged to "a" too, which it was not.
  Call forged = call({{"a", set}});
  forged.record().outcome = Outcome::admitted;
  forged.record().buckets[0].charged = true;
  forged.record().slots[0].charged = {1, TimePoint{}};
  forged.record().id = foreign.record().id;
  EXPECT_TRUE(give_back(forged));
  EXPECT_EQ(value("a"), 1);
  EXPECT_EQ(value("b"), 1);
}

TEST_P(Leases, ASlotIsFreeAgainWhateverElseIsSettled) {
  const auto set = limits({tokens_per(kMinute, 1000), in_flight(1)});
  Call made = acquired({{"a", set, {{100}, {1}}}});
  EXPECT_FALSE(acquired({{"a", set, {{100}, {1}}}}).admitted());
  EXPECT_TRUE(settle(made, {100, 0}));
  EXPECT_EQ(value("a", 0), 100);
  EXPECT_EQ(value("a", 1), 0);
}

TEST_P(Leases, AskingForNoSlotTakesNone) {
  const auto set = limits({requests_per(kDay, 100), in_flight(2)});
  Call made = acquired({{"a", set, {{1}, {0}}}});
  ASSERT_TRUE(made.admitted());
  EXPECT_EQ(made.slot(1).remaining, 2);
  EXPECT_EQ(value("a", 1), 0);
  renew({&made});
  EXPECT_EQ(value("a", 1), 0);
}

TEST_P(Leases, ASkippedConcurrencyLimitLeavesTheLeasesOfOthersAlone) {
  const auto set = limits({requests_per(kDay, 100), in_flight(1)});
  Call held = acquired({{"a", set}});
  // Who takes no slot has no ttl to give.
  Call passing = call({{"a", set, {{1}, {.need = 1, .skip = true}}}}, Duration{0});
  EXPECT_EQ(acquire(passing), Outcome::admitted);
  EXPECT_EQ(passing.slot(1).verdict, Verdict::skipped);
  EXPECT_EQ(value("a", 1), 1);
  advance(kLeaseTtl - kTick);
  EXPECT_FALSE(admits("a", set));
}

TEST_P(Leases, SettlingAChargeWithoutASlotLeavesTheLeasesOfOthersAlone) {
  const auto set = limits({tokens_per(kDay, 100), in_flight(1)});
  Call passing = call({{"a", set, {{10}, {.need = 1, .skip = true}}}}, Duration{0});
  EXPECT_EQ(acquire(passing), Outcome::admitted);
  Call held = acquired({{"a", set}});
  ASSERT_TRUE(held.admitted());
  EXPECT_TRUE(settle(passing, {3, 0}));
  EXPECT_EQ(value("a", 0), 4);
  EXPECT_EQ(value("a", 1), 1);
  advance(kSecond);
  EXPECT_FALSE(admits("a", set));
}

TEST_P(Leases, AShorterTtlCutsLongerLeases) {
  // A reload made the ttl shorter: a crashed holder's slot comes back within the new one.
  const auto set = limits({in_flight(2)});
  ASSERT_TRUE(acquired({{"a", set}}, kHour).admitted());
  ASSERT_TRUE(acquired({{"a", set}}, 10 * kSecond).admitted());
  advance(10 * kSecond);
  EXPECT_TRUE(acquired({{"a", set}}, 10 * kSecond).admitted());
}

TEST_P(Leases, ManyHoldersComeAndGoAndTheCountIsExact) {
  constexpr std::size_t kQuota = 50;
  const auto set = limits({in_flight(kQuota)});
  std::vector<Call> held;
  for (int round = 0; round < 20; ++round) {
    while (true) {
      Call next = acquired({{"a", set}});
      if (!next.admitted()) break;
      held.push_back(std::move(next));
    }
    EXPECT_EQ(held.size(), kQuota);
    for (int i = 0; i <= round; ++i) {
      EXPECT_TRUE(give_back(held.front()));
      held.erase(held.begin());
    }
    EXPECT_EQ(value("a"), static_cast<std::int64_t>(held.size()));
  }
}

}  // namespace
}  // namespace stint::store
