// Live buckets: listed and reset through the contract of the store, a bounded piece at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "admin/json.h"
#include "admin/places.h"
#include "config/snapshot.h"
#include "net/event_loop.h"
#include "net/task.h"
#include "stint/bucket_info.h"
#include "store/rate_store.h"

namespace stint::admin {

struct Sweep {
  std::string pattern;
  std::uint64_t cursor = 0;  // 0: from the beginning
  std::size_t limit = 100;   // of buckets that are listed; 1 or more
  // For one call of the store: far beyond any time-out of one, which completes its calls by itself.
  Duration store_wait = std::chrono::seconds{10};
};

// As the store's calls of these names, but several of them: until there is something to show (half
// of `limit`, at least), all is done, or it was asked 64 times or for a second. What a store that
// does not answer leaves open is told as unreached. `loop`, `store`: must outlive the task, and
// `loop` the calls to the store.
[[nodiscard]] net::Task<BucketPage> list_buckets(net::EventLoop& loop, store::RateStore& store,
                                                 Sweep sweep);
[[nodiscard]] net::Task<store::ResetPage> reset_buckets(net::EventLoop& loop,
                                                        store::RateStore& store, Sweep sweep);

// `snapshot`: whose policies the buckets may be of; may be null.
[[nodiscard]] json::object listing(const BucketPage& page, const Places& places,
                                   const config::Snapshot* snapshot);
[[nodiscard]] json::object reset_result(const store::ResetPage& page);

}  // namespace stint::admin
