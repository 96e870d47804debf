// Sentinels, and nodes of a Redis Cluster: the servers of a configuration that are asked for
// others.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/address.h"
#include "config/bootstrap.h"
#include "config/reader.h"

namespace stint::config {

struct RedisNodes {
  std::vector<RedisUrl> asked{};  // each with how to log in there; database unset
  // Of the servers that they name: how to log in, the database, whether by TLS; no host.
  RedisUrl data{};
};
// Of a good configuration of mode sentinel.
[[nodiscard]] RedisNodes sentinels_of(const Redis& redis);
// Of a good configuration of mode cluster.
[[nodiscard]] RedisNodes nodes_of(const Redis& redis);

// What is wrong with a node: "host:port" or a URL.
[[nodiscard]] std::optional<std::string> check_node(std::string_view text);

// The keys that only Sentinels have; after those of `tls`, from which sentinel_tls takes what it
// does not say itself.
void read_sentinel_keys(MapReader& reader, Redis& redis);
// Sentinels that are named twice would be counted twice; nodes are named once, too.
void check_asked_once(MapReader& reader, const Redis& redis);
// What of the nodes and the keys beside them cannot be, if the mode is cluster.
void check_nodes(MapReader& reader, const Redis& redis);

}  // namespace stint::config
