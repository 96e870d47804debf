// Random histories of calls: every store answers as the reference does. README.md beside this
// file says how to run more of them, and one again.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

#include "tests/model/history_check.h"
#include "tests/model/history_gen.h"
#include "tests/model/history_run.h"

namespace stint::model {
namespace {

constexpr int kHistories = 2'500;  // 10 s and more under the address sanitizer

void check(const rc::Gen<History>& histories, Compared compared) {
  check(histories, kHistories, [&](const History& history) { return run(history, compared); });
}

TEST(Histories, ThatOnceFoundABugAgree) {
  for (const auto& path : seeds()) {
    SCOPED_TRACE(path.filename().string());
    const History history = read_history(path);
    const std::string fault =
        run(history, steps_back(history) ? Compared::that_keep : Compared::all);
    EXPECT_TRUE(fault.empty()) << fault;
  }
}

TEST(Histories, AreReadBackAsTheyWereWritten) {
  const auto written_and_read = [] {
    const History history = *stepping_histories();
    const std::string text = to_text(history);
    RC_ASSERT(to_text(parse_history(text)) == text);
  };
  const auto result = rc::detail::checkTestable(written_and_read, rc::detail::TestMetadata{},
                                                rc::detail::TestParams{.seed = kSeed});
  EXPECT_TRUE(result.is<rc::detail::SuccessResult>());
}

TEST(Histories, OfTimeThatGoesOnAgree) { check(forward_histories(), Compared::all); }

TEST(Histories, OfTimeThatStepsBackAgree) { check(stepping_histories(), Compared::that_keep); }

}  // namespace
}  // namespace stint::model
