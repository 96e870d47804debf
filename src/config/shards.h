// The Redis servers of a configuration, and by what name and weight each is known on the ring.
// Everything that needs them takes them from here, so that all agree where a bucket lives.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/address.h"
#include "config/bootstrap.h"
#include "stint/hash_ring.h"

namespace stint::config {

struct RedisShard {
  // What tells it from others: the name it was given, else its address. Never its position.
  std::string name{};
  double weight = 1.0;
  // What the URL does not say (user, password, database) is taken from the keys beside it.
  RedisUrl server{};

  // "host:port/database": for people and logs, no secrets.
  [[nodiscard]] std::string address() const;
};

// The servers as they stand in the file: those of mode ring, or the one of mode single. Of a good
// configuration no two have the same name. Empty for the other modes, whose servers nobody knows
// before asking.
[[nodiscard]] std::vector<RedisShard> shards_of(const Redis& redis);
// Those of `previous`.
[[nodiscard]] std::vector<RedisShard> previous_shards_of(const Redis& redis);
// Others, as if they stood there. Of a URL that is no good the server has no host.
[[nodiscard]] RedisShard complete(const Shard& shard, const Redis& redis);
[[nodiscard]] std::vector<RedisShard> complete(const std::vector<Shard>& shards,
                                               const Redis& redis);

// The ring of these. Errors: those of HashRing::create and add_node.
[[nodiscard]] Result<HashRing> ring_of(const std::vector<RedisShard>& shards, int virtual_nodes);

// What is wrong with the name of a shard; nothing if it is good.
[[nodiscard]] std::optional<std::string> check_shard_name(std::string_view text);
// "name=url" or a URL; the name ends before the URL begins. An error repeats no password.
[[nodiscard]] Scalar<Shard> parse_shard(std::string_view text);

}  // namespace stint::config
