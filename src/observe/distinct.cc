#include "observe/distinct.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace stint::observe {

void DistinctCounter::add(std::uint64_t hash, Duration now) noexcept {
  const std::int64_t number = now / kSlice;
  Slice& slice = slices_[static_cast<std::size_t>(number) % kSlices];
  std::int64_t old = slice.number.load(std::memory_order_relaxed);
  if (old < number && slice.number.compare_exchange_strong(old, number)) {
    for (auto& each : slice.registers) each.store(0, std::memory_order_relaxed);
  }
  const std::size_t index = hash >> (64 - kIndexBits);
  // The last bit is set, so that there is one to find.
  const std::uint64_t rest = hash << kIndexBits | std::uint64_t{1} << (kIndexBits - 1);
  const auto rank = static_cast<std::uint8_t>(std::countl_zero(rest) + 1);
  std::atomic<std::uint8_t>& seen = slice.registers[index];
  std::uint8_t most = seen.load(std::memory_order_relaxed);
  while (most < rank && !seen.compare_exchange_weak(most, rank, std::memory_order_relaxed)) {
  }
}

std::size_t DistinctCounter::estimate(Duration now) const noexcept {
  const std::int64_t number = now / kSlice;
  std::array<std::uint8_t, kRegisters> merged{};
  for (const Slice& slice : slices_) {
    const std::int64_t filled = slice.number.load(std::memory_order_relaxed);
    if (filled < 0 || filled > number || filled <= number - kSlicesOfSpan - 1) continue;
    for (std::size_t i = 0; i < kRegisters; ++i) {
      merged[i] = std::max(merged[i], slice.registers[i].load(std::memory_order_relaxed));
    }
  }
  constexpr double kCount = kRegisters;
  constexpr double kAlpha = 0.7213 / (1.0 + 1.079 / kCount);
  double sum = 0;
  double empty = 0;
  for (const std::uint8_t rank : merged) {
    sum += std::ldexp(1.0, -rank);
    empty += rank == 0 ? 1 : 0;
  }
  double estimate = kAlpha * kCount * kCount / sum;
  if (estimate <= 2.5 * kCount && empty > 0) estimate = kCount * std::log(kCount / empty);
  return static_cast<std::size_t>(std::lround(estimate));
}

}  // namespace stint::observe
