#include "ring/points.h"

#include <algorithm>

namespace stint::ring {

Points with_node(std::span<const std::uint64_t> at, std::span<const std::uint32_t> owner,
                 std::span<const std::uint64_t> added, std::uint32_t number) {
  Points points;
  points.at.reserve(at.size() + added.size());
  points.owner.reserve(at.size() + added.size());
  auto next = added.begin();
  const auto take_added = [&] {
    points.at.push_back(*next++);
    points.owner.push_back(number);
  };
  for (std::size_t i = 0; i < at.size(); ++i) {
    const bool before = owner[i] < number;
    while (next != added.end() && (*next < at[i] || (*next == at[i] && !before))) take_added();
    points.at.push_back(at[i]);
    points.owner.push_back(before ? owner[i] : owner[i] + 1);
  }
  while (next != added.end()) take_added();
  return points;
}

void remove_node(std::vector<std::uint64_t>& at, std::vector<std::uint32_t>& owner,
                 std::uint32_t number) noexcept {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (owner[i] == number) continue;
    at[kept] = at[i];
    owner[kept] = owner[i] < number ? owner[i] : owner[i] - 1;
    ++kept;
  }
  at.resize(kept);
  owner.resize(kept);
}

std::size_t find(std::span<const std::uint64_t> at, std::uint64_t position) noexcept {
  const auto found = std::ranges::lower_bound(at, position);
  return found == at.end() ? 0 : static_cast<std::size_t>(found - at.begin());
}

}  // namespace stint::ring
