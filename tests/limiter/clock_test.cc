// The limiter's time: the wall clock, but never backwards (C23).
#include "tests/limiter/fixture.h"

namespace stint::test {
namespace {

class ClockSteps : public LimiterTest, public testing::WithParamInterface<Algorithm> {
 protected:
  // Ten for each minute; half of them used half a minute into a window.
  void half_used() {
    limit({{.id = "p", .limits = {requests_per(60s, 10, GetParam())}}});
    clock_.advance(30s);
    EXPECT_EQ(count_admitted(5, {}), 5);
  }
  // Admitted within the next window's length, a tenth of a second apart.
  int admitted_in_a_window() {
    int count = 0;
    for (int i = 0; i < 600; ++i) {
      count += admitted(Attributes{}) ? 1 : 0;
      clock_.advance(100ms);
    }
    return count;
  }
};

TEST_P(ClockSteps, BackAnHourNobodyWaitsLongerThanAWindowAndNobodyGetsMore) {
  half_used();
  clock_.step_wall(-1h);
  EXPECT_EQ(count_admitted(6, {}), 5);
  const Admission refused = admit(Attributes{});
  EXPECT_GT(*refused.decision.retry_after(), 0s);
  // A sliding window's wait reaches into the next window: less than a window and a tenth of it.
  EXPECT_LE(*refused.decision.retry_after(), 66s);
  clock_.advance(*refused.decision.retry_after());
  EXPECT_TRUE(admitted(Attributes{}));
}

TEST_P(ClockSteps, ForwardAnHourGivesAtMostOneExtraWindow) {
  half_used();
  EXPECT_EQ(count_admitted(10, {}), 5);
  clock_.step_wall(1h);
  clock_.advance(10ms);  // the wall clock is looked at every 10 ms
  EXPECT_EQ(count_admitted(100, {}), 10);
  clock_.step_wall(-1h);  // and back: no third window
  clock_.advance(10ms);
  EXPECT_EQ(count_admitted(100, {}), 0);
  EXPECT_LE(admitted_in_a_window(), 20);
}

TEST_P(ClockSteps, ALeapSecondThatComesTwiceRefusesNobody) {
  half_used();
  clock_.step_wall(-1s);
  clock_.advance(1s);
  EXPECT_TRUE(admitted(Attributes{}));
  clock_.step_wall(-11s);
  EXPECT_TRUE(admitted(Attributes{}));
}

TEST_P(ClockSteps, HundredYearsOfIdlenessLeaveAFullLimit) {
  half_used();
  clock_.advance(std::chrono::days{36'525});
  const Admission first = admit(Attributes{});
  ASSERT_TRUE(first.admitted());
  EXPECT_EQ(first.decision.limits[0].remaining, 9);
}

INSTANTIATE_TEST_SUITE_P(Windowed, ClockSteps,
                         testing::Values(Algorithm::fixed_window, Algorithm::sliding_window,
                                         Algorithm::sliding_log, Algorithm::token_bucket),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

using ClockWarning = LimiterTest;

TEST_F(ClockWarning, AClockSetBackIsWarnedAboutOnceAMinute) {
  std::vector<std::string> warnings;
  limit({{.id = "p", .limits = {requests_per(60s, 10)}}},
        {.on_warning = [&](std::string_view text) { warnings.emplace_back(text); }});
  clock_.step_wall(-500ms);  // drift is no step
  clock_.advance(1s);
  EXPECT_TRUE(admitted("k"));
  EXPECT_TRUE(warnings.empty());
  clock_.step_wall(-1h);
  for (int i = 0; i < 590; ++i) {
    clock_.advance(100ms);
    (void)admitted("k");
  }
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("wall clock was set back"), std::string::npos);
  clock_.advance(2s);
  (void)admitted("k");
  EXPECT_EQ(warnings.size(), 2U);
}

}  // namespace
}  // namespace stint::test
