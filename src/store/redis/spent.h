// What was counted in this process while Redis was away, in the form in which Redis is told of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/id.h"
#include "limit/limit_set.h"
#include "stint/time.h"

namespace stint::store {

struct SpentEntry {
  base::Id id;
  std::int64_t cost = 0;
  TimePoint at{};

  friend bool operator==(const SpentEntry&, const SpentEntry&) = default;
};

struct SpentLease {
  base::Id id;
  TimePoint expiry{};

  friend bool operator==(const SpentLease&, const SpentLease&) = default;
};

// What was spent of one limit and still counts. Which members are used depends on the algorithm:
//   fixed_window    `amount` in the window that starts at `window`
//   sliding_window  the same, and `previous` in the window before it
//   token_bucket    `amount`: what is to be taken from the bucket now; what the bucket has
//                   regained since it was spent is left out
//   sliding_log     `log`
//   concurrency     `leases`
struct SpentLimit {
  TimePoint window{};
  std::int64_t amount = 0;
  std::int64_t previous = 0;
  std::vector<SpentEntry> log{};
  std::vector<SpentLease> leases{};

  [[nodiscard]] bool empty() const noexcept {
    return amount == 0 && previous == 0 && log.empty() && leases.empty();
  }
  friend bool operator==(const SpentLimit&, const SpentLimit&) = default;
};

// What was spent of one bucket: one entry of `spent` for each of `limits`, in their order.
struct SpentBucket {
  std::string key;
  std::string text;
  limit::LimitSetPtr limits;
  std::vector<SpentLimit> spent;
  // For LocalCounters::restore.
  std::vector<std::uint64_t> generations;
  std::uint64_t begun = 0;
};

}  // namespace stint::store
