// How evenly keys spread over a ring, and which of them move when it changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "stint/hash_ring.h"

namespace stint {
namespace {

constexpr int kKeys = 100'000;

HashRing ring_of(const std::vector<std::string>& names) {
  HashRing ring = *HashRing::create();
  for (const std::string& name : names) EXPECT_TRUE(ring.add_node(name));
  return ring;
}

std::string ipv4(std::uint32_t i) {
  return "10." + std::to_string(i >> 16 & 255) + "." + std::to_string(i >> 8 & 255) + "." +
         std::to_string(i & 255);
}

struct Shape {
  std::string name;
  std::function<std::string(std::uint32_t)> key;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.name; }

std::vector<Shape> shapes() {
  static std::mt19937_64 random(20'240'601);
  return {{"user", [](std::uint32_t i) { return "user:" + std::to_string(i + 1); }},
          {"ipv4", ipv4},
          {"uuid",
           [](std::uint32_t) {
             char text[40];
             const std::uint64_t high = random();
             const std::uint64_t low = random();
             std::snprintf(text, sizeof text, "%08x-%04x-4%03x-8%03x-%012llx",
                           static_cast<unsigned>(high >> 32),
                           static_cast<unsigned>(high >> 16 & 0xffff),
                           static_cast<unsigned>(high & 0xfff), static_cast<unsigned>(low & 0xfff),
                           static_cast<unsigned long long>(low >> 16));
             return std::string(text);
           }},
          {"random",
           [](std::uint32_t) {
             std::string text(16, '\0');
             for (char& byte : text) byte = static_cast<char>(random());
             return text;
           }},
          {"bucket_key",
           [](std::uint32_t i) { return "per-client:client_ip=" + ipv4(i) + ":path=/payments"; }}};
}

class HashRingShapes : public testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    for (std::uint32_t i = 0; i < kKeys; ++i) keys_.push_back(GetParam().key(i));
  }
  [[nodiscard]] std::vector<std::size_t> counts(const HashRing& ring) const {
    std::vector<std::size_t> counts(ring.size());
    for (const std::string& key : keys_) ++counts[*ring.node_index(key)];
    return counts;
  }
  // Of all keys, in per cent, those whose node differs; `to`: unless it is this one in `after`.
  [[nodiscard]] double moved(const HashRing& before, const HashRing& after,
                             const std::string& to = "") const {
    std::size_t moved = 0;
    for (const std::string& key : keys_) {
      const std::string_view node = *after.node(key);
      if (*before.node(key) != node && node != to) ++moved;
    }
    return 100.0 * static_cast<double>(moved) / kKeys;
  }
  std::vector<std::string> keys_;
};

INSTANTIATE_TEST_SUITE_P(, HashRingShapes, testing::ValuesIn(shapes()),
                         [](const auto& shape) { return shape.param.name; });

TEST_P(HashRingShapes, EveryNodeIsWithinTenPercentOfFair) {
  for (const auto& names : {std::vector<std::string>{"r1", "r2", "r3"},
                            {"r1", "r2", "r3", "r4", "r5"},
                            {"redis-0:6379/0", "redis-1:6379/0", "redis-2:6379/0"}}) {
    const HashRing ring = ring_of(names);
    const double fair = static_cast<double>(kKeys) / static_cast<double>(names.size());
    for (const std::size_t count : counts(ring)) {
      EXPECT_NEAR(static_cast<double>(count), fair, fair / 10);
    }
  }
}

TEST_P(HashRingShapes, HashesAreUniform) {
  constexpr std::size_t kArcs = 64;
  std::array<double, kArcs> counts{};
  for (const std::string& key : keys_) ++counts[HashRing::position(key) >> 58];
  const double expected = static_cast<double>(kKeys) / kArcs;
  double chi_squared = 0;
  for (const double count : counts)
    chi_squared += (count - expected) * (count - expected) / expected;
  // The 0.999 quantile of the chi-squared distribution of 63 degrees of freedom.
  EXPECT_LT(chi_squared, 103.442);
}

TEST_P(HashRingShapes, AThirdAndAFourthNodeTakeTheirShareAndGiveExactlyThatBack) {
  HashRing ring = ring_of({"r1", "r2"});
  const HashRing two = ring;
  ASSERT_TRUE(ring.add_node("r3"));
  EXPECT_NEAR(moved(two, ring), 100.0 / 3, 4.0);
  EXPECT_EQ(moved(two, ring, "r3"), 0.0);
  const HashRing three = ring;
  ASSERT_TRUE(ring.add_node("r4"));
  EXPECT_NEAR(moved(three, ring), 25.0, 3.0);
  EXPECT_EQ(moved(three, ring, "r4"), 0.0);
  ASSERT_TRUE(ring.remove_node("r4"));
  EXPECT_EQ(moved(three, ring), 0.0);
}

