// Every key that we write has a time to live.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/integration/redis_store_testing.h"

namespace stint::redis_testing {
namespace {

using RedisExpiry = RedisStoreTest;

TEST_F(RedisExpiry, AFirstChargeOf37) {  // C03
  const auto replica = rig(patient());
  const auto lives = [&](std::string_view bucket) {
    return std::chrono::milliseconds{server_.command({"PTTL", counters_key(bucket)}).integer()};
  };
  const std::vector<BucketAsk> asks = {
      {"fixed", limits({tokens_per(kMinute, 100)}), {{37}}},
      {"sliding", limits({tokens_per(kMinute, 100, Algorithm::sliding_window)}), {{37}}},
      {"bucket", limits({store::token_bucket(100, kMinute, 100)}), {{37}}},
      {"log", limits({requests_per(kMinute, 100, Algorithm::sliding_log)}), {{37}}},
  };
  for (const BucketAsk& ask : asks) {
    Call call = call_of({ask});
    ASSERT_EQ(acquire(*replica, call), Outcome::admitted) << ask.key;
    const auto ttl = lives(ask.key);
    // A sliding window counts, in part, until the end of the next one.
    const Duration most = ask.key == "sliding" ? 2 * kMinute : kMinute;
    EXPECT_GT(ttl, Duration::zero()) << ask.key;
    EXPECT_LE(ttl, most + std::chrono::milliseconds{1}) << ask.key;
    EXPECT_EQ(call.slot().remaining, 63) << ask.key;
  }
  EXPECT_EQ(immortal_keys(), "");
}

// All algorithms, settlements and renewals, while keys vanish and connections are cut.
TEST_F(RedisExpiry, OfEveryKeyWhateverHappens) {  // C03
  constexpr int kAdmissions = 10'000;
  constexpr int kThreads = 8;
  Gate gate(server_.port());
  std::vector<std::unique_ptr<StoreRig>> rigs;
  for (int i = 0; i < 2; ++i) {
    StoreRig::Options options = patient_through(gate);
    options.loops = 2;
    rigs.push_back(rig(std::move(options)));
  }
  const std::vector<limit::LimitSetPtr> policies = {
      limits({requests_per(kHour, 1'000'000),
              tokens_per(kHour, 1'000'000, Algorithm::sliding_window)}),
      limits({requests_per(kHour, 1000, Algorithm::sliding_log)}),
      limits({store::token_bucket(1'000'000, kHour, 1'000'000)}),
      limits({in_flight(10'000)}),
  };
  std::atomic<int> next{0};
  std::atomic<int> by_redis{0};
  std::atomic<int> settlements{0};
  const auto work = [&](int thread) {
    std::mt19937_64 dice(static_cast<std::uint64_t>(thread) + 1);
    StoreRig& on = *rigs[static_cast<std::size_t>(thread) % 2];
    std::deque<Call> held;
    while (next++ < kAdmissions) {
      std::vector<BucketAsk> asks;
      for (std::size_t p = 0; p < policies.size(); ++p) {
        if (p > 0 && dice() % 2 == 0) continue;
        const auto cost = static_cast<std::int64_t>(dice() % 40);
        const bool lease = p == 3;
        asks.push_back({"p" + std::to_string(p) + ":" + std::to_string(dice() % 5),
                        policies[p],
                        {{lease ? 1 : cost}}});
      }
      held.push_back(call_of(asks, OnStoreError::local));
      if (acquire(on, held.back()) != Outcome::admitted) {
        held.pop_back();
        continue;
      }
      if (held.back().bucket().local == 0) ++by_redis;
      if (dice() % 4 == 0) renew(on, held.back());
      if (held.size() > 5) {
        // While a connection is cut nobody can say what came of it.
        const auto settled = give_back(on, held.front());
        if (settled) ++settlements;
        held.pop_front();
      }
    }
  };
  std::atomic<bool> end{false};
  std::thread vandal([&] {
    for (int cut = 1; !end;) {
      const redis::Reply key = server_.command({"RANDOMKEY"});
      if (!key.text().empty()) server_.command({"DEL", key.text()});
      if (next < cut * kAdmissions / 8) continue;
      gate.close_all();
      ++cut;
    }
  });
  on_threads(kThreads, work);
  end = true;
  vandal.join();
  EXPECT_GT(by_redis, 0);
  EXPECT_GT(settlements, 0);
  for (const auto& rig : rigs) EXPECT_TRUE(rig->wait_until_degraded(false));
  EXPECT_EQ(immortal_keys(), "");
}

TEST_F(RedisExpiry, AFloodOfKeysIsGoneAfterTwoQuietPeriods) {  // C24
  const auto replica = rig(patient());
  constexpr Duration kShort = std::chrono::milliseconds{200};
  const auto set =
      limits({requests_per(kShort, 10), requests_per(kShort, 10, Algorithm::sliding_log),
              requests_per(kShort, 10, Algorithm::sliding_window), in_flight(10)});
  std::deque<Call> calls;
  Answers answers;
  for (int i = 0; i < 3000; ++i) {
    calls.push_back(call_of({{"p:" + std::to_string(i), set}}, OnStoreError::deny, kShort));
    replica->store().acquire(calls.back().record(), answers.expect());
  }
  answers.wait();
  EXPECT_GT(server_.command({"DBSIZE"}).integer(), 100) << "there was a flood";
  EXPECT_EQ(immortal_keys(), "");
  let_pass(2 * kShort);
  // Redis itself takes a while to look at all of them.
  EXPECT_TRUE(eventually([&] { return server_.command({"DBSIZE"}).integer() <= 1; }));
  const std::string rest = store::keys_begin("t") + "replicas";
  EXPECT_GT(server_.command({"PTTL", rest}).integer(), 0);
}

}  // namespace
}  // namespace stint::redis_testing
