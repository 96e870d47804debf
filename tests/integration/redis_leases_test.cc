// Slots of replicas that run, stop, and end.
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/integration/redis_store_testing.h"

namespace stint::redis_testing {
namespace {

constexpr Duration kTtl = std::chrono::milliseconds{600};

class RedisLeases : public RedisStoreTest {
 protected:
  [[nodiscard]] Call call(Duration ttl = kTtl) const {
    return call_of({{"p:a", set_}}, OnStoreError::deny, ttl);
  }
  // When it is admitted.
  Duration wait_for_a_slot(StoreRig& on) {
    EXPECT_TRUE(eventually([&] {
      Call one = call();
      return acquire(on, one) == Outcome::admitted;
    }));
    return system_clock().steady_now();
  }

  const limit::LimitSetPtr set_ = limits({in_flight(1)});
};

TEST_F(RedisLeases, ThoseOfACrashedReplicaAreFreeAfterTheirTime) {  // C11
  const auto set = limits({in_flight(5)});
  std::vector<Call> held;
  Duration from{0};
  {
    const auto crashed = rig(patient());
    for (int i = 0; i < 5; ++i) {
      held.push_back(call_of({{"p:a", set}}, OnStoreError::deny, kTtl));
      from = system_clock().steady_now();
      ASSERT_EQ(acquire(*crashed, held.back()), Outcome::admitted);
    }
  }
  const auto other = rig(patient());
  int admitted = 0;
  EXPECT_TRUE(eventually([&] {
    Call one = call_of({{"p:a", set}});
    if (acquire(*other, one) == Outcome::admitted) ++admitted;
    return admitted == 5;
  }));
  EXPECT_GE(system_clock().steady_now() - from, kTtl);
  Call sixth = call_of({{"p:a", set}});
  EXPECT_EQ(acquire(*other, sixth), Outcome::refused);
}

TEST_F(RedisLeases, OneThatEndedIsNoSlotTakenThoughOthersGoOn) {
  const auto replica = rig(patient());
  const auto set = limits({in_flight(2)});
  Call stays = call_of({{"p:a", set}}, OnStoreError::deny, kTtl);
  ASSERT_EQ(acquire(*replica, stays), Outcome::admitted);
  Call ends = call_of({{"p:a", set}}, OnStoreError::deny, kTtl);
  ASSERT_EQ(acquire(*replica, ends), Outcome::admitted);
  stays.record().lease_ttl = kSecond * 30;
  renew(*replica, stays);
  Call next = call_of({{"p:a", set}});
  EXPECT_EQ(acquire(*replica, next), Outcome::refused);
  EXPECT_TRUE(eventually([&] { return acquire(*replica, next) == Outcome::admitted; }));
  Call one_more = call_of({{"p:a", set}});
  EXPECT_EQ(acquire(*replica, one_more), Outcome::refused);
  EXPECT_EQ(leases("p:a"), 2);
}

TEST_F(RedisLeases, ARenewalKeepsTheSlot) {
  const auto holder = rig(patient());
  const auto other = rig(patient());
  Call held = call();
  ASSERT_EQ(acquire(*holder, held), Outcome::admitted);
  const Duration until = system_clock().steady_now() + 3 * kTtl;
  Duration renewed{0};
  while (system_clock().steady_now() < until) {
    renewed = system_clock().steady_now();
    renew(*holder, held);
    Call one = call();
    ASSERT_EQ(acquire(*other, one), Outcome::refused);
    EXPECT_EQ(one.slot().wait, kSecond);
    let_pass(kTtl / 20);
  }
  EXPECT_GE(wait_for_a_slot(*other) - renewed, kTtl) << "and no longer";
}

TEST_F(RedisLeases, AReplicaThatStoodStillTakesItsSlotBackAndFreesNoOther) {
  const auto stopped = rig(patient());
  const auto other = rig(patient());
  Call a = call();
  ASSERT_EQ(acquire(*stopped, a), Outcome::admitted);
  // Its renewals do not come.
  Call b = call(kSecond * 30);
  ASSERT_TRUE(eventually([&] { return acquire(*other, b) == Outcome::admitted; }));
  a.record().lease_ttl = kSecond * 30;
  renew(*stopped, a);
  EXPECT_EQ(leases("p:a"), 2) << "both run";
  Call c = call();
  EXPECT_EQ(acquire(*other, c), Outcome::refused);
  EXPECT_TRUE(give_back(*stopped, a));
  EXPECT_EQ(leases("p:a"), 1);
  EXPECT_EQ(acquire(*other, c), Outcome::refused) << "the slot of b is b's";
  EXPECT_TRUE(give_back(*other, b));
  EXPECT_EQ(acquire(*other, c), Outcome::admitted);
}

TEST_F(RedisLeases, ReleasingTwiceDoesNothing) {
  const auto replica = rig(patient());
  Call a = call();
  ASSERT_EQ(acquire(*replica, a), Outcome::admitted);
  EXPECT_TRUE(give_back(*replica, a));
  Call b = call();
  ASSERT_EQ(acquire(*replica, b), Outcome::admitted);
  EXPECT_TRUE(give_back(*replica, a));
  Call c = call();
  EXPECT_EQ(acquire(*replica, c), Outcome::refused);
  EXPECT_EQ(leases("p:a"), 1);
}

TEST_F(RedisLeases, ARenewalAndTheReleaseBehindItStayInOrder) {
  StoreRig::Options options = patient();
  options.store.calls_in_flight = 1;
  const auto replica = rig(std::move(options));
  const auto set = limits({in_flight(100)});
  std::vector<Call> calls;
  std::vector<store::AdmissionRecord*> records;
  calls.reserve(50);
  for (int i = 0; i < 50; ++i) {
    calls.push_back(call_of({{"p:a", set}}));
    ASSERT_EQ(acquire(*replica, calls.back()), Outcome::admitted);
    records.push_back(&calls.back().record());
  }
  Answers answers;
  replica->store().renew(records, answers.expect());
  for (Call& one : calls) {
    replica->store().settle(one.record(),
                            [done = answers.expect()](const Result<void>& result) mutable {
                              EXPECT_TRUE(result);
                              done();
                            });
  }
  answers.wait();
  EXPECT_EQ(leases("p:a"), 0);
}

}  // namespace
}  // namespace stint::redis_testing
