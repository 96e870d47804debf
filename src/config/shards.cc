#include "config/shards.h"

#include <cstddef>
#include <utility>

namespace stint::config {

std::string RedisShard::address() const {
  const bool v6 = server.host.contains(':');
  return (v6 ? "[" + server.host + "]" : server.host) + ":" + std::to_string(server.port) + "/" +
         std::to_string(server.database.value_or(0));
}

RedisShard complete(const Shard& shard, const Redis& redis) {
  RedisShard completed{.name = shard.name, .weight = shard.weight};
  if (auto url = parse_redis_url(shard.url)) completed.server = std::move(*url);
  RedisUrl& server = completed.server;
  if (server.username.empty()) server.username = redis.username;
  if (server.password.empty()) server.password = redis.password;
  if (!server.database) server.database = redis.database;
  if (completed.name.empty()) completed.name = completed.address();
  return completed;
}

std::vector<RedisShard> complete(const std::vector<Shard>& shards, const Redis& redis) {
  std::vector<RedisShard> completed;
  completed.reserve(shards.size());
  for (const Shard& shard : shards) completed.push_back(complete(shard, redis));
  return completed;
}

std::vector<RedisShard> shards_of(const Redis& redis) {
  switch (redis.mode) {
    case RedisMode::single:
      return {complete(Shard{.name = {}, .url = redis.url}, redis)};
    case RedisMode::ring:
      return complete(redis.shards, redis);
    case RedisMode::sentinel:
    case RedisMode::cluster:
      break;
  }
  return {};
}

std::vector<RedisShard> previous_shards_of(const Redis& redis) {
  return complete(redis.previous, redis);
}

Result<HashRing> ring_of(const std::vector<RedisShard>& shards, int virtual_nodes) {
  auto ring = HashRing::create(virtual_nodes);
  for (const RedisShard& shard : shards) {
    if (!ring) break;
    if (auto added = ring->add_node(shard.name, shard.weight); !added) {
      return std::unexpected(std::move(added.error()));
    }
  }
  return ring;
}

std::optional<std::string> check_shard_name(std::string_view text) {
  const bool good = !text.empty() && text.size() <= HashRing::kMaxName;
  return good ? std::nullopt : std::optional<std::string>("must have 1 to 255 bytes");
}

Scalar<Shard> parse_shard(std::string_view text) {
  Shard shard;
  const std::size_t equals = text.find('=');
  if (equals != std::string_view::npos && equals < text.find("://")) {
    shard.name = text.substr(0, equals);
    text.remove_prefix(equals + 1);
    if (shard.name.empty()) return std::unexpected<std::string>("has no name before the =");
    if (check_shard_name(shard.name)) {
      return std::unexpected<std::string>("has a name of more than 255 bytes");
    }
  }
  if (auto wrong = check_redis_url(text)) return std::unexpected(std::move(*wrong));
  shard.url = text;
  return shard;
}

}  // namespace stint::config