TEST_P(HashRingShapes, SharesOfKeysFollowTheDistribution) {
  HashRing ring = *HashRing::create();
  ASSERT_TRUE(ring.add_node("small", 0.5));
  ASSERT_TRUE(ring.add_node("plain"));
  ASSERT_TRUE(ring.add_node("big", 2.5));
  const auto shares = ring.distribution();
  const auto keys = counts(ring);
  double all = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double fair = shares[i].weight / 4.0;
    EXPECT_NEAR(shares[i].share, fair, fair / 10) << shares[i].name;
    // Five standard deviations of a sample.
    EXPECT_NEAR(static_cast<double>(keys[i]) / kKeys, shares[i].share,
                5 * std::sqrt(shares[i].share / kKeys));
    all += shares[i].share;
  }
  EXPECT_NEAR(all, 1.0, 1e-12);
}

TEST_P(HashRingShapes, TheMovesThatAreToldAreThoseOfTheKeys) {
  const HashRing before = ring_of({"r1", "r2", "r3"});
  HashRing after = before;
  ASSERT_TRUE(after.remove_node("r2"));
  ASSERT_TRUE(after.add_node("r5", 2.0));
  std::map<std::pair<std::string, std::string>, double> seen;
  for (const std::string& key : keys_) {
    const std::pair<std::string, std::string> nodes(*before.node(key), *after.node(key));
    if (nodes.first != nodes.second) seen[nodes] += 1.0 / kKeys;
  }
  const auto moves = HashRing::moves(before, after);
  ASSERT_EQ(moves.size(), seen.size());
  for (const auto& move : moves) {
    EXPECT_NEAR((seen[{move.from, move.to}]), move.share, 5 * std::sqrt(move.share / kKeys))
        << move.from << " to " << move.to;
  }
}

TEST(HashRingSpread, ThreeHundredRandomSetsOfNamesAreWithinTenPercentOfFair) {
  std::mt19937 random(7);
  const auto number = [&](std::uint32_t most) { return random() % most; };
  double worst = 0;
  for (int set = 0; set < 300; ++set) {
    HashRing ring = *HashRing::create();
    const std::size_t size = 2 + number(7);
    while (ring.size() < size) {
      std::string name;
      switch (number(3)) {
        case 0:
          name = "r" + std::to_string(number(1000));
          break;
        case 1:
          name = ipv4(static_cast<std::uint32_t>(random())) + ":6379/0";
          break;
        default:
          for (std::size_t i = 0, length = 1 + number(12); i < length; ++i) {
            name += static_cast<char>('a' + number(26));
          }
      }
      const auto added = ring.add_node(name);  // a name twice is refused, and another one drawn
      ASSERT_TRUE(added || added.error().code == ErrorCode::already_exists);
    }
    for (const auto& share : ring.distribution()) {
      const double stray = std::abs(share.share * static_cast<double>(size) - 1);
      worst = std::max(worst, stray);
      EXPECT_LT(stray, 0.1) << "set " << set << ": " << share.name << " of " << size;
    }
  }
  RecordProperty("worst", std::to_string(worst));
}

TEST(HashRingSpread, MovesAreExact) {
  HashRing ring = ring_of({"a", "b", "c"});
  const HashRing before = ring;
  ASSERT_TRUE(ring.add_node("d"));
  double to_d = 0;
  for (const auto& move : HashRing::moves(before, ring)) {
    EXPECT_EQ(move.to, "d");
    to_d += move.share;
  }
  EXPECT_NEAR(to_d, ring.distribution()[3].share, 1e-12);
  // And back: the same amounts, from d to whom they came from.
  const auto there = HashRing::moves(before, ring);
  const auto back = HashRing::moves(ring, before);
  ASSERT_EQ(there.size(), back.size());
  for (std::size_t i = 0; i < there.size(); ++i) {
    EXPECT_EQ(there[i].from, back[i].to);
    EXPECT_NEAR(there[i].share, back[i].share, 1e-12);
  }
}

TEST(HashRingSpread, MoreWeightMovesKeysToThatNodeOnly) {
  HashRing before = ring_of({"a", "b", "c"});
  HashRing after = ring_of({"a", "c"});
  ASSERT_TRUE(after.add_node("b", 1.5));
  const auto moves = HashRing::moves(before, after);
  EXPECT_THAT(moves, testing::SizeIs(2));
  for (const auto& move : moves) EXPECT_EQ(move.to, "b");
}

}  // namespace
}  // namespace stint
