// What a decision writes into the record that brought it.
#include <string>
#include <thread>
#include <vector>

#include "tests/contract/store_contract.h"

namespace stint::store {
namespace {

STINT_STORE_CONTRACT(Record);

TEST_P(Record, TheTimeOfTheDecisionIsTheStores) {
  const auto set = limits({requests_per(kMinute, 1)});
  advance(Duration{12'345'678});
  EXPECT_EQ(acquired({{"a", set}}).record().now, now());
  advance(kSecond);
  EXPECT_EQ(acquired({{"a", set}}).record().now, now()) << "of a refusal too";
  advance(kSecond);
  EXPECT_EQ(peeked({{"a", set}}).record().now, now());
}

TEST_P(Record, RemainingAndResetAreAfterTheOwnCharge) {
  const auto set =
      limits({requests_per(kMinute, 10), requests_per(kMinute, 10, Algorithm::sliding_window),
              requests_per(kMinute, 10, Algorithm::sliding_log), token_bucket(60, kMinute, 10),
              in_flight(10)});
  advance(15 * kSecond);
  const Call made = acquired({{"a", set, {{3}, {3}, {3}, {3}, {1}}}});
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(made.slot(i).remaining, 7) << i;
  EXPECT_EQ(made.slot(0).reset, 45 * kSecond);
  EXPECT_EQ(made.slot(1).reset, 45 * kSecond + kMinute) << "it weighs in the next window too";
  EXPECT_EQ(made.slot(2).reset, kMinute);
  EXPECT_EQ(made.slot(3).reset, 3 * kSecond);
  EXPECT_EQ(made.slot(4).remaining, 9);
  EXPECT_EQ(made.slot(4).reset, Duration{0});
}

TEST_P(Record, AWholeLimitHasNoReset) {
  const auto set = limits({requests_per(kMinute, 10), token_bucket(60, kMinute, 10)});
  const Call made = acquired({{"a", set, {{.need = 1, .charge = 0}}}});
  EXPECT_TRUE(made.admitted());
  EXPECT_EQ(made.slot(0).reset, Duration{0});
  EXPECT_EQ(made.slot(1).reset, Duration{0});
}

TEST_P(Record, ChargedSaysTheAmountAndTheWindow) {
  const auto set =
      limits({requests_per(kMinute, 10), requests_per(kHour, 10, Algorithm::sliding_window),
              requests_per(kMinute, 10, Algorithm::sliding_log), token_bucket(60, kMinute, 10),
              in_flight(10)});
  set_time(kStart + 90 * kMinute + 30 * kSecond);
  const Call made =
      acquired({{"a", set, {{.need = 1, .charge = 2}, {3}, {4}, {.need = 0, .charge = 7}, {1}}}});
  ASSERT_TRUE(made.admitted());
  EXPECT_TRUE(made.bucket().charged);
  EXPECT_FALSE(made.bucket().overflow);
  EXPECT_EQ(made.slot(0).charged.amount, 2);
  EXPECT_EQ(made.slot(0).charged.window, kStart + 90 * kMinute);
  EXPECT_EQ(made.slot(1).charged.amount, 3);
  EXPECT_EQ(made.slot(1).charged.window, kStart + kHour);
  EXPECT_EQ(made.slot(2).charged.amount, 4);
  EXPECT_EQ(made.slot(3).charged.amount, 7);
  EXPECT_EQ(made.slot(4).charged.amount, 1);
}

TEST_P(Record, ARefusalOrAShadowThatRefusedSaysNothingWasCharged) {
  const auto wide = limits({requests_per(kMinute, 10)});
  const auto none = limits({requests_per(kMinute, 0)});
  const Call shadow = acquired({{"a", wide}, {"b", none, {{1}}, true}});
  EXPECT_TRUE(shadow.bucket(0).charged);
  EXPECT_FALSE(shadow.bucket(1).charged);
  EXPECT_EQ(shadow.slot(0, 1).charged, limit::Charge{});
  const Call refused = acquired({{"a", wide}, {"b", none}});
  EXPECT_FALSE(refused.bucket(0).charged);
  EXPECT_FALSE(refused.bucket(1).charged);
  EXPECT_EQ(refused.slot(0, 0).charged, limit::Charge{});
}

TEST_P(Record, CallsFromSeveralThreadsAreAnsweredEach) {
  const auto set = limits({requests_per(kMinute, 1000)});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    std::vector<Call> calls;
    calls.reserve(50);
    for (int i = 0; i < 50; ++i) calls.push_back(call({{"a", set}}));
    threads.emplace_back([this, mine = std::move(calls)]() mutable {
      for (Call& each : mine) EXPECT_EQ(acquire(each), Outcome::admitted);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(value("a"), 200);
}

}  // namespace
}  // namespace stint::store
