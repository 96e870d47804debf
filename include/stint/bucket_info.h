// Buckets as a listing shows them.
#pragma once

#include <cstddef>
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
    // How the limit stands, as LimitStatus says it. Quota and capacity (Limit::capacity) are those
    // that the bucket was last charged with: what a reload changed shows from the next charge on.
    std::int64_t quota = 0;
    std::int64_t capacity = 0;
    std::int64_t remaining = 0;
    Duration reset{0};
  };
  std::string key;  // the bucket key in full, cut after 1,024 bytes
  std::vector<Counter> counters;
};

// A part of the store that could not be asked: what it holds is missing from the answer.
struct Unreached {
  std::string where;  // the name of the server
  std::string why;    // for a person
};

struct BucketPage {
  std::vector<BucketInfo> buckets;
  // Give it to the next call. 0: this was the last page.
  std::uint64_t next = 0;
  // Not empty: the listing is not complete. It goes on with the other parts, and does not come
  // back to these. Counters in this process can always be reached.
  std::vector<Unreached> unreached{};
};

// What a reset has done.
struct ResetSummary {
  std::size_t removed = 0;             // buckets
  std::vector<Unreached> unreached{};  // not empty: what matches there may still be there
};

}  // namespace stint
