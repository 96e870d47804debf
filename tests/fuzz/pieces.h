// Bytes that arrive in pieces.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace stint::fuzz {

// How long the pieces are to be, as a byte of the input has it: 1 to 32.
inline std::size_t cut_of(char byte) { return 1 + static_cast<unsigned char>(byte) % 32; }

// The text in pieces of `cut` bytes, each in memory of its own: reading on is seen. `use` says
// whether to go on.
template <class Use>
void in_pieces(std::string_view text, std::size_t cut, Use use) {
  while (!text.empty()) {
    const std::string_view front = text.substr(0, cut);
    text.remove_prefix(front.size());
    const std::vector<char> piece(front.begin(), front.end());
    if (!use(std::string_view(piece.data(), piece.size()))) return;
  }
}

}  // namespace stint::fuzz
