#include "tests/model/history_check.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <variant>

namespace stint::model {
namespace {

// Whether RC_PARAMS, which RapidCheck reads, says something of its own.
bool given(std::string_view parameter) {
  const char* text = std::getenv("RC_PARAMS");
  return text != nullptr && std::string_view(text).contains(parameter);
}

}  // namespace

void check(const rc::Gen<History>& histories, int count,
           const std::function<std::string(const History&)>& fault) {
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  if (!given("seed")) params.seed = kSeed;
  if (!given("max_success")) params.maxSuccess = count;
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const rc::detail::TestMetadata name{test->name(), test->name()};
  const auto property = [&] {
    const History history = *histories;
    const std::string found = fault(history);
    if (!found.empty()) RC_FAIL(found);
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

History read_history(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return parse_history(text.str());
}

}  // namespace stint::model
