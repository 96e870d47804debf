#include "base/saturating.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace stint::base {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

TEST(AddSat, AddsExactlyWhereTheSumFits) {
  EXPECT_EQ(add_sat(2, 3), 5);
  EXPECT_EQ(add_sat(-2, 3), 1);
  EXPECT_EQ(add_sat(kMax, kMin), -1);
  EXPECT_EQ(add_sat(kMax - 1, 1), 9'223'372'036'854'775'807);
  EXPECT_EQ(add_sat(kMin + 1, -1), kMin);
}

TEST(AddSat, StopsAtTheEnds) {
  EXPECT_EQ(add_sat(kMax, 1), kMax);
  EXPECT_EQ(add_sat(1, kMax), kMax);
  EXPECT_EQ(add_sat(kMax, kMax), kMax);
  EXPECT_EQ(add_sat(kMin, -1), kMin);
  EXPECT_EQ(add_sat(-1, kMin), kMin);
  EXPECT_EQ(add_sat(kMin, kMin), kMin);
}

TEST(DivCeil, RoundsUp) {
  EXPECT_EQ(div_ceil(0, 3), 0);
  EXPECT_EQ(div_ceil(1, 3), 1);
  EXPECT_EQ(div_ceil(3, 3), 1);
  EXPECT_EQ(div_ceil(4, 3), 2);
  EXPECT_EQ(div_ceil(kMax, 1), kMax);
  EXPECT_EQ(div_ceil(kMax, 2), 4'611'686'018'427'387'904);
  EXPECT_EQ(div_ceil(kMax, kMax), 1);
  EXPECT_EQ(div_ceil(kMax - 1, kMax), 1);
}

TEST(DivFloor, RoundsTowardsMinusInfinity) {
  EXPECT_EQ(div_floor(7, 3), 2);
  EXPECT_EQ(div_floor(6, 3), 2);
  EXPECT_EQ(div_floor(0, 3), 0);
  EXPECT_EQ(div_floor(-1, 3), -1);
  EXPECT_EQ(div_floor(-3, 3), -1);
  EXPECT_EQ(div_floor(-4, 3), -2);
  EXPECT_EQ(div_floor(kMin, 1), kMin);
  EXPECT_EQ(div_floor(kMin, kMax), -2);
}

}  // namespace
}  // namespace stint::base
