#include "limit/lease_set.h"

#include <gtest/gtest.h>

#include "limit/step_testing.h"

namespace stint::limit {
namespace {

using namespace std::chrono_literals;

constexpr base::Id id(std::uint64_t number) { return {7, number}; }

LeaseSet holding(std::uint64_t leases, TimePoint expiry) {
  LeaseSet set;
  for (std::uint64_t i = 1; i <= leases; ++i) set.put(id(i), expiry);
  return set;
}

TEST(LeaseSet, AdmitsTheQuotaAndHintsAtASecond) {
  const Spec spec = spec_of(in_flight(3));
  EXPECT_EQ(holding(2, at(130s)).check(spec, 1), kFits);
  EXPECT_EQ(holding(3, at(130s)).check(spec, 1), refused_for(1s));
  EXPECT_EQ(holding(3, at(130s)).check(spec, 0), kFits);
}

TEST(LeaseSet, OfQuotaZeroNeverFits) {
  const Spec spec = spec_of(in_flight(0));
  EXPECT_EQ(LeaseSet{}.check(spec, 0), kNeverFits);
  EXPECT_EQ(LeaseSet{}.check(spec, 1), kNeverFits);
  EXPECT_EQ(LeaseSet{}.check(spec_of(in_flight(1)), 2), kNeverFits);
}

TEST(LeaseSet, ReadsWhatIsFreeAndHasNoTimeToWholeness) {
  const Spec spec = spec_of(in_flight(3));
  EXPECT_EQ(LeaseSet{}.read(spec), (Reading{3, 0s}));
  EXPECT_EQ(holding(2, at(130s)).read(spec), (Reading{1, 0s}));
  EXPECT_EQ(holding(3, at(130s)).read(spec), (Reading{0, 1s}));
}

TEST(LeaseSet, QuotaLoweredBelowUseLeavesNothing) {
  const Spec spec = spec_of(in_flight(2));
  EXPECT_EQ(holding(5, at(130s)).read(spec), (Reading{0, 1s}));
  EXPECT_EQ(holding(5, at(130s)).check(spec, 1), refused_for(1s));
}

TEST(LeaseSet, LeaseIsLiveUntilItsExpiry) {
  LeaseSet set = holding(1, at(130s));
  set.advance(30s, at(130s - 1us));
  EXPECT_EQ(set.live(), 1);
  set.advance(30s, at(130s));
  EXPECT_EQ(set.live(), 0);
  EXPECT_EQ(set.spent_at(), kAlwaysSpent);
}

TEST(LeaseSet, DropsOnlyWhatHasExpired) {
  LeaseSet set;
  set.put(id(1), at(110s));
  set.put(id(2), at(120s));
  set.put(id(3), at(130s));
  set.advance(30s, at(119s));
  EXPECT_EQ(set.live(), 2);
  set.advance(30s, at(120s));
  EXPECT_EQ(set.live(), 1);
  set.advance(30s, at(200s));
  EXPECT_EQ(set.live(), 0);
}

TEST(LeaseSet, RenewalMovesTheExpiryAndTakesNoSecondSlot) {
  LeaseSet set = holding(1, at(130s));
  set.put(id(1), at(140s));
  EXPECT_EQ(set.live(), 1);
  set.advance(30s, at(139s));
  EXPECT_EQ(set.live(), 1);
  EXPECT_EQ(set.spent_at(), at(140s));
  set.advance(30s, at(140s));
  EXPECT_EQ(set.live(), 0);
}

TEST(LeaseSet, RenewalPutsBackALeaseThatIsGone) {
  LeaseSet set = holding(1, at(130s));
  set.advance(30s, at(131s));
  set.put(id(1), at(161s));
  EXPECT_EQ(set.live(), 1);
  set.advance(30s, at(161s));
  EXPECT_EQ(set.live(), 0);
}

TEST(LeaseSet, FreesASlotOnceAndNobodyElses) {
  LeaseSet set = holding(3, at(130s));
  set.remove(id(2));
  set.remove(id(2));
  set.remove(id(9));
  EXPECT_EQ(set.live(), 2);
}

TEST(LeaseSet, ThatWasEmptiedStartsAfresh) {
  LeaseSet set = holding(1, at(130s));
  set.remove(id(1));
  EXPECT_EQ(set.spent_at(), kAlwaysSpent);
  set.advance(30s, at(200s));
  set.put(id(2), at(230s));
  EXPECT_EQ(set.spent_at(), at(230s));
  set.advance(30s, at(229s));
  EXPECT_EQ(set.live(), 1);
}

TEST(LeaseSet, IsSpentWhenItsLastLeaseExpires) {
  LeaseSet set;
  set.put(id(1), at(150s));
  set.put(id(2), at(130s));
  EXPECT_EQ(set.spent_at(), at(150s));
  set.remove(id(1));
  EXPECT_EQ(set.spent_at(), at(130s));
}

TEST(LeaseSet, ClockSetBackCutsExpiriesToOneTtlAhead) {
  for (const Duration step : {Duration{11s}, Duration{1h}}) {
    LeaseSet set = holding(2, at(10'030s));
    const TimePoint now = at(10'000s) - step;
    set.advance(30s, now);
    EXPECT_EQ(set.live(), 2);
    EXPECT_EQ(set.spent_at(), now + 30s);
    set.advance(30s, now + 30s - 1us);
    EXPECT_EQ(set.live(), 2);
    set.advance(30s, now + 30s);
    EXPECT_EQ(set.live(), 0);
  }
}

TEST(LeaseSet, ShorterTtlCutsExpiriesToo) {
  LeaseSet set = holding(2, at(130s));
  set.advance(5s, at(100s));
  set.advance(5s, at(105s));
  EXPECT_EQ(set.live(), 0);
}

TEST(LeaseSet, ClockSetForwardFreesSlotsUntilTheyAreRenewed) {
  LeaseSet set = holding(2, at(130s));
  set.advance(30s, at(100s + 1h));
  EXPECT_EQ(set.live(), 0);
  set.put(id(1), at(130s + 1h));
  set.put(id(2), at(130s + 1h));
  EXPECT_EQ(set.read(spec_of(in_flight(2))), (Reading{0, 1s}));
}

}  // namespace
}  // namespace stint::limit
