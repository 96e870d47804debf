// The points of a ring and whose they are, apart from how they are made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stint::ring {

// Both lists have one entry for each point. Sorted by point, equal ones by owner; owners are
// numbers of nodes in the order of their names. Apart, so that a search touches little memory.
struct Points {
  std::vector<std::uint64_t> at;
  std::vector<std::uint32_t> owner;
};

// The lists with the sorted points of a node that becomes number `owner`; the numbers from there on
// move up by one.
[[nodiscard]] Points with_node(std::span<const std::uint64_t> at,
                               std::span<const std::uint32_t> owner,
                               std::span<const std::uint64_t> added, std::uint32_t number);

// The lists without the points of a node; the numbers behind it move down by one.
void remove_node(std::vector<std::uint64_t>& at, std::vector<std::uint32_t>& owner,
                 std::uint32_t number) noexcept;

// The index of the point that a position belongs to: the first that is not before it; behind the
// last, the first of all. There must be one.
[[nodiscard]] std::size_t find(std::span<const std::uint64_t> at, std::uint64_t position) noexcept;

}  // namespace stint::ring
