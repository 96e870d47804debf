#include "redis_plan.h"

#include <algorithm>
#include <utility>

#include "redis/ring.h"
#include "redis/single.h"

namespace stint::app {

namespace {

redis::ServerAddress address_of(const config::RedisShard& shard) {
  const config::RedisUrl& server = shard.server;
  return {.host = server.host,
          .port = server.port,
          .username = server.username,
          .password = server.password,
          .database = static_cast<std::uint32_t>(server.database.value_or(0)),
          .tls = server.tls};
}

}  // namespace

// A shard that is in both rings is the present one, wherever it was before.
void RedisPlan::note(const config::RedisShard& shard) {
  if (std::ranges::find(servers_, shard.name, &Server::name) != servers_.end()) return;
  servers_.push_back({shard.name, address_of(shard)});
}

std::expected<std::shared_ptr<const HashRing>, std::string> RedisPlan::ring_of(
    std::string_view key, const std::vector<config::RedisShard>& shards, int virtual_nodes) {
  auto ring = config::ring_of(shards, virtual_nodes);
  if (!ring) {
    return std::unexpected("ratelimit.redis." + std::string(key) + ": " + ring.error().message);
  }
  for (const config::RedisShard& shard : shards) note(shard);
  return std::make_shared<const HashRing>(std::move(*ring));
}

std::expected<std::shared_ptr<const RedisPlan>, std::string> RedisPlan::create(
    const config::Redis& redis) {
  const std::shared_ptr<RedisPlan> plan(new RedisPlan);
  plan->timeout_ = redis.timeout;
  plan->handover_ = redis.handover;
  const std::vector<config::RedisShard> shards = config::shards_of(redis);
  if (redis.mode == config::RedisMode::ring) {
    auto ring = plan->ring_of("shards", shards, redis.virtual_nodes);
    if (!ring) return std::unexpected(std::move(ring.error()));
    plan->ring_ = std::move(*ring);
    plan->description_ = "redis ring of " + std::to_string(plan->ring_->size());
    if (!redis.previous.empty()) {
      auto previous =
          plan->ring_of("previous", config::previous_shards_of(redis), redis.virtual_nodes);
      if (!previous) return std::unexpected(std::move(previous.error()));
      plan->previous_ = std::move(*previous);
    }
  } else {
    plan->note(shards.front());
    plan->description_ = "redis " + shards.front().name;
  }
  const bool tls =
      std::ranges::any_of(plan->servers_, [](const Server& server) { return server.address.tls; });
  if (!tls) return plan;
  auto context = net::TlsClientContext::create({.ca_file = redis.tls.ca_file,
                                                .cert_file = redis.tls.cert_file,
                                                .key_file = redis.tls.key_file,
                                                .verify = redis.tls.verify});
  if (!context) return std::unexpected("ratelimit.redis.tls: " + context.error().text);
  plan->tls_ = std::move(*context);
  return plan;
}

redis::ServerOptions RedisPlan::complete(redis::ServerOptions options, const Server& server) const {
  options.address = server.address;
  if (server.address.tls) options.tls = tls_;
  return options;
}

std::unique_ptr<redis::Topology> RedisPlan::make(net::EventLoop& loop,
                                                 const store::RedisStore::Prepare& prepare,
                                                 Duration handover) const {
  if (ring_ == nullptr) {
    const Server& server = servers_.front();
    return std::make_unique<redis::Single>(loop, complete(prepare(server.name), server));
  }
  redis::RingOptions options;
  options.ring = ring_;
  options.previous = previous_;
  options.handover = handover_.value_or(handover);
  for (const Server& server : servers_) {
    options.servers.push_back(complete(prepare(server.name), server));
  }
  return std::make_unique<redis::Ring>(loop, std::move(options));
}

}  // namespace stint::app
