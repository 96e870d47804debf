// Integer arithmetic that stops at the ends instead of wrapping.
#pragma once

#include <cstdint>
#include <limits>

namespace stint::base {

[[nodiscard]] constexpr std::int64_t add_sat(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<std::int64_t>::max()
               : std::numeric_limits<std::int64_t>::min();
}

// Rounded up. a >= 0, b > 0.
[[nodiscard]] constexpr std::int64_t div_ceil(std::int64_t a, std::int64_t b) noexcept {
  return a / b + (a % b != 0 ? 1 : 0);
}

// Rounded towards minus infinity. b > 0.
[[nodiscard]] constexpr std::int64_t div_floor(std::int64_t a, std::int64_t b) noexcept {
  return a / b - (a % b < 0 ? 1 : 0);
}

}  // namespace stint::base
