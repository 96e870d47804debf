// Streams and what a UsageMeter makes of them, for its tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/usage_meter.h"

namespace stint::gateway {

inline constexpr const char* kEvents = "text/event-stream";
inline constexpr UsageMeterOptions kHiding{.input_estimate = 7, .hide_usage_chunk = true};
inline constexpr UsageMeterOptions kPassing{.input_estimate = 7};

// What came out of a whole stream.
struct Result {
  std::string forwarded;
  MeteredUsage usage;
  bool ended = false;
  bool between = false;

  friend bool operator==(const Result&, const Result&) = default;
};

inline std::ostream& operator<<(std::ostream& out, const Result& result) {
  return out << result.forwarded << "| " << result.usage.input_tokens << ' '
             << result.usage.output_tokens << (result.usage.estimated ? "~" : "")
             << (result.ended ? " ended" : "") << (result.between ? " between" : "");
}

// In pieces of these sizes, used in turn.
inline Result run(std::string_view stream, const UsageMeterOptions& options,
                  const std::vector<std::size_t>& sizes) {
  UsageMeter meter(kEvents, options);
  Result result;
  std::size_t turn = 0;
  while (!stream.empty()) {
    // A copy that ends where the piece ends: reading on would be seen.
    const std::string piece(stream.substr(0, sizes[turn++ % sizes.size()]));
    stream.remove_prefix(piece.size());
    result.forwarded += meter.feed(piece);
  }
  result.forwarded += meter.finish();
  result.usage = meter.usage();
  result.ended = meter.ended();
  result.between = meter.between_events();
  EXPECT_EQ(meter.forwarded_bytes(), result.forwarded.size());
  return result;
}

inline Result whole(std::string_view stream, const UsageMeterOptions& options) {
  return run(stream, options, {std::max<std::size_t>(stream.size(), 1)});
}

inline std::string with_ends(std::string_view text, std::string_view end) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += end;
    } else {
      out += c;
    }
  }
  return out;
}

inline const std::string kContent =
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi \U0001F600\"}}],"
    "\"usage\":null}\n\n";
inline const std::string kUsage =
    "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":50,"
    "\"total_tokens\":1050,\"prompt_tokens_details\":{\"cached_tokens\":3},"
    "\"completion_tokens_details\":{\"reasoning_tokens\":4}}}\n\n";
inline const std::string kDone = "data: [DONE]\n\n";
inline const MeteredUsage kReported{.input_tokens = 1000,
                                    .output_tokens = 50,
                                    .cached_input_tokens = 3,
                                    .reasoning_output_tokens = 4};

}  // namespace stint::gateway
