#include "base/striped_snapshot.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

namespace stint::base {
namespace {

std::shared_ptr<const int> number(int value) { return std::make_shared<const int>(value); }

// Runs `body(index)` on so many threads at once; they share no stripe but by chance.
template <class Body>
void on_threads(std::size_t count, Body body) {
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back(body, i);
}

TEST(StripedSnapshot, GivesTheValueOfTheLastSet) {
  StripedSnapshot<int> snapshot(number(1));
  EXPECT_EQ(*snapshot.get(), 1);
  snapshot.set(number(2));
  EXPECT_EQ(*snapshot.get(), 2);
}

TEST(StripedSnapshot, GivesTheNewValueToEveryThreadThatStartsAfterSet) {
  StripedSnapshot<int> snapshot(number(1));
  snapshot.set(number(2));
  std::atomic<int> seen{0};
  on_threads(32, [&](std::size_t) { seen += *snapshot.get(); });
  EXPECT_EQ(seen, 64);
}

TEST(StripedSnapshot, KeepsAnOldValueForThoseWhoHoldIt) {
  StripedSnapshot<int> snapshot(number(1));
  const auto held = snapshot.get();
  snapshot.set(number(2));
  EXPECT_EQ(*held, 1);
}

TEST(StripedSnapshot, FreesAValueThatWasReplacedAndIsHeldByNobody) {
  auto first = number(1);
  const std::weak_ptr<const int> watch = first;
  StripedSnapshot<int> snapshot(std::move(first));
  auto held = snapshot.get();
  snapshot.set(number(2));
  EXPECT_FALSE(watch.expired());
  held.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(StripedSnapshot, FreesItsValueWithItself) {
  auto first = number(1);
  const std::weak_ptr<const int> watch = first;
  {
    const StripedSnapshot<int> snapshot(std::move(first));
  }
  EXPECT_TRUE(watch.expired());
}

TEST(StripedSnapshot, ReadersSeeValuesInTheOrderTheyWereSet) {
  constexpr int kLast = 2'000;
  StripedSnapshot<int> snapshot(number(0));
  std::atomic<int> backwards{0};
  on_threads(4, [&](std::size_t index) {
    if (index == 0) {
      for (int value = 1; value <= kLast; ++value) snapshot.set(number(value));
      return;
    }
    for (int last = 0; last < kLast;) {
      const int value = *snapshot.get();
      if (value < last) ++backwards;
      last = value;
    }
  });
  EXPECT_EQ(backwards, 0);
}

// Whether two sets overlap is chance: a snapshot that mixes them fails in most runs, not in all.
TEST(StripedSnapshot, SetByTwoAtOnceIsTheSameForEveryReader) {
  constexpr std::size_t kThreads = 8;
  constexpr int kRounds = 2'000;
  StripedSnapshot<int> snapshot(number(0));
  std::barrier step(static_cast<std::ptrdiff_t>(kThreads));
  std::vector<int> seen(kThreads);
  std::atomic<int> ready{0};
  std::atomic<int> torn{0};
  on_threads(kThreads, [&](std::size_t index) {
    for (int round = 0; round < kRounds; ++round) {
      step.arrive_and_wait();
      if (index < 2) {
        ++ready;
        while (ready < 2 * (round + 1)) std::this_thread::yield();  // so that they do overlap
        for (int i = 0; i < 4; ++i)
          snapshot.set(number(8 * round + 4 * static_cast<int>(index) + i));
      }
      step.arrive_and_wait();
      seen[index] = *snapshot.get();
      step.arrive_and_wait();
      if (index == 0) {
        for (const int value : seen) torn += value != seen[0] ? 1 : 0;
      }
    }
  });
  EXPECT_EQ(torn, 0);
}

}  // namespace
}  // namespace stint::base
