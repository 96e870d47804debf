#include "observe/distinct.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

namespace stint::observe {
namespace {

constexpr Duration kSecond = std::chrono::seconds{1};
constexpr Duration kBegin = kSecond * 1'000'000;

// SplitMix64: a well mixed number for each.
std::uint64_t mixed(std::uint64_t n) {
  n += 0x9E3779B97F4A7C15U;
  n = (n ^ (n >> 30)) * 0xBF58476D1CE4E5B9U;
  n = (n ^ (n >> 27)) * 0x94D049BB133111EBU;
  return n ^ (n >> 31);
}

void add(DistinctCounter& counter, std::uint64_t from, std::uint64_t count, Duration now) {
  for (std::uint64_t i = 0; i < count; ++i) counter.add(mixed(from + i), now);
}

TEST(DistinctCounter, NothingIsNothing) { EXPECT_EQ(DistinctCounter().estimate(kBegin), 0U); }

TEST(DistinctCounter, IsNearTheNumber) {
  for (const std::uint64_t count : {1U, 10U, 100U, 2'000U, 3'000U, 100'000U, 2'000'000U}) {
    DistinctCounter counter;
    add(counter, 0, count, kBegin);
    const auto estimate = static_cast<double>(counter.estimate(kBegin));
    EXPECT_NEAR(estimate, static_cast<double>(count), 0.1 * static_cast<double>(count) + 0.5);
  }
}

TEST(DistinctCounter, OneThingIsOneHoweverOften) {
  DistinctCounter counter;
  for (int i = 0; i < 1000; ++i) counter.add(mixed(7), kBegin + i * kSecond / 20);
  EXPECT_EQ(counter.estimate(kBegin + 50 * kSecond), 1U);
}

TEST(DistinctCounter, WhatIsOlderThanAMinuteIsForgotten) {
  DistinctCounter counter;
  add(counter, 0, 500, kBegin);
  EXPECT_NEAR(static_cast<double>(counter.estimate(kBegin + 59 * kSecond)), 500.0, 50.0);
  EXPECT_EQ(counter.estimate(kBegin + 71 * kSecond), 0U);
  add(counter, 1000, 100, kBegin + 71 * kSecond);
  EXPECT_NEAR(static_cast<double>(counter.estimate(kBegin + 71 * kSecond)), 100.0, 10.0);
  // The place of a slice is used again.
  add(counter, 2000, 50, kBegin + 700 * kSecond);
  EXPECT_NEAR(static_cast<double>(counter.estimate(kBegin + 700 * kSecond)), 50.0, 5.0);
}

TEST(DistinctCounter, ManyThreads) {
  DistinctCounter counter;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&counter, t] { add(counter, t * 10'000, 20'000, kBegin); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NEAR(static_cast<double>(counter.estimate(kBegin)), 50'000.0, 5'000.0);
}

}  // namespace
}  // namespace stint::observe
