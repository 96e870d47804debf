#include "http/syntax.h"

#include <algorithm>
#include <array>

namespace stint::http {
namespace {

constexpr std::array<bool, 256> kTokenCharacters = [] {
  std::array<bool, 256> allowed{};
  for (const char c : std::string_view("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    allowed[static_cast<unsigned char>(c)] = true;
  }
  return allowed;
}();

constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

}  // namespace

bool is_token(std::string_view text) noexcept {
  const auto allowed = [](char c) { return kTokenCharacters[static_cast<unsigned char>(c)]; };
  return !text.empty() && std::ranges::all_of(text, allowed);
}

bool is_field_value(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte != 0x7f) || byte == '\t';
  });
}

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace stint::http
