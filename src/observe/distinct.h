// About how many different things were seen lately, in a fixed amount of memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "stint/time.h"

namespace stint::observe {

// Of the last minute, to within some 10 %: HyperLogLog with 1,024 registers (Flajolet et al., 2007;
// linear counting for small numbers), one for each slice of ten seconds. 8 KiB.
// Thread rule: any thread. While a slice begins, what others see at that very instant may be lost.
class DistinctCounter {
 public:
  static constexpr Duration kSpan = std::chrono::minutes{1};

  // `hash`: of the thing, all 64 bits of it well mixed. `now`: steady time.
  void add(std::uint64_t hash, Duration now) noexcept;
  [[nodiscard]] std::size_t estimate(Duration now) const noexcept;

 private:
  static constexpr int kIndexBits = 10;
  static constexpr std::size_t kRegisters = std::size_t{1} << kIndexBits;
  static constexpr Duration kSlice = std::chrono::seconds{10};
  static constexpr std::int64_t kSlicesOfSpan = kSpan / kSlice;
  static constexpr std::size_t kSlices = 7;  // those of the span, and the one that is being filled

  struct Slice {
    std::atomic<std::int64_t> number{-1};  // now / kSlice
    std::array<std::atomic<std::uint8_t>, kRegisters> registers{};
  };
  std::array<Slice, kSlices> slices_{};
};

}  // namespace stint::observe
