// Bytes of a file as text: where lines begin, and whether it is text at all.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace stint::config {

// The offset of the first byte that is neither UTF-8 (RFC 3629) nor a printable character, a tab or
// a line end (LF or CRLF).
[[nodiscard]] std::optional<std::size_t> find_non_text(std::string_view text) noexcept;

inline constexpr std::string_view kNoText = "is no text in UTF-8, or has a control character";

// Finds lines and columns. The text must outlive it.
class Lines {
 public:
  explicit Lines(std::string_view text);

  [[nodiscard]] std::string_view text() const noexcept { return text_; }
  // Line and column of an offset, both from 1; columns in characters, as editors count them.
  [[nodiscard]] std::pair<int, int> at(std::size_t offset) const noexcept;

 private:
  std::string_view text_;
  std::vector<std::size_t> begins_;
};

}  // namespace stint::config
