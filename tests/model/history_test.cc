// Random histories of calls: every store answers as the reference does. README.md beside this
// file says how to run more of them, and one again.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tests/model/history_gen.h"
#include "tests/model/history_run.h"

namespace stint::model {
namespace {

constexpr std::uint64_t kSeed = 2'026'01'01;
constexpr int kHistories = 2'500;  // 10 s and more under the address sanitizer

// Whether RC_PARAMS, which RapidCheck reads, says something of its own.
bool given(std::string_view parameter) {
  const char* text = std::getenv("RC_PARAMS");
  return text != nullptr && std::string_view(text).contains(parameter);
}

void check(const rc::Gen<History>& histories, Compared compared) {
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  if (!given("seed")) params.seed = kSeed;
  if (!given("max_success")) params.maxSuccess = kHistories;
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const rc::detail::TestMetadata name{test->name(), test->name()};
  const auto property = [&] {
    const History history = *histories;
    const std::string fault = run(history, compared);
    if (!fault.empty()) RC_FAIL(fault);
  };
  const auto result = rc::detail::checkTestable(property, name, params);
  if (result.is<rc::detail::SuccessResult>()) return;
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  FAIL() << message.str() << "\nRC_PARAMS=\"seed=" << params.seed
         << " max_success=" << params.maxSuccess << "\"";
}

std::vector<std::filesystem::path> seeds() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(STINT_SEEDS_DIR)) {
    if (entry.path().extension() == ".txt") found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

bool steps_back(const History& history) {
  return std::ranges::any_of(history.ops, [](const Op& op) {
    const Wait* wait = std::get_if<Wait>(&op);
    return wait != nullptr && wait->span < Duration{0};
  });
}

TEST(Histories, ThatOnceFoundABugAgree) {
  for (const auto& path : seeds()) {
    SCOPED_TRACE(path.filename().string());
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    const History history = parse_history(text.str());
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
