// `stint ring --config FILE`: how the buckets are spread over the Redis servers of a
// configuration, and what a change of the servers would move.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/fault.h"

namespace stint::cli {

struct RingChange {
  std::vector<std::string> with{};     // "[name=]url[,weight]": shards that come
  std::vector<std::string> without{};  // names of shards that go; one may come again
};

struct RingResult {
  int exit_code = 0;  // 0: as asked, 1: the configuration or the change is no good
  std::string text;   // lines for people, each with its line end
};

// Reads the bootstrap file, if one is named, overridden from the environment. Asks no server.
// Shows neither users nor passwords.
[[nodiscard]] RingResult ring(const std::optional<std::string>& file,
                              const config::Environment& environment, const RingChange& change);

}  // namespace stint::cli
