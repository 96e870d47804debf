#include "base/id.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <thread>
#include <vector>

namespace stint::base {
namespace {

TEST(IdGenerator, CountsBehindAHalfOfItsOwn) {
  FixedEntropy entropy(42);
  IdGenerator first(entropy);
  IdGenerator second(entropy);
  EXPECT_EQ(first.next(), (Id{42, 1}));
  EXPECT_EQ(first.next(), (Id{42, 2}));
  EXPECT_EQ(second.next(), (Id{43, 1}));
}

TEST(IdGenerator, NeverGivesAnIdTwice) {
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kEach = 5'000;
  FixedEntropy entropy;
  IdGenerator generator(entropy);
  std::array<std::vector<Id>, kThreads> drawn;
  {
    std::vector<std::jthread> threads;
    for (std::vector<Id>& mine : drawn) {
      threads.emplace_back([&generator, &mine] {
        for (std::size_t i = 0; i < kEach; ++i) mine.push_back(generator.next());
      });
    }
  }
  std::set<Id> distinct;
  for (const std::vector<Id>& mine : drawn) {
    EXPECT_TRUE(std::ranges::is_sorted(mine));
    distinct.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(distinct.size(), kThreads * kEach);
}

TEST(Id, IsOrderedByItsHighHalfFirst) {
  EXPECT_LT((Id{1, 9}), (Id{2, 1}));
  EXPECT_LT((Id{2, 1}), (Id{2, 2}));
  EXPECT_EQ((Id{2, 2}), (Id{2, 2}));
}

TEST(IdHash, SpreadsTheIdsOfOneGenerator) {
  std::set<std::size_t> hashes;
  for (std::uint64_t low = 1; low <= 10'000; ++low) hashes.insert(IdHash{}(Id{42, low}));
  EXPECT_EQ(hashes.size(), 10'000U);
}

TEST(SystemEntropy, GivesDifferentNumbers) {
  std::set<std::uint64_t> numbers;
  for (int i = 0; i < 8; ++i) numbers.insert(system_entropy().next());
  EXPECT_EQ(numbers.size(), 8U);
}

}  // namespace
}  // namespace stint::base
