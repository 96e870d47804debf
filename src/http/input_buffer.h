// Bytes that were received and not used yet. Holds memory only while there is something in it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace stint::http {

class InputBuffer {
 public:
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_.get() + begin_, size()}; }
  [[nodiscard]] std::size_t size() const noexcept { return end_ - begin_; }
  [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }

  void consume(std::size_t count) noexcept {
    begin_ += count;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  void clear() noexcept { begin_ = end_ = 0; }
  void release() noexcept { *this = InputBuffer(); }

  // Room for more bytes behind those that are there: grows as they come, by doubling, up to `cap`
  // bytes in all. Empty when it is full.
  [[nodiscard]] std::span<char> room(std::size_t cap) {
    if (begin_ > 0 && end_ == capacity_) {
      std::memmove(bytes_.get(), bytes_.get() + begin_, size());
      end_ -= begin_;
      begin_ = 0;
    }
    if (end_ == capacity_ && capacity_ < cap) {
      const std::size_t grown = std::min(cap, std::max(kFirst, 2 * capacity_));
      auto bigger = std::make_unique_for_overwrite<char[]>(grown);
      if (end_ > 0) std::memcpy(bigger.get(), bytes_.get(), end_);
      bytes_ = std::move(bigger);
      capacity_ = grown;
    }
    return {bytes_.get() + end_, capacity_ - end_};
  }
  void add(std::size_t count) noexcept { end_ += count; }

 private:
  static constexpr std::size_t kFirst = std::size_t{4} * 1024;

  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace stint::http
