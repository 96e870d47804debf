#include "config/suggest.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stint::config {
namespace {

constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> edits(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) edits[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) edits[0][j] = j;
  const auto same = [&](std::size_t i, std::size_t j) { return lower(a[i]) == lower(b[j]); };
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = edits[i - 1][j - 1] + (same(i - 1, j - 1) ? 0 : 1);
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1)) {
        edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
      }
    }
  }
  return edits[a.size()][b.size()];
}

}  // namespace

std::string_view nearest(std::string_view text, std::span<const std::string_view> names) {
  constexpr std::size_t kLongest = 64;  // of a name; longer texts are near to none
  if (text.size() > kLongest) return {};
  std::string_view best;
  std::size_t fewest = text.size() / 4 + 2;
  for (const std::string_view name : names) {
    const std::size_t edits = distance(text, name);
    if (edits >= fewest || edits >= name.size()) continue;
    fewest = edits;
    best = name;
  }
  return best;
}

std::string suggestion(std::string_view text, std::span<const std::string_view> names) {
  if (const std::string_view name = nearest(text, names); !name.empty()) {
    return "; did you mean " + std::string(name) + "?";
  }
  constexpr std::size_t kMany = 16;
  if (names.empty() || names.size() > kMany) return {};
  std::string text_of_names = "; known are ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text_of_names += ", ";
    text_of_names += names[i];
  }
  return text_of_names;
}

}  // namespace stint::config
