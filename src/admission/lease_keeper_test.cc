#include "admission/lease_keeper.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "admission/deferred_store_testing.h"
#include "admission/limiter_core.h"
#include "base/simulated_clock.h"

namespace stint::admission {
namespace {

using namespace std::chrono_literals;

// Through a limiter, over a store that answers when it is told to.
class LeaseKeeperTest : public testing::Test {
 protected:
  Reservation take_slot() {
    Reservation reservation;
    core_.admit({}, {},
                [&](Result<Admission> result) { reservation = std::move(result->reservation); });
    complete_all();
    EXPECT_TRUE(reservation.holds());
    return reservation;
  }
  void complete_all() {
    while (store_->pending() > 0) store_->complete();
  }
  // What a listing says is in flight.
  std::int64_t in_flight_now() {
    BucketPage page;
    store_->list("*", 0, 10, page, [] {});
    return page.buckets.empty() ? 0 : page.buckets[0].counters[0].value;
  }

  base::SimulatedClock clock_{TimePoint{1'767'312'000s}};
  base::FixedEntropy entropy_;
  std::shared_ptr<DeferredStore> store_ = std::make_shared<DeferredStore>(clock_);
  LimiterCore core_{store_, *policy::Table::create({{.id = "p", .limits = {in_flight(2000)}}}),
                    clock_, 30s, entropy_};
};

TEST_F(LeaseKeeperTest, RenewsEachLeaseEveryThirdOfTheTtl) {
  Reservation stream = take_slot();
  core_.renew_leases();
  EXPECT_EQ(store_->renewals, 0U);
  clock_.advance(10s);
  core_.renew_leases();
  core_.renew_leases();  // under way: not sent twice
  EXPECT_EQ(store_->renewals, 1U);
  complete_all();
  core_.renew_leases();
  EXPECT_EQ(store_->renewals, 1U);
  for (int i = 0; i < 20; ++i) {
    clock_.advance(10s);
    core_.renew_leases();
    complete_all();
    EXPECT_EQ(in_flight_now(), 1);
  }
  EXPECT_EQ(store_->renewals, 21U);
  stream.release([](const Result<void>&) {});
  complete_all();
}

TEST_F(LeaseKeeperTest, SendsAtMost500InACall) {
  std::vector<Reservation> streams;
  for (int i = 0; i < 1001; ++i) streams.push_back(take_slot());
  clock_.advance(10s);
  core_.renew_leases();
  EXPECT_EQ(store_->pending(), 3U);
  EXPECT_EQ(store_->renewals, 1001U);
  complete_all();
  streams.clear();
  complete_all();
  EXPECT_EQ(in_flight_now(), 0);
}

TEST_F(LeaseKeeperTest, AReleaseDuringARenewalFollowsIt) {
  Reservation stream = take_slot();
  clock_.advance(10s);
  core_.renew_leases();
  ASSERT_EQ(store_->pending(), 1U);
  bool released = false;
  stream.release([&](const Result<void>& result) { released = result.has_value(); });
  EXPECT_EQ(store_->pending(), 1U);  // the renewal alone: one call at a time for one record
  store_->complete();
  ASSERT_EQ(store_->pending(), 1U);  // now the release
  store_->complete();
  EXPECT_TRUE(released);
  EXPECT_EQ(in_flight_now(), 0);
  EXPECT_EQ(core_.stats().held, 0U);
  clock_.advance(10s);
  core_.renew_leases();
  EXPECT_EQ(store_->renewals, 1U);  // a released lease is in no later batch
}

TEST_F(LeaseKeeperTest, ANewLeaseDuringARenewalIsRenewedInItsTurn) {
  Reservation first = take_slot();
  clock_.advance(10s);
  core_.renew_leases();
  Reservation second;
  core_.admit({}, {}, [&](Result<Admission> result) { second = std::move(result->reservation); });
  complete_all();
  clock_.advance(10s);
  core_.renew_leases();
  complete_all();
  EXPECT_EQ(store_->renewals, 3U);
  first.release([](const Result<void>&) {});
  second.release([](const Result<void>&) {});
  complete_all();
}

}  // namespace
}  // namespace stint::admission
