// Slots of concurrency limits: held while the reservation lives, however long (C11).
#include "tests/limiter/fixture.h"

namespace stint::test {
namespace {

using Concurrency = LimiterTest;

Policy slots(std::int64_t quota) {
  return {.id = "slots", .group_by = {"api_key"}, .limits = {in_flight(quota)}};
}

TEST_F(Concurrency, ASlotIsFreeTheMomentItsHolderSettles) {
  limit({slots(1)});
  Admission stream = admit("k");
  const Admission refused = admit("k");
  EXPECT_EQ(refused.decision.refused_by()->limit.unit, Unit::concurrency);
  EXPECT_EQ(refused.decision.retry_after(), 1s);
  EXPECT_TRUE(admit("other").admitted());
  ASSERT_TRUE(stream.reservation.commit());
  EXPECT_TRUE(admit("k").admitted());
}

// Nobody calls anything while the stream runs; the lease would have expired ten times.
TEST_F(Concurrency, AStreamKeepsItsSlotForHowLongItRuns) {
  limit({slots(1)}, {.concurrency_ttl = 3s});
  const Admission stream = admit("k");
  for (const auto pause : {1s, 2s, 3s, 31s, 3600s}) {
    clock_.advance(pause);
    EXPECT_FALSE(admitted("k"));
    EXPECT_FALSE(limiter_->peek(of_key("k"))->admitted());
    EXPECT_EQ(counter("slots:api_key=k"), 1);
  }
}

TEST_F(Concurrency, ManyStreamsAllKeepTheirSlots) {
  limit({slots(1200)}, {.concurrency_ttl = 3s});
  std::vector<Reservation> streams;
  for (int i = 0; i < 1200; ++i) streams.push_back(std::move(admit("k").reservation));
  for (int round = 0; round < 5; ++round) {
    clock_.advance(10s);
    EXPECT_EQ(limiter_->peek(of_key("k"))->outcome, Outcome::refused);
    EXPECT_EQ(counter("slots:api_key=k"), 1200);
    streams.pop_back();
    Admission next = admit("k");
    ASSERT_TRUE(next.admitted());
    streams.push_back(std::move(next.reservation));
  }
  streams.clear();
  EXPECT_EQ(limiter_->stats().held, 0U);
  EXPECT_EQ(counter("slots:api_key=k"), std::nullopt);
}

// A reset forgets the slots of running requests; the next renewal puts them back.
TEST_F(Concurrency, ARunningRequestCountsAgainAfterAReset) {
  limit({slots(1)}, {.concurrency_ttl = 3s});
  const Admission stream = admit("k");
  EXPECT_EQ(limiter_->reset("slots:*").removed, 1U);
  clock_.advance(1s);
  EXPECT_FALSE(admitted("k"));
}

TEST_F(Concurrency, ALimitIsSkippedForWhoHoldsNoSlot) {
  limit({slots(1)});
  const Admission stream = admit("k");
  const Admission decision = admit("k", {.holds_slot = false});
  EXPECT_TRUE(decision.admitted());
  EXPECT_EQ(decision.decision.limits[0].verdict, Verdict::skipped);
  EXPECT_EQ(limiter_->stats().skipped_concurrency, 1U);
  EXPECT_EQ(counter("slots:api_key=k"), 1);
}

TEST_F(Concurrency, AQuotaLoweredBelowUseWaitsUntilEnoughHaveEnded) {
  limit({slots(3)});
  std::vector<Reservation> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(std::move(admit("k").reservation));
  ASSERT_TRUE(limiter_->set_policies({slots(1)}));
  EXPECT_EQ(limiter_->peek(of_key("k"))->limits[0].remaining, 0);
  streams.pop_back();
  streams.pop_back();
  EXPECT_FALSE(admitted("k"));
  streams.pop_back();
  EXPECT_TRUE(admitted("k"));
}

TEST_F(Concurrency, AZeroRefusesAsNeverFits) {
  limit({slots(0)});
  const Admission refused = admit("k");
  EXPECT_EQ(refused.decision.refused_by()->verdict, Verdict::never_fits);
}

}  // namespace
}  // namespace stint::test
