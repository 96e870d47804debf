// The characters of HTTP (RFC 9110, section 5), for parsers and writers of messages.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace stint::http {

inline constexpr std::array<bool, 256> kTokenCharacters = [] {
  std::array<bool, 256> allowed{};
  for (const char c : std::string_view("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    allowed[static_cast<unsigned char>(c)] = true;
  }
  return allowed;
}();

// A method or the name of a field.
[[nodiscard]] inline bool is_token(std::string_view text) noexcept {
  bool allowed = !text.empty();
  for (const char c : text) allowed &= kTokenCharacters[static_cast<unsigned char>(c)];
  return allowed;
}

// Visible ASCII, bytes of other encodings, blanks and tabs: no control bytes, so no line ends.
[[nodiscard]] inline bool is_field_value(std::string_view text) noexcept {
  // No way out in the middle: many bytes are looked at at once.
  unsigned char controls = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    controls |= static_cast<unsigned char>((byte < 0x20 && byte != '\t') || byte == 0x7f);
  }
  return controls == 0;
}

// Without blanks and tabs at its ends.
[[nodiscard]] inline std::string_view trimmed(std::string_view text) noexcept {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

[[nodiscard]] std::string lower_case(std::string_view text);
// Of one digit; -1 if it is none.
[[nodiscard]] int hex_value(char c) noexcept;

}  // namespace stint::http
