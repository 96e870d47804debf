#include "store/memory/due_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace stint::store {
namespace {

TEST(DueQueue, GivesTheEarliestFirst) {
  DueQueue queue;
  EXPECT_TRUE(queue.empty());
  queue.push(0, 30);
  queue.push(1, 10);
  queue.push(5, 20);
  EXPECT_EQ(queue.first_slot(), 1U);
  EXPECT_EQ(queue.first_due(), 10U);
  queue.remove(1);
  EXPECT_EQ(queue.first_slot(), 5U);
  queue.move(5, 40);
  EXPECT_EQ(queue.first_slot(), 0U);
  queue.move(5, 5);
  EXPECT_EQ(queue.first_slot(), 5U);
  queue.remove(0);
  queue.remove(5);
  EXPECT_TRUE(queue.empty());
}

TEST(DueQueue, AgreesWithASortedMapOverRandomSteps) {
  std::mt19937 random(20260102);
  DueQueue queue;
  std::map<std::uint32_t, std::uint32_t> due_of;  // by slot
  for (int step = 0; step < 20'000; ++step) {
    const auto slot = static_cast<std::uint32_t>(random() % 200);
    const auto due = static_cast<std::uint32_t>(random() % 1000);
    const bool inside = due_of.contains(slot);
    if (inside && random() % 2 == 0) {
      queue.remove(slot);
      due_of.erase(slot);
    } else if (inside) {
      queue.move(slot, due);
      due_of[slot] = due;
    } else {
      queue.push(slot, due);
      due_of[slot] = due;
    }
    ASSERT_EQ(queue.empty(), due_of.empty());
    if (due_of.empty()) continue;
    std::uint32_t earliest = 1000;
    for (const auto& [other, when] : due_of) earliest = std::min(earliest, when);
    ASSERT_EQ(queue.first_due(), earliest) << "step " << step;
    ASSERT_EQ(due_of.at(queue.first_slot()), earliest);
  }
}

}  // namespace
}  // namespace stint::store
