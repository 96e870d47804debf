#include "store/memory/forward_clock.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/simulated_clock.h"

namespace stint::store {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{1'767'312'000s};

class ForwardClockTest : public testing::Test {
 protected:
  base::SimulatedClock clock_{kStart};
  std::vector<std::string> warnings_;
  ForwardClock forward_{clock_, [this](std::string_view text) { warnings_.emplace_back(text); }};
};

TEST_F(ForwardClockTest, StartsAtTheWallClockAndRunsWithTheSteadyOne) {
  EXPECT_EQ(forward_.now(), kStart);
  clock_.advance(1234567us);
  EXPECT_EQ(forward_.now(), kStart + 1234567us);
}

TEST_F(ForwardClockTest, AWallClockThatGetsAheadMovesItForwardForGood) {
  clock_.step_wall(1h);
  clock_.advance(9999us);
  EXPECT_EQ(forward_.now(), kStart + 9999us);  // not looked at yet
  clock_.advance(1us);
  EXPECT_EQ(forward_.now(), kStart + 1h + 10ms);
  clock_.step_wall(-1h);
  clock_.advance(1s);
  EXPECT_EQ(forward_.now(), kStart + 1h + 1010ms);
  EXPECT_EQ(warnings_.size(), 1U);
}

TEST_F(ForwardClockTest, AWallClockBehindIsIgnoredAndWarnedAboutOnceAMinute) {
  clock_.step_wall(-1h);
  for (int i = 0; i < 50; ++i) {
    clock_.advance(1s);
    EXPECT_EQ(forward_.now(), kStart + (i + 1) * 1s);
  }
  EXPECT_EQ(warnings_.size(), 1U);
  clock_.advance(12s);
  (void)forward_.now();
  EXPECT_EQ(warnings_.size(), 2U);
}

TEST_F(ForwardClockTest, DriftIsNoStep) {
  for (int i = 0; i < 100; ++i) {
    clock_.advance(1s);
    clock_.step_wall(i % 2 == 0 ? -900ms : 900ms);
    (void)forward_.now();
  }
  EXPECT_TRUE(warnings_.empty());
}

}  // namespace
}  // namespace stint::store
