// Listing and resetting buckets of one server, a bounded piece at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "redis/target.h"
#include "store/rate_store.h"
#include "store/redis/scripts.h"

namespace stint::store {

// Where a sweep goes on: 48 bits of SCAN's cursor, and how many of the keys that it answers were
// dealt with before. Only where a page is smaller than what SCAN gives at least, the second is
// not 0; then a key that comes or goes between two calls may shift the others by one.
struct SweepCursor {
  std::uint64_t scan = 0;
  std::uint8_t skip = 0;
};

struct SweptBucket {
  std::string key;  // bucket key
  BucketInfo info;
  std::vector<Duration> logs;  // windows of its logs, which have keys of their own
};

struct SweptPage {
  std::vector<SweptBucket> buckets;
  SweepCursor next;
  bool more = false;
  std::string error;  // not empty: the server could not answer
  // A bucket that it had is another server's, or on its way there: it is not among these.
  struct Moved {
    std::string key;
    redis::CallError error;
  };
  std::optional<Moved> moved;
};

// Which buckets may be in one command, by their key: those for which it says the same. Empty: all.
using ReachOf = std::function<std::uint64_t(std::string_view bucket_key)>;

struct SweepRequest {
  std::string keys_begin;
  std::string pattern;
  SweepCursor from{};
  std::size_t page_size = 100;  // at most so many buckets
  Duration deadline{0};         // of each command
  ReachOf reach_of{};
};

// Finds buckets that match and are not spent. `done` exactly once, on the target's thread. All
// must outlive it.
void sweep(redis::Target& target, const Scripts& scripts, SweepRequest request,
           std::move_only_function<void(SweptPage)> done);

// Removes all keys of the buckets; `done` is told how many of them were there, and why this is not
// known if the server could not answer.
void remove_buckets(redis::Target& target, std::string_view keys_begin,
                    const std::vector<SweptBucket>& buckets, const ReachOf& reach_of,
                    Duration deadline,
                    std::move_only_function<void(std::size_t removed, std::string error)> done);

}  // namespace stint::store
