// A fast hash of text with a seed: for tables whose keys come from outside.
#pragma once

#include <cstdint>
#include <string_view>

namespace stint::base {

// XXH3, 64 bits. Not for anything that must not collide; a secret seed keeps senders from
// choosing texts that do.
[[nodiscard]] std::uint64_t hash(std::string_view text, std::uint64_t seed) noexcept;

}  // namespace stint::base
