// What holds for a policy while its counters cannot be reached.
#pragma once

#include <cstdint>

namespace stint {

// Without effect where counters are in memory, which can always be reached.
enum class OnStoreError : std::uint8_t {
  // Counted in this process, against its share of what was left when the store was last heard.
  local,
  // Counted in this process, against the whole quota.
  local_full,
  // Admitted, not counted.
  allow,
  // Undecided: the caller is told that nothing can be said (the gateway answers 503).
  deny,
};

}  // namespace stint
