// Bucket keys: two lists of parts never give one key. Patterns: `matches` says what a slow, obvious
// matcher says, and ends.
//
// Inputs read as text, so that seeds can be written by hand:
//   k<8 bytes of choices><policy>\n<name>\t<value>\n<name>...     a list of parts
//   g<pattern>\n<text>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "limit/bucket_key.h"
#include "tests/fuzz/require.h"

namespace stint::limit {
namespace {

struct List {
  std::string policy;
  std::vector<std::pair<std::string, std::optional<std::string>>> parts;

  friend bool operator==(const List&, const List&) = default;
};

// Splits at the first `separator`; the second half is absent if there is none.
std::pair<std::string_view, std::optional<std::string_view>> split(std::string_view text,
                                                                   char separator) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return {text, std::nullopt};
  return {text.substr(0, at), text.substr(at + 1)};
}

List read_list(std::string_view text) {
  auto [policy, rest] = split(text, '\n');
  List list{std::string(policy), {}};
  while (rest) {
    const auto [line, more] = split(*rest, '\n');
    const auto [name, value] = split(line, '\t');
    list.parts.emplace_back(name, value);
    rest = more;
  }
  return list;
}

// The parts joined as somebody would who escapes nothing.
std::string join_naively(const List& list) {
  std::string text = list.policy;
  for (const auto& [name, value] : list.parts) {
    text += ':' + name;
    if (value) text += '=' + *value;
  }
  return text;
}

// Another list that reads the same when it is joined naively: each `:` and `=` of the text is a
// separator or not, as the bits of `choices` have it.
List split_anew(std::string_view text, std::uint64_t choices) {
  List list;
  std::string* piece = &list.policy;
  for (const char byte : text) {
    const bool special = byte == ':' || byte == '=';
    const bool taken = special && (choices & 1) != 0;
    if (special) choices = (choices >> 1) | (choices << 63);
    if (taken && byte == ':') {
      piece = &list.parts.emplace_back().first;
    } else if (taken && !list.parts.empty() && !list.parts.back().second) {
      piece = &list.parts.back().second.emplace();
    } else {
      *piece += byte;
    }
  }
  return list;
}

struct Written {
  std::string text;
  std::string key;
};

Written write(const List& list) {
  std::string policy;
  append_escaped(policy, list.policy);
  std::string out = "before";
  BucketKeyWriter writer(out, policy);
  for (const auto& [name, value] : list.parts) {
    std::string escaped;
    append_escaped(escaped, name);
    writer.add(escaped, value);
  }
  const KeySpan span = writer.finish();
  Written written{out.substr(span.text_begin, span.text_size),
                  out.substr(span.key_begin, span.key_size)};
  const bool whole = written.text.size() <= kMaxKey;
  STINT_REQUIRE(whole == (written.key == written.text));
  STINT_REQUIRE(written.key.starts_with(policy));
  STINT_REQUIRE(whole || written.key.size() == policy.size() + 3 + 32);
  STINT_REQUIRE(written.key != overflow_key(policy));
  return written;
}

std::string unescape(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'A' + 10; };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    STINT_REQUIRE(i + 2 < text.size());
    plain += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
    i += 2;
  }
  return plain;
}

// The list that a text was written from. That there is such a function is why no two lists meet.
List read_back(std::string_view text) {
  auto [policy, rest] = split(text, ':');
  List list{unescape(policy), {}};
  while (rest) {
    const auto [part, more] = split(*rest, ':');
    const auto [name, value] = split(part, '=');
    auto& read = list.parts.emplace_back(unescape(name), std::nullopt);
    if (value) read.second = unescape(*value);
    rest = more;
  }
  return list;
}

void check_lists(std::string_view input) {
  std::uint64_t choices = 0;
  if (input.size() < sizeof choices) return;
  std::memcpy(&choices, input.data(), sizeof choices);
  const List list = read_list(input.substr(sizeof choices));
  const Written written = write(list);
  STINT_REQUIRE(read_back(written.text) == list);
  for (const char byte : written.text) {
    STINT_REQUIRE(static_cast<unsigned char>(byte) >= 0x20 && byte != 0x7F);
    STINT_REQUIRE(byte != '{' && byte != '}');
  }
  // Lists that come near: those that a naive joint, the text and the key can be taken for.
  for (const std::string& source : {join_naively(list), written.text, written.key}) {
    const List other = split_anew(source, choices);
    const Written near = write(other);
    STINT_REQUIRE((near.text == written.text) == (other == list));
    STINT_REQUIRE((near.key == written.key) == (other == list));
  }
}

// By the definition; takes exponential time.
bool matches_slowly(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  const std::string_view rest = pattern.substr(1);
  if (pattern[0] == '*') {
    return matches_slowly(rest, text) || (!text.empty() && matches_slowly(pattern, text.substr(1)));
  }
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) &&
         matches_slowly(rest, text.substr(1));
}

std::string repeat(std::string_view text, std::size_t times) {
  std::string repeated;
  for (std::size_t i = 0; i < times; ++i) repeated += text;
  return repeated;
}

void check_pattern(std::string_view input) {
  const auto [whole_pattern, rest] = split(input, '\n');
  const std::string_view whole_text = rest.value_or("");
  (void)matches(whole_pattern, whole_text);
  const std::string_view pattern = whole_pattern.substr(0, 8);
  const std::string_view text = whole_text.substr(0, 12);
  const bool expected = matches_slowly(pattern, text);
  STINT_REQUIRE(matches(pattern, text) == expected);
  STINT_REQUIRE(matches("*", text) && matches(text, text) == matches_slowly(text, text));
  // Long ones: a matcher that goes back to each star would not see the end of them.
  constexpr std::size_t kTimes = 16;
  const bool repeated = matches(repeat(pattern, kTimes), repeat(text, kTimes));
  STINT_REQUIRE(repeated || !expected);
}

}  // namespace
}  // namespace stint::limit

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.starts_with('k')) stint::limit::check_lists(input.substr(1));
  if (input.starts_with('g')) stint::limit::check_pattern(input.substr(1));
  return 0;
}
