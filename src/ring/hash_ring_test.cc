#include "stint/hash_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace stint {
namespace {

HashRing ring_of(const std::vector<std::string>& names,
                 int virtual_nodes = HashRing::kDefaultVirtualNodes) {
  HashRing ring = *HashRing::create(virtual_nodes);
  for (const std::string& name : names) EXPECT_TRUE(ring.add_node(name));
  return ring;
}

std::vector<std::string> nodes_of_keys(const HashRing& ring, int keys) {
  std::vector<std::string> nodes;
  nodes.reserve(static_cast<std::size_t>(keys));
  for (int i = 0; i < keys; ++i) nodes.emplace_back(*ring.node("user:" + std::to_string(i)));
  return nodes;
}

// All values were computed by another program from the description in the header. They may never
// change: replicas of two versions would count apart.
TEST(HashRing, KnownPositions) {
  EXPECT_EQ(HashRing::position(""), 0xd41d8cd98f00b204U);
  EXPECT_EQ(HashRing::position("user:1"), 0xbdb1dd105679979cU);
  EXPECT_EQ(HashRing::position("192.0.2.1"), 0xd0f88d6c87767262U);
}

TEST(HashRing, KnownNodes) {
  const HashRing ring = ring_of({"r1", "r2", "r3"});
  EXPECT_EQ(ring.node(""), "r1");
  EXPECT_EQ(ring.node("user:1"), "r3");
  EXPECT_EQ(ring.node("user:2"), "r3");
  EXPECT_EQ(ring.node("user:42"), "r3");
  EXPECT_EQ(ring.node("192.0.2.1"), "r1");
  EXPECT_EQ(ring.node("key"), "r2");
  EXPECT_EQ(ring.node("per-key:api_key=alice"), "r1");
}

TEST(HashRing, KnownShares) {
  const auto shares = ring_of({"r1", "r2", "r3"}).distribution();
  ASSERT_EQ(shares.size(), 3U);
  EXPECT_EQ(shares[0].name, "r1");
  EXPECT_EQ(shares[0].points, 2400U);
  EXPECT_NEAR(shares[0].share, 0.3319344886136777, 1e-12);
  EXPECT_NEAR(shares[1].share, 0.3376003973517861, 1e-12);
  EXPECT_NEAR(shares[2].share, 0.3304651140345358, 1e-12);
}

TEST(HashRing, TheKeyBehindTheLastPointBelongsToTheFirst) {
  // The last point of this ring is 0xfff294cd689253bf, of r3; the first one is of r1.
  const HashRing ring = ring_of({"r1", "r2", "r3"});
  EXPECT_EQ(HashRing::position("k1972"), 0xfff88afb9d41c29dU);
  EXPECT_EQ(ring.node("k1972"), "r1");
  EXPECT_EQ(ring.node("k6511"), "r1");
}

TEST(HashRing, TheOrderOfAddingDoesNotMatter) {
  std::vector<std::string> names{"r1", "r11", "a", "cache-0", "cache-1", "127.0.0.1:6379/0"};
  const auto expected = nodes_of_keys(ring_of(names), 10'000);
  std::ranges::reverse(names);
  EXPECT_EQ(nodes_of_keys(ring_of(names), 10'000), expected);
  std::mt19937 random(1);
  std::ranges::shuffle(names, random);
  EXPECT_EQ(nodes_of_keys(ring_of(names), 10'000), expected);
}

TEST(HashRing, ANodeThatCameAndWentLeavesNoTrace) {
  HashRing ring = ring_of({"a", "b", "c"});
  const auto expected = nodes_of_keys(ring, 10'000);
  ASSERT_TRUE(ring.add_node("aa", 3.0));
  ASSERT_TRUE(ring.remove_node("b"));
  ASSERT_TRUE(ring.add_node("b"));
  ASSERT_TRUE(ring.remove_node("aa"));
  EXPECT_EQ(nodes_of_keys(ring, 10'000), expected);
  EXPECT_THAT(HashRing::moves(ring_of({"a", "b", "c"}), ring), testing::IsEmpty());
}

TEST(HashRing, OneNodeHasEverything) {
  const HashRing ring = ring_of({"only"}, 1);
  EXPECT_EQ(ring.node("x"), "only");
  EXPECT_EQ(ring.node_index("y"), 0U);
  const auto shares = ring.distribution();
  ASSERT_EQ(shares.size(), 1U);
  EXPECT_EQ(shares[0].share, 1.0);
  EXPECT_EQ(shares[0].points, 16U);
}

TEST(HashRing, WithoutNodesThereIsNoAnswer) {
  HashRing ring = *HashRing::create();
  EXPECT_EQ(ring.node("x").error().code, ErrorCode::not_found);
  EXPECT_EQ(to_string(ring.node_index("x").error()), "the ring has no nodes");
  EXPECT_THAT(ring.distribution(), testing::IsEmpty());
  ASSERT_TRUE(ring.add_node("a"));
  ASSERT_TRUE(ring.remove_node("a"));
  EXPECT_FALSE(ring.node("x"));
  EXPECT_THAT(HashRing::moves(ring, ring_of({"a"})), testing::IsEmpty());
  EXPECT_THAT(HashRing::moves(ring_of({"a"}), ring), testing::IsEmpty());
}

TEST(HashRing, NodeAndIndexAgree) {
  const HashRing ring = ring_of({"c", "a", "b"});
  const auto shares = ring.distribution();
  for (int i = 0; i < 1000; ++i) {
    const std::string key = "k" + std::to_string(i);
    EXPECT_EQ(shares[*ring.node_index(key)].name, *ring.node(key));
  }
}

TEST(HashRing, RefusesWhatIsNotAllowedAndChangesNothing) {
  HashRing ring = ring_of({"a", "b"});
  const auto expected = nodes_of_keys(ring, 1000);
  const auto refused = [](const Result<void>& result) {
    return std::pair(result.error().code, result.error().field);
  };
  using Refused = std::pair<ErrorCode, std::string>;
  EXPECT_EQ(refused(ring.add_node("a")), Refused(ErrorCode::already_exists, "name"));
  EXPECT_EQ(refused(ring.add_node("a", 2.0)), Refused(ErrorCode::already_exists, "name"));
  EXPECT_EQ(refused(ring.remove_node("c")), Refused(ErrorCode::not_found, "name"));
  EXPECT_EQ(refused(ring.remove_node("")), Refused(ErrorCode::not_found, "name"));
  EXPECT_EQ(refused(ring.add_node("")), Refused(ErrorCode::invalid_argument, "name"));
  EXPECT_EQ(refused(ring.add_node(std::string(256, 'x'))),
            Refused(ErrorCode::invalid_argument, "name"));
  for (const double weight :
       {0.0, -1.0, 0.0099, 100.1, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(refused(ring.add_node("c", weight)), Refused(ErrorCode::invalid_argument, "weight"));
  }
  EXPECT_EQ(ring.size(), 2U);
  EXPECT_EQ(nodes_of_keys(ring, 1000), expected);
}

TEST(HashRing, RefusesVirtualNodesOutsideOfOneToTenThousand) {
  for (const int count : {0, -1, 10'001}) {
    EXPECT_EQ(HashRing::create(count).error().field, "virtual_nodes");
  }
  EXPECT_EQ(HashRing::create(10'000)->virtual_nodes(), 10'000);
  EXPECT_EQ(HashRing::create(1)->virtual_nodes(), 1);
}

TEST(HashRing, RefusesMorePointsThanItHoldsRoomFor) {
  HashRing ring = *HashRing::create(10'000);
  ASSERT_TRUE(ring.add_node("a", 100.0));  // 16,000,000
  const auto refused = ring.add_node("b", 5.0);
  EXPECT_EQ(refused.error().field, "virtual_nodes");
  EXPECT_TRUE(ring.add_node("b", 4.0));
}

TEST(HashRing, NamesThatBeginAlikeAndOddOnesAreNodesOfTheirOwn) {
  const std::string zero("a\0b", 3);
  const HashRing ring = ring_of({"r1", "r11", "r1:0", "1", "11", "r1:0:0", zero, "\xff\xfe"});
  for (const auto& share : ring.distribution()) {
    EXPECT_EQ(share.points, 2400U);
    EXPECT_NEAR(share.share, 1.0 / 8, 0.1 / 8) << share.name;
  }
}

TEST(HashRing, PointsFollowTheWeight) {
  HashRing ring = *HashRing::create(150);
  ASSERT_TRUE(ring.add_node("light", 0.01));
  ASSERT_TRUE(ring.add_node("half", 0.5));
  ASSERT_TRUE(ring.add_node("heavy", 2.75));
  const auto shares = ring.distribution();
  EXPECT_EQ(shares[0].points, 1200U);  // half
  EXPECT_EQ(shares[1].points, 6600U);  // heavy
  EXPECT_EQ(shares[2].points, 24U);    // light
  HashRing small = *HashRing::create(1);
  ASSERT_TRUE(small.add_node("least", 0.01));
  EXPECT_EQ(small.distribution()[0].points, 1U);
}

TEST(HashRing, ACopyIsARingOfItsOwn) {
  HashRing ring = ring_of({"a", "b"});
  HashRing copy = ring;
  ASSERT_TRUE(copy.remove_node("a"));
  EXPECT_EQ(ring.size(), 2U);
  EXPECT_EQ(copy.size(), 1U);
  EXPECT_THAT(HashRing::moves(ring, copy), testing::SizeIs(1));
}

}  // namespace
}  // namespace stint
