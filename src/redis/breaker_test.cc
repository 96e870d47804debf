#include "redis/breaker.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>

namespace stint::redis {
namespace {

constexpr Duration kMs = std::chrono::milliseconds{1};

// Always the least, or always the most that the jitter may be.
class Extreme final : public base::Entropy {
 public:
  explicit Extreme(bool most) noexcept : most_(most) {}
  std::uint64_t next() override { return most_ ? 0xFFFF'FFFF'FFFF'FFFF : 0; }

 private:
  bool most_;
};

TEST(Backoff, DoublesUpToItsMost) {
  Extreme least(false);
  Backoff backoff(least);
  for (const int expected : {25, 50, 100, 200, 400, 500, 500}) {
    EXPECT_EQ(backoff.next(), expected * kMs);
  }
  backoff.reset();
  EXPECT_EQ(backoff.next(), 25 * kMs);
}

TEST(Backoff, JitterIsUpToHalfOfIt) {
  base::FixedEntropy entropy(12345);
  std::set<Duration> seen;
  for (int i = 0; i < 100; ++i) {
    Backoff backoff(entropy, {.first = 8 * kMs, .most = 8 * kMs});
    const Duration pause = backoff.next();
    EXPECT_GE(pause, 4 * kMs);
    EXPECT_LE(pause, 8 * kMs);
    seen.insert(pause);
  }
  EXPECT_EQ(seen.size(), 100U);
}

TEST(Backoff, TakesAnyNumber) {
  Extreme most(true);
  Backoff backoff(most);
  for (int i = 0; i < 10; ++i) {
    const Duration pause = backoff.next();
    EXPECT_GE(pause, 25 * kMs);
    EXPECT_LE(pause, std::chrono::seconds{1});
  }
}

class BreakerTest : public ::testing::Test {
 protected:
  Extreme least_{false};
  Breaker breaker_{3, least_};
  Duration now_ = 1000 * kMs;
};

TEST_F(BreakerTest, OpensAfterSoManyFailuresInARow) {
  EXPECT_FALSE(breaker_.failed(now_));
  EXPECT_FALSE(breaker_.failed(now_));
  EXPECT_TRUE(breaker_.closed());
  EXPECT_TRUE(breaker_.failed(now_));
  EXPECT_FALSE(breaker_.closed());
  EXPECT_EQ(breaker_.probe_at(), now_ + 25 * kMs);
  EXPECT_FALSE(breaker_.failed(now_)) << "it opens once";
}

TEST_F(BreakerTest, ASuccessBreaksTheRow) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(breaker_.failed(now_));
    EXPECT_FALSE(breaker_.failed(now_));
    breaker_.succeeded();
  }
  EXPECT_TRUE(breaker_.closed());
}

TEST_F(BreakerTest, OnlyAProbeClosesIt) {
  for (int i = 0; i < 3; ++i) breaker_.failed(now_);
  breaker_.succeeded();
  EXPECT_FALSE(breaker_.closed()) << "the answer to a call from before";
  EXPECT_TRUE(breaker_.probe_succeeded());
  EXPECT_TRUE(breaker_.closed());
  EXPECT_FALSE(breaker_.probe_succeeded()) << "it closes once";
  EXPECT_FALSE(breaker_.failed(now_));
  EXPECT_FALSE(breaker_.failed(now_)) << "the count began anew";
}

TEST_F(BreakerTest, ProbesThatFailComeLessOften) {
  for (int i = 0; i < 3; ++i) breaker_.failed(now_);
  for (const int pause : {50, 100, 200, 400, 500, 500}) {
    now_ = breaker_.probe_at();
    breaker_.probe_failed(now_);
    EXPECT_EQ(breaker_.probe_at(), now_ + pause * kMs);
  }
  breaker_.probe_succeeded();
  for (int i = 0; i < 3; ++i) breaker_.failed(now_);
  EXPECT_EQ(breaker_.probe_at(), now_ + 25 * kMs);
}

TEST_F(BreakerTest, AThresholdOfZeroIsOne) {
  Breaker breaker(0, least_);
  EXPECT_TRUE(breaker.failed(now_));
}

}  // namespace
}  // namespace stint::redis
