// Names of attributes: how they compare, and which of them are present.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "stint/attributes.h"

namespace stint::policy {

inline constexpr std::string_view kHeaderPrefix = "header:";

[[nodiscard]] constexpr char ascii_lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

// Header names are compared without regard to case (RFC 9110, section 5.1), all others exactly;
// the prefix, which is ours, too.
[[nodiscard]] inline bool same_name(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  if (!a.starts_with(kHeaderPrefix) || !b.starts_with(kHeaderPrefix)) return a == b;
  return std::ranges::equal(a, b, {}, ascii_lower, ascii_lower);
}

// A name that policies use, resolved once: one of the known dimensions, or another.
class AttributeName {
 public:
  explicit AttributeName(std::string_view name) : text_(name), known_(parse_dimension(name)) {
    if (name.starts_with(kHeaderPrefix)) std::ranges::transform(text_, text_.begin(), ascii_lower);
  }

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] std::optional<std::string_view> in(const Attributes& attributes) const noexcept {
    return known_ ? attributes.get(*known_) : attributes.get_other(text_);
  }
  // Set by whoever authenticated and routed the request, not by its sender.
  [[nodiscard]] bool identity() const noexcept { return known_ && *known_ <= Dimension::route; }

  friend bool operator==(const AttributeName&, const AttributeName&) = default;

 private:
  std::string text_;
  std::optional<Dimension> known_;
};

}  // namespace stint::policy
