#include <gtest/gtest.h>
// After gtest.h, which it does not include.
#include <rapidcheck/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "gateway/usage_meter_testing.h"

namespace stint::gateway {
namespace {

const std::vector<std::string>& fragments() {
  static const std::vector<std::string> kAll = {
      kContent,
      kUsage,
      kDone,
      ": comment\n\n",
      ": comment\n",
      "event: message\nid: 1\n" + kUsage,
      "\n",
      "data: {\"choices\":[],\ndata: \"usage\":{\"prompt_tokens\":7}}\n\n",
      "data: {\"choices\":[],\"usage\":null}\n\n",
      "data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\\ude00\\n\"}}],"
      "\"usage\":{\"completion_tokens\":60}}\n\n",
      "data: {\"error\":{}}\n\n",
      "data: not json \xFF\n\n",
      "data: {\"choices\":[],\"usage\":{}} x\n\n",
      "data\n\n",
      "data:\n",
      "unknown: {\n",
      "data: [DON",
      "data: {\"choices\":[",
      "\r",
      "\xEF\xBB\xBF",
  };
  return kAll;
}

RC_GTEST_PROP(UsageMeterStreamProperty, AnyCutOfAStreamGivesTheSame, ()) {
  const auto end = *rc::gen::elementOf(std::vector<std::string>{"\n", "\r\n", "\r"});
  const auto parts = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(fragments()));
  std::string stream;
  for (const std::string& part : parts) stream += with_ends(part, end);
  UsageMeterOptions options = kHiding;
  options.hide_usage_chunk = *rc::gen::arbitrary<bool>();
  const auto sizes =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange(1, 40)));

  const Result expected = whole(stream, options);
  RC_ASSERT(run(stream, options, sizes) == expected);
  RC_ASSERT(run(stream, options, {1}) == expected);
  if (!options.hide_usage_chunk) RC_ASSERT(expected.forwarded == stream);
}

// A usual stream, cut in two at every place, with every kind of line end.
TEST(UsageMeterStream, EveryCutInTwo) {
  for (const char* end : {"\n", "\r\n", "\r"}) {
    const std::string content = with_ends(kContent, end);
    const std::string done = with_ends(kDone, end);
    const std::string stream = content + content + with_ends(kUsage, end) + done;
    for (std::size_t cut = 1; cut < stream.size(); ++cut) {
      const std::vector<std::size_t> sizes = {cut, stream.size() - cut};
      ASSERT_EQ(run(stream, kHiding, sizes),
                (Result{content + content + done, kReported, true, true}));
      ASSERT_EQ(run(stream, kPassing, sizes), (Result{stream, kReported, true, true}));
    }
    ASSERT_EQ(run(stream, kHiding, {1}), whole(stream, kHiding));
  }
}

}  // namespace
}  // namespace stint::gateway
