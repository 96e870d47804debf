#include "ring/points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace stint::ring {
namespace {

using testing::ElementsAre;

constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();

TEST(RingPoints, MergesANodeAndMovesTheNumbersBehindItUp) {
  const Points points =
      with_node(std::vector<std::uint64_t>{10, 20, 30}, std::vector<std::uint32_t>{0, 1, 0},
                std::vector<std::uint64_t>{5, 25, 40}, 1);
  EXPECT_THAT(points.at, ElementsAre(5, 10, 20, 25, 30, 40));
  EXPECT_THAT(points.owner, ElementsAre(1, 0, 2, 1, 0, 1));
}

TEST(RingPoints, EqualPointsStandInTheOrderOfTheirOwners) {
  // Whichever of the three comes last.
  const std::vector<std::uint64_t> one{7};
  const Points low =
      with_node(std::vector<std::uint64_t>{7, 7}, std::vector<std::uint32_t>{0, 1}, one, 0);
  EXPECT_THAT(low.at, ElementsAre(7, 7, 7));
  EXPECT_THAT(low.owner, ElementsAre(0, 1, 2));
  const Points middle =
      with_node(std::vector<std::uint64_t>{7, 7}, std::vector<std::uint32_t>{0, 1}, one, 1);
  EXPECT_THAT(middle.owner, ElementsAre(0, 1, 2));
  const Points high =
      with_node(std::vector<std::uint64_t>{7, 7}, std::vector<std::uint32_t>{0, 1}, one, 2);
  EXPECT_THAT(high.owner, ElementsAre(0, 1, 2));
}

TEST(RingPoints, TheFirstOfEqualPointsIsFound) {
  const std::vector<std::uint64_t> at{3, 7, 7, 7, 9};
  EXPECT_EQ(find(at, 4), 1U);
  EXPECT_EQ(find(at, 7), 1U);
  EXPECT_EQ(find(at, 8), 4U);
}

TEST(RingPoints, APointBelongsToItselfAndWhatIsBehindTheLastToTheFirst) {
  const std::vector<std::uint64_t> at{10, 20};
  EXPECT_EQ(find(at, 0), 0U);
  EXPECT_EQ(find(at, 10), 0U);
  EXPECT_EQ(find(at, 11), 1U);
  EXPECT_EQ(find(at, 20), 1U);
  EXPECT_EQ(find(at, 21), 0U);
  EXPECT_EQ(find(at, kLast), 0U);
  EXPECT_EQ(find(std::vector<std::uint64_t>{kLast}, kLast), 0U);
}

TEST(RingPoints, RemovingANodeLeavesTheOthersWithEqualPointsToo) {
  std::vector<std::uint64_t> at{5, 7, 7, 7, 9};
  std::vector<std::uint32_t> owner{1, 0, 1, 2, 2};
  remove_node(at, owner, 0);
  EXPECT_THAT(at, ElementsAre(5, 7, 7, 9));
  EXPECT_THAT(owner, ElementsAre(0, 0, 1, 1));
  remove_node(at, owner, 1);
  EXPECT_THAT(at, ElementsAre(5, 7));
  EXPECT_THAT(owner, ElementsAre(0, 0));
}

}  // namespace
}  // namespace stint::ring
