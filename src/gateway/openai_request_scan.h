// Where in a JSON text its members stand: for edits that leave every other byte alone.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/openai_request.h"

namespace stint::gateway {

struct JsonMember {
  std::string key;  // decoded
  TextSpan value;
};

// The members of the object that begins at `begin` (white space before it is skipped), in their
// order. A fault: a key given twice, or more than kMaxTopLevelMembers. `path` is put before keys
// in its words ("stream_options.").
// Precondition: `text` is valid JSON, and its value at `begin` is an object.
[[nodiscard]] std::expected<std::vector<JsonMember>, RequestFault> scan_members(
    std::string_view text, std::size_t begin = 0, std::string_view path = {});

// The text of a valid JSON string, with its quotes, decoded.
[[nodiscard]] std::string decode_json_string(std::string_view quoted);

}  // namespace stint::gateway
