// Several replicas on one Redis enforce one limit: exactly, whatever the concurrency.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "tests/integration/redis_store_testing.h"

namespace stint::redis_testing {
namespace {

constexpr int kThreads = 8;
constexpr int kTries = 3000;
constexpr std::size_t kReplicas = 3;

class RedisExact : public RedisStoreTest {
 protected:
  RedisExact() : rigs_(replicas(kReplicas, 2)) {}

  [[nodiscard]] StoreRig& any(int number) {
    return *rigs_[static_cast<std::size_t>(number) % rigs_.size()];
  }

  // How many of so many tries, made by all replicas at once, are admitted.
  int admitted_of(int tries, const std::vector<BucketAsk>& buckets) {
    std::atomic<int> next{0};
    std::atomic<int> admitted{0};
    on_threads(kThreads, [&](int) {
      for (int i = next++; i < tries; i = next++) {
        Call call = call_of(buckets);
        if (acquire(any(i), call) == Outcome::admitted) ++admitted;
        EXPECT_NE(call.record().outcome, Outcome::undecided);
      }
    });
    return admitted;
  }

  std::vector<std::unique_ptr<StoreRig>> rigs_;
};

TEST_F(RedisExact, FixedWindow) {
  EXPECT_EQ(admitted_of(kTries, {{"p:a", limits({requests_per(kLong, 100)})}}), 100);
  EXPECT_EQ(used("p:a"), 100);
}

TEST_F(RedisExact, SlidingWindow) {
  const auto set = limits({requests_per(kLong, 100, Algorithm::sliding_window)});
  EXPECT_EQ(admitted_of(kTries, {{"p:a", set}}), 100);
}

TEST_F(RedisExact, SlidingLog) {
  const auto set = limits({requests_per(kLong, 100, Algorithm::sliding_log)});
  EXPECT_EQ(admitted_of(kTries, {{"p:a", set}}), 100);
  EXPECT_EQ(count_of(log_key("p:a", kLong)), 100);
}

TEST_F(RedisExact, TokenBucket) {
  const auto set = limits({store::token_bucket(20, kSecond, 100)});
  std::mutex mutex;
  TimePoint first = TimePoint::max();
  TimePoint last{};
  int admitted = 0;
  std::atomic<int> next{0};
  on_threads(kThreads, [&](int) {
    for (int i = next++; i < kTries; i = next++) {
      Call call = call_of({{"p:a", set}});
      acquire(any(i), call);
      const std::lock_guard lock(mutex);
      first = std::min(first, call.record().now);
      last = std::max(last, call.record().now);
      if (call.admitted()) ++admitted;
    }
  });
  // Up to a refusal: then nothing is left of what was refilled.
  for (bool again = true; again;) {
    Call call = call_of({{"p:a", set}});
    again = acquire(any(0), call) == Outcome::admitted;
    last = call.record().now;
    if (again) ++admitted;
  }
  EXPECT_EQ(admitted, 100 + 20 * (last - first).count() / Duration{kSecond}.count());
}

TEST_F(RedisExact, ConcurrencyNeverAboveTheQuotaAndBackToNothing) {
  const auto set = limits({in_flight(3)});
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  std::atomic<int> admitted{0};
  std::atomic<int> next{0};
  on_threads(kThreads, [&](int) {
    for (int i = next++; i < kTries; i = next++) {
      Call call = call_of({{"p:a", set}});
      if (acquire(any(i), call) != Outcome::admitted) continue;
      ++admitted;
      const int now = ++running;
      int seen = most;
      while (seen < now && !most.compare_exchange_weak(seen, now)) {
      }
      if (i % 5 == 0) renew(any(i), call);
      --running;
      EXPECT_TRUE(give_back(any(i + i % 2), call)) << "by whichever replica";
    }
  });
  EXPECT_GT(admitted, 100);
  EXPECT_EQ(most, 3) << "used fully, and not beyond";
  EXPECT_EQ(leases("p:a"), 0);
}

TEST_F(RedisExact, ReservedTokens) {  // C04
  const auto set = limits({tokens_per(kLong, 100)});
  std::mutex mutex;
  std::vector<Call> held;
  on_threads(5, [&](int thread) {
    Call call = call_of({{"p:a", set, {{40}}}});
    if (acquire(any(thread), call) != Outcome::admitted) return;
    const std::lock_guard lock(mutex);
    held.push_back(std::move(call));
  });
  ASSERT_EQ(held.size(), 2U);
  EXPECT_EQ(used("p:a"), 80);
  for (Call& call : held) EXPECT_TRUE(settle(any(2), call, {30}));
  EXPECT_EQ(used("p:a"), 60);
  Call one_more = call_of({{"p:a", set, {{40}}}});
  EXPECT_EQ(acquire(any(0), one_more), Outcome::admitted);
}

TEST_F(RedisExact, WhoeverReadAnAnswerIsJudgedWithIt) {
  const auto set = limits({tokens_per(kLong, 10)});
  for (int round = 0; round < 100; ++round) {
    // Postpaid: needs room for one, charges what is expected, and is settled with 8.
    const std::vector<BucketAsk> ask = {{"p:" + std::to_string(round), set, {{1, 3}}}};
    for (int i = 0; i < 2; ++i) {
      Call call = call_of(ask);
      ASSERT_EQ(acquire(any(i), call), Outcome::admitted) << round;
      ASSERT_TRUE(settle(any(i), call, {8}));
    }
    Call third = call_of(ask);
    ASSERT_EQ(acquire(any(2), third), Outcome::refused) << round;
  }
}

TEST_F(RedisExact, ARefusalLeavesTheCounterAsItWas) {  // C12
  const std::vector<BucketAsk> start = {{"p:a", limits({tokens_per(kLong, 1000)}), {{900}}}};
  Call first = call_of(start);
  acquire(any(0), first);
  std::vector<BucketAsk> ask = start;
  ask[0].asks = {{200}};
  EXPECT_EQ(admitted_of(50, ask), 0);
  EXPECT_EQ(used("p:a"), 900);
  ask[0].asks = {{100}};
  Call fits = call_of(ask);
  EXPECT_EQ(acquire(any(1), fits), Outcome::admitted);
  EXPECT_TRUE(give_back(any(1), fits));
  EXPECT_EQ(used("p:a"), 900);
}

TEST_F(RedisExact, AllOrNothingInEitherOrder) {  // C06
  for (const bool site_first : {true, false}) {
    const std::string name = site_first ? "1" : "2";
    std::vector<BucketAsk> x = {{"site:" + name, limits({requests_per(kLong, 100)})},
                                {"user:x" + name, limits({requests_per(kLong, 10)})},
                                {"shadow:" + name, limits({requests_per(kLong, 5)})}};
    x[2].shadow = true;
    if (!site_first) std::ranges::reverse(x);
    EXPECT_EQ(admitted_of(200, x), 10);
    EXPECT_EQ(used("site:" + name), 10);
    EXPECT_EQ(used("user:x" + name), 10);
    EXPECT_EQ(used("shadow:" + name), 5) << "charged as long as it would admit";
    EXPECT_EQ(admitted_of(200, {{"site:" + name, limits({requests_per(kLong, 100)})}}), 90);
  }
}

TEST_F(RedisExact, AllOrNothingOverEveryAlgorithm) {
  const std::vector<BucketAsk> all = {
      {"a:1", limits({requests_per(kLong, 40, Algorithm::sliding_log),
                      requests_per(kLong, 50, Algorithm::sliding_window)})},
      {"b:1", limits({requests_per(kLong, 45), in_flight(1000)})},
      {"c:1", limits({store::token_bucket(1, kLong, 37)})},
  };
  EXPECT_EQ(admitted_of(500, all), 37);
  EXPECT_EQ(used("b:1"), 37);
  EXPECT_EQ(leases("b:1"), 37);
  EXPECT_EQ(count_of(log_key("a:1", kLong)), 37);
  EXPECT_EQ(stored("a:1").value().limits[1].numbers[1], 37);
}

}  // namespace
}  // namespace stint::redis_testing
