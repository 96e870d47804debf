// Which of a fixed number of stripes a thread keeps to, so that threads seldom meet in one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>

namespace stint::base {

inline constexpr std::size_t kStripes = 64;

[[nodiscard]] inline std::size_t stripe_of_this_thread() noexcept {
  const std::uint64_t id = std::hash<std::thread::id>{}(std::this_thread::get_id());
  return (id * 0x9e3779b97f4a7c15U) >> 58;  // the upper 6 bits
}

}  // namespace stint::base
