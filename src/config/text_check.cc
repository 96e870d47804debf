#include "config/text_check.h"

#include <algorithm>
#include <cstdint>

namespace stint::config {
namespace {

constexpr bool continues(char c) noexcept {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80;
}

// The length of the character that begins the text; 0 if none does.
std::size_t character_length(std::string_view text) noexcept {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (length == 0 || lead > 0xF4 || text.size() < length) return 0;
  std::uint32_t point = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(text[i])) return 0;
    point = (point << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  return point < kLeast[length] || point > 0x10FFFF || surrogate ? 0 : length;
}

}  // namespace

std::optional<std::size_t> find_non_text(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_length(text.substr(i));
    const char c = text[i];
    const bool line_end = c == '\n' || (c == '\r' && text.substr(i + 1).starts_with('\n'));
    const bool control = (c >= 0 && c < ' ' && c != '\t' && !line_end) || c == '\x7F';
    if (length == 0 || control) return i;
    i += length;
  }
  return std::nullopt;
}

Lines::Lines(std::string_view text) : text_(text), begins_{0} {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') begins_.push_back(i + 1);
  }
}

std::pair<int, int> Lines::at(std::size_t offset) const noexcept {
  const auto next = std::ranges::upper_bound(begins_, offset);
  const std::size_t begin = *(next - 1);
  const std::string_view before = text_.substr(begin, offset - begin);
  const auto continuations = std::ranges::count_if(before, continues);
  return {static_cast<int>(next - begins_.begin()),
          static_cast<int>(before.size()) - static_cast<int>(continuations) + 1};
}

}  // namespace stint::config
