#include "gateway/openai_request_scan.h"

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

namespace stint::gateway {
namespace {

// All of these rely on the text being valid: they look for ends and check nothing.

std::size_t skip_space(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

// `at` is the opening quote. Gives what follows the closing one.
std::size_t skip_string(std::string_view text, std::size_t at) {
  std::size_t from = at + 1;
  while (true) {
    const std::size_t quote = text.find('"', from);
    if (quote == std::string_view::npos) return text.size();
    std::size_t backslashes = 0;
    while (text[quote - 1 - backslashes] == '\\') ++backslashes;
    if (backslashes % 2 == 0) return quote + 1;
    from = quote + 1;
  }
}

std::size_t skip_value(std::string_view text, std::size_t at) {
  if (text[at] == '"') return skip_string(text, at);
  if (text[at] != '{' && text[at] != '[') {
    return std::min(text.find_first_of(",]} \t\r\n", at), text.size());
  }
  std::size_t depth = 0;
  while (true) {
    at = text.find_first_of("\"{}[]", at);
    if (at == std::string_view::npos) return text.size();
    if (text[at] == '"') {
      at = skip_string(text, at);
      continue;
    }
    depth = text[at] == '{' || text[at] == '[' ? depth + 1 : depth - 1;
    ++at;
    if (depth == 0) return at;
  }
}

}  // namespace

std::string decode_json_string(std::string_view quoted) {
  const std::string_view inside = quoted.substr(1, quoted.size() - 2);
  if (!inside.contains('\\')) return std::string(inside);
  const boost::json::value value = boost::json::parse({quoted.data(), quoted.size()});
  const boost::json::string& decoded = value.get_string();
  return {decoded.data(), decoded.size()};
}

std::expected<std::vector<JsonMember>, RequestFault> scan_members(std::string_view text,
                                                                  std::size_t begin,
                                                                  std::string_view path) {
  std::vector<JsonMember> members;
  members.reserve(16);
  std::size_t at = skip_space(text, skip_space(text, begin) + 1);
  while (text[at] != '}') {
    if (text[at] == ',') at = skip_space(text, at + 1);
    const std::size_t key_end = skip_string(text, at);
    std::string key = decode_json_string(text.substr(at, key_end - at));
    const std::size_t colon = skip_space(text, key_end);
    const std::size_t value = skip_space(text, colon + 1);
    const std::size_t end = skip_value(text, value);
    at = skip_space(text, end);

    if (members.size() == kMaxTopLevelMembers) {
      return std::unexpected(RequestFault{"The body has more than " +
                                          std::to_string(kMaxTopLevelMembers) +
                                          " members in one object. Send fewer."});
    }
    if (std::ranges::find(members, key, &JsonMember::key) != members.end()) {
      const std::string shown = std::string(path) + key.substr(0, 64);
      return std::unexpected(RequestFault{"`" + shown + "` is given twice. Give it once.", shown});
    }
    members.push_back({std::move(key), {value, end}});
  }
  return members;
}

}  // namespace stint::gateway
