// A limit made ready for arithmetic: the numbers that the steps of the algorithms need.
#pragma once

#include <cstdint>

#include "stint/error.h"
#include "stint/limit.h"
#include "stint/time.h"

namespace stint::limit {

// What names a limit inside its bucket, whatever its quota.
struct LimitName {
  Unit unit{};
  Algorithm algorithm{};
  Duration window{0};

  friend bool operator==(const LimitName&, const LimitName&) = default;
};

// The algorithms that multiply a level by a time (sliding_window, token_bucket) count time in
// ticks of 10^k microseconds, k the smallest for which
//     max(quota, capacity) * ticks in a window < 2^52,
// so that every product stays an exact integer, also in stores whose numbers are doubles.
// The other algorithms multiply nothing: their tick is one microsecond.
struct Spec {
  LimitName name;
  std::int64_t quota = 0;
  std::int64_t capacity = 0;  // = quota, except for token buckets
  Duration tick{1};
  // Ticks in a window: rounded up for token buckets, down for sliding windows, so that a window
  // that is not a whole number of ticks makes the limit stricter, by less than 1 %.
  std::int64_t window_ticks = 1;
  // Where a counter stops growing (a debt: where it stops deepening): ticks * level < 2^53.
  // At least twice the capacity.
  std::int64_t max_level = kMaxQuantity;

  [[nodiscard]] Duration window() const noexcept { return name.window; }
  [[nodiscard]] Limit limit() const;

  friend bool operator==(const Spec&, const Spec&) = default;
};

// Errors: as stint::validate(const Limit&).
[[nodiscard]] Result<Spec> compile(const Limit& limit);

}  // namespace stint::limit
