// How buckets lie in Redis: the names of their keys, and what the key of the counters holds.
// lua/decide.lua writes them; docs/redis.md describes them for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "limit/spec.h"
#include "stint/time.h"

namespace stint::store {

// "<key_prefix>:rl:1:", what all keys begin with; 1 is the version of the layout.
[[nodiscard]] std::string keys_begin(std::string_view key_prefix);

// `begin`: as keys_begin. All keys of a bucket have the same hash tag, its bucket key.
void append_counters_key(std::string& out, std::string_view begin, std::string_view bucket);
void append_leases_key(std::string& out, std::string_view begin, std::string_view bucket);
void append_log_key(std::string& out, std::string_view begin, std::string_view bucket,
                    Duration window);
// The bucket key of a key of counters; nothing if it is another one.
[[nodiscard]] std::optional<std::string_view> bucket_of(std::string_view begin,
                                                        std::string_view counters_key);

// What names a limit, in one number: window in microseconds * 64 + unit * 8 + algorithm.
[[nodiscard]] std::int64_t code_of(const limit::LimitName& name) noexcept;
[[nodiscard]] std::optional<limit::LimitName> name_of(std::int64_t code) noexcept;

// A bucket as its key of counters holds it.
struct StoredBucket {
  struct Stored {
    limit::Spec spec;
    // By algorithm: fixed_window start, used; sliding_window start, current, previous; sliding_log
    // used, count, last; token_bucket last, level, rest, fills; concurrency nothing.
    std::int64_t numbers[4] = {};
  };
  std::string text;  // empty: the bucket key is the text
  std::vector<Stored> limits;
};
// Nothing if it is no bucket of ours.
[[nodiscard]] std::optional<StoredBucket> parse_bucket(std::string_view bytes);

}  // namespace stint::store
