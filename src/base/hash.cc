#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace stint::base {

std::uint64_t hash(std::string_view text, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

}  // namespace stint::base
