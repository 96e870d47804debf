#include "redis_plan.h"

#include <algorithm>
#include <utility>

#include "redis/ring.h"
#include "redis/single.h"

namespace stint::app {

std::expected<redis::ServerAddress, std::string> RedisPlan::address_of(
    const config::Redis& redis, const std::string& key, const std::string& url) const {
  auto address = redis::parse_url(url);
  if (!address) return std::unexpected("ratelimit.redis." + key + ": " + address.error());
  // What the URL does not say, its neighbours may.
  if (address->username.empty()) address->username = redis.username;
  if (address->password.empty()) address->password = redis.password;
  if (address->database == 0) address->database = static_cast<std::uint32_t>(redis.database);
  return address;
}

std::expected<std::shared_ptr<const HashRing>, std::string> RedisPlan::ring_of(
    const config::Redis& redis, const std::string& key, const std::vector<config::Shard>& shards) {
  const std::string path = "ratelimit.redis." + key + ": ";
  auto ring = HashRing::create(redis.virtual_nodes);
  if (!ring) return std::unexpected(path + ring.error().message);
  for (const config::Shard& shard : shards) {
    auto address = address_of(redis, key, shard.url);
    if (!address) return std::unexpected(std::move(address.error()));
    std::string name = shard.name.empty() ? redis::to_string(*address) : shard.name;
    if (auto added = ring->add_node(name, shard.weight); !added) {
      return std::unexpected(path + name + ": " + added.error().message);
    }
    // A shard that is in both rings is the present one, wherever it was before.
    if (std::ranges::find(servers_, name, &Server::name) != servers_.end()) continue;
    servers_.push_back({std::move(name), std::move(*address)});
  }
  return std::make_shared<const HashRing>(std::move(*ring));
}

std::expected<std::shared_ptr<const RedisPlan>, std::string> RedisPlan::create(
    const config::Redis& redis) {
  const std::shared_ptr<RedisPlan> plan(new RedisPlan);
  plan->timeout_ = redis.timeout;
  plan->handover_ = redis.handover;
  if (redis.mode == config::RedisMode::ring) {
    auto ring = plan->ring_of(redis, "shards", redis.shards);
    if (!ring) return std::unexpected(std::move(ring.error()));
    plan->ring_ = std::move(*ring);
    plan->description_ = "redis ring of " + std::to_string(plan->ring_->size());
    if (!redis.previous.empty()) {
      auto previous = plan->ring_of(redis, "previous", redis.previous);
      if (!previous) return std::unexpected(std::move(previous.error()));
      plan->previous_ = std::move(*previous);
    }
  } else {
    auto address = plan->address_of(redis, "url", redis.url);
    if (!address) return std::unexpected(std::move(address.error()));
    std::string name = redis::to_string(*address);
    plan->description_ = "redis " + name;
    plan->servers_.push_back({std::move(name), std::move(*address)});
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
