// Counts that many threads add to and somebody reads now and then.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/stripe.h"

namespace stint::base {

// Each stripe has a cache line of its own, and a thread keeps to one stripe.
// Thread rule: any thread. A sum taken while others add is between before and after.
template <std::size_t N>
class StripedCounters {
 public:
  void add(std::size_t counter, std::uint64_t amount = 1) noexcept {
    stripes_[stripe_of_this_thread()].counts[counter].fetch_add(amount, std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t sum(std::size_t counter) const noexcept {
    std::uint64_t total = 0;
    for (const Stripe& stripe : stripes_) {
      total += stripe.counts[counter].load(std::memory_order_relaxed);
    }
    return total;
  }

 private:
  struct alignas(64) Stripe {
    std::array<std::atomic<std::uint64_t>, N> counts{};
  };

  std::array<Stripe, kStripes> stripes_{};
};

}  // namespace stint::base
