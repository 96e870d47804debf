#include "redis_deployment.h"

#include <algorithm>
#include <utility>

#include "config/redis_nodes.h"
#include "config/shards.h"

namespace stint::app {
namespace {

constexpr Duration kLongestHandover = std::chrono::hours{1};

redis::ServerAddress address_of(const config::RedisUrl& server) {
  return {.host = server.host,
          .port = server.port,
          .username = server.username,
          .password = server.password,
          .database = static_cast<std::uint32_t>(server.database.value_or(0)),
          .tls = server.tls};
}

// The ring of the shards that stand at `key`. Notes those that are not known yet: a shard that is
// in both rings is the present one, wherever it was before, and a server is one server by whatever
// name: what it counts stays where it is.
std::expected<std::shared_ptr<const HashRing>, std::string> ring_of(
    const std::string& key, const std::vector<config::RedisShard>& shards, int virtual_nodes,
    redis::RingDeployment& deployment) {
  auto ring = config::ring_of(shards, virtual_nodes);
  if (!ring) return std::unexpected("ratelimit.redis." + key + ": " + ring.error().message);
  std::vector<redis::RingDeployment::Shard>& known = deployment.shards;
  const std::size_t present = known.size();
  for (const config::RedisShard& shard : shards) {
    using Shard = redis::RingDeployment::Shard;
    if (std::ranges::find(known, shard.name, &Shard::name) != known.end()) continue;
    const redis::ServerAddress address = address_of(shard.server);
    const auto same = std::find_if(
        known.begin(), known.begin() + static_cast<std::ptrdiff_t>(present),
        [&address](const Shard& one) { return to_string(one.address) == to_string(address); });
    if (same != known.begin() + static_cast<std::ptrdiff_t>(present)) {
      deployment.aliases.emplace(shard.name, same->name);
    } else {
      known.push_back({shard.name, address});
    }
  }
  return std::make_shared<const HashRing>(std::move(*ring));
}

std::expected<redis::RingDeployment, std::string> ring_deployment(const config::Redis& redis) {
  redis::RingDeployment deployment;
  auto ring = ring_of("shards", config::shards_of(redis), redis.virtual_nodes, deployment);
  if (!ring) return std::unexpected(std::move(ring.error()));
  deployment.ring = std::move(*ring);
  if (redis.previous.empty()) return deployment;
  auto previous =
      ring_of("previous", config::previous_shards_of(redis), redis.virtual_nodes, deployment);
  if (!previous) return std::unexpected(std::move(previous.error()));
  deployment.previous = std::move(*previous);
  return deployment;
}

std::vector<redis::ServerAddress> addresses_of(const std::vector<config::RedisUrl>& servers) {
  std::vector<redis::ServerAddress> addresses;
  addresses.reserve(servers.size());
  for (const config::RedisUrl& server : servers) addresses.push_back(address_of(server));
  return addresses;
}

// All modes but the ring: what is behind the address is found out later.
decltype(redis::Deployment::servers) one_address(const config::Redis& redis) {
  switch (redis.mode) {
    case config::RedisMode::sentinel: {
      const config::RedisNodes nodes = config::sentinels_of(redis);
      return redis::SentinelDeployment{.sentinels = addresses_of(nodes.asked),
                                       .master_name = redis.master_name,
                                       .master = address_of(nodes.data)};
    }
    case config::RedisMode::cluster: {
      const config::RedisNodes nodes = config::nodes_of(redis);
      return redis::ClusterDeployment{.nodes = addresses_of(nodes.asked),
                                      .login = address_of(nodes.data)};
    }
    case config::RedisMode::single:
    case config::RedisMode::ring:
      break;
  }
  return redis::SingleDeployment{address_of(config::shards_of(redis).front().server)};
}

std::expected<std::shared_ptr<const net::TlsClientContext>, std::string> tls_of(
    const std::string& key, const config::ClientTls& from) {
  auto tls = net::TlsClientContext::create({.ca_file = from.ca_file,
                                            .cert_file = from.cert_file,
                                            .key_file = from.key_file,
                                            .verify = from.verify});
  if (!tls) return std::unexpected("ratelimit.redis." + key + ": " + tls.error().text);
  return std::move(*tls);
}

}  // namespace

std::expected<redis::Deployment, std::string> redis_deployment(const config::Redis& redis) {
  redis::Deployment deployment;
  if (redis.mode == config::RedisMode::ring) {
    auto ring = ring_deployment(redis);
    if (!ring) return std::unexpected(std::move(ring.error()));
    deployment.servers = std::move(*ring);
  } else {
    deployment.servers = one_address(redis);
  }
  if (redis::needs_tls(deployment)) {
    auto tls = tls_of("tls", redis.tls);
    if (!tls) return std::unexpected(std::move(tls.error()));
    deployment.tls = std::move(*tls);
  }
  if (redis::needs_sentinel_tls(deployment)) {
    auto tls = tls_of("sentinel_tls", redis.sentinel_tls);
    if (!tls) return std::unexpected(std::move(tls.error()));
    deployment.sentinel_tls = std::move(*tls);
  }
  return deployment;
}

Duration handover_of(const config::Redis& redis, Duration longest_window) noexcept {
  return redis.handover.value_or(std::min(longest_window, kLongestHandover));
}

}  // namespace stint::app
