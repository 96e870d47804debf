// Names of reservations: unique over all processes that share a store.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>

#include "base/entropy.h"

namespace stint::base {

// 128 bits: a random half that names the generator, and a running number.
struct Id {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  friend auto operator<=>(const Id&, const Id&) = default;
};

struct IdHash {
  [[nodiscard]] std::size_t operator()(const Id& id) const noexcept {
    return static_cast<std::size_t>(id.high ^ (id.low * 0x9e3779b97f4a7c15U));
  }
};

// Thread rule: any thread.
class IdGenerator {
 public:
  explicit IdGenerator(Entropy& entropy) : high_(entropy.next()) {}

  [[nodiscard]] Id next() noexcept {
    return Id{high_, low_.fetch_add(1, std::memory_order_relaxed)};
  }

 private:
  std::uint64_t high_;
  std::atomic<std::uint64_t> low_{1};
};

}  // namespace stint::base
