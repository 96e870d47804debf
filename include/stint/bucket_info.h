// Buckets as a listing shows them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stint/limit.h"
#include "stint/time.h"

namespace stint {

// One bucket, as a listing shows it.
struct BucketInfo {
  struct Counter {
    Unit unit{};
    Algorithm algorithm{};
    Duration window{0};
    // Used in the current window (of a sliding log: in the last one); leases in flight; the
    // level of a token bucket, below 0 when it owes.
    std::int64_t value = 0;
  };
  std::string key;  // the bucket key in full, cut after 1,024 bytes
  std::vector<Counter> counters;
};

struct BucketPage {
  std::vector<BucketInfo> buckets;
  // Give it to the next call. 0: this was the last page.
  std::uint64_t next = 0;
};

}  // namespace stint
