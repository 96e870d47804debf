// Which bucket is to be looked at first for being spent: a binary heap with places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stint::store {

// Holds each slot number at most once. Memory: 12 bytes a slot; the order is by `due` alone.
// Not thread-safe.
class DueQueue {
 public:
  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  [[nodiscard]] std::uint32_t first_slot() const noexcept { return heap_.front().slot; }
  [[nodiscard]] std::uint32_t first_due() const noexcept { return heap_.front().due; }

  // The slot must not be in the queue.
  void push(std::uint32_t slot, std::uint32_t due);
  // The slot must be in the queue.
  void move(std::uint32_t slot, std::uint32_t due) noexcept;
  void remove(std::uint32_t slot) noexcept;

 private:
  struct Entry {
    std::uint32_t due = 0;
    std::uint32_t slot = 0;
  };

  void put(std::size_t place, const Entry& entry) noexcept;
  void sift(std::size_t place) noexcept;

  std::vector<Entry> heap_;
  std::vector<std::uint32_t> places_;  // of each slot in heap_; of one not in the queue: anything
};

}  // namespace stint::store
