#include "admin_wiring.h"

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "config/shards.h"
#include "net/listener.h"
#include "redis/cluster.h"
#include "stint/hash_ring.h"

namespace stint::app {
namespace {

constexpr std::size_t kMostBody = std::size_t{64} * 1024;

std::string_view mode_of(config::RedisMode mode) {
  switch (mode) {
    case config::RedisMode::single:
      return "single";
    case config::RedisMode::sentinel:
      return "sentinel";
    case config::RedisMode::cluster:
      return "cluster";
    case config::RedisMode::ring:
      return "ring";
  }
  std::unreachable();
}

// The servers of the configuration in force, and the store that counts there.
class RedisPlaces final : public admin::Places {
 public:
  // Both must outlive it. `redis`: of a good configuration, maybe another one at each call.
  RedisPlaces(const std::optional<config::Redis>& redis, const store::RedisStore& store)
      : redis_(redis), store_(store) {}

  [[nodiscard]] admin::Ring ring() const override {
    const Known& known = now();
    const bool several = known.redis.mode == config::RedisMode::ring;
    admin::Ring ring{.backend = "redis",
                     .mode = std::string(mode_of(known.redis.mode)),
                     .virtual_nodes = several ? known.redis.virtual_nodes : 0};
    const auto shares = known.ring.distribution();
    for (const config::RedisShard& shard : known.shards) {
      admin::Shard shown{.name = shard.name, .address = shard.address(), .weight = shard.weight};
      for (const HashRing::Share& share : shares) {
        if (share.name != shard.name) continue;
        shown.points = several ? share.points : 0;
        shown.share = share.share;
      }
      ring.shards.push_back(std::move(shown));
    }
    if (known.shards.empty()) add_found(ring);
    return ring;
  }

  [[nodiscard]] std::vector<admin::ShardHealth> health() const override {
    std::vector<admin::ShardHealth> all;
    for (const store::RedisTargetHealth& target : store_.health()) {
      all.push_back({target.name, target.degraded, target.text, target.since});
    }
    return all;
  }

  [[nodiscard]] std::string shard_of(std::string_view bucket_key) const override {
    const Known& known = now();
    if (known.shards.empty()) return store_.target_of(bucket_key);
    return std::string(known.ring.node(bucket_key).value_or(""));
  }

 private:
  // The servers that Sentinels or nodes of a Cluster have named.
  void add_found(admin::Ring& ring) const {
    const bool cluster = ring.mode == "cluster";
    for (const store::RedisTargetHealth& target : store_.health()) {
      if (cluster && target.name == redis::Cluster::kNowhere) continue;
      admin::Shard shown{.name = target.name};
      if (cluster) {
        shown.address = target.name;
        shown.share.reset();
      }
      ring.shards.push_back(std::move(shown));
    }
  }

  struct Known {
    explicit Known(const config::Redis& of)
        : redis(of),
          shards(config::shards_of(of)),
          ring(config::ring_of(shards, of.virtual_nodes).value()) {}
    config::Redis redis;
    std::vector<config::RedisShard> shards;
    HashRing ring;
  };

  const Known& now() const {
    if (!known_ || known_->redis != *redis_) known_.emplace(*redis_);
    return *known_;
  }

  const std::optional<config::Redis>& redis_;
  const store::RedisStore& store_;
  mutable std::optional<Known> known_;
};

}  // namespace

std::expected<std::unique_ptr<AdminWiring>, std::string> AdminWiring::create(
    net::EventLoop& loop, const config::Bootstrap& bootstrap, const admin::Program& program,
    const RedisWiring* redis, store::RateStore& store, const observe::Log& log) {
  const std::string& addr = bootstrap.admin.addr;
  const auto cannot = [&](const net::NetError& error) {
    const bool taken = error.code == net::NetErrc::address_in_use;
    return std::unexpected(addr + ": " + (taken ? "address already in use" : error.text));
  };
  const auto endpoint = net::parse_endpoint(addr);
  if (!endpoint) return std::unexpected("admin.addr: " + endpoint.error().text);
  if (const auto port = net::probe_port(*endpoint); !port) return cannot(port.error());
  auto listener = net::Listener::open(loop, *endpoint);
  if (!listener) return cannot(listener.error());

  std::unique_ptr<AdminWiring> wiring(new AdminWiring);
  if (redis != nullptr) {
    wiring->places_ = std::make_unique<RedisPlaces>(bootstrap.ratelimit.redis, *redis->store());
  } else {
    wiring->places_ = std::make_unique<admin::InMemory>();
  }
  wiring->admin_ =
      std::make_unique<admin::Admin>(loop, bootstrap.admin, program, *wiring->places_, store, log);
  http::ServerLimits limits;
  limits.body_bytes = kMostBody;
  wiring->server_ =
      std::make_unique<http::Server>(loop, std::move(*listener), limits,
                                     [handler = wiring->admin_.get()](http::Exchange& exchange) {
                                       return handler->handle(exchange);
                                     });
  wiring->server_->on_exception = [&log](const std::string& what) {
    log.error("a request failed inside", {{"what", what}});
  };
  log.info("the admin API listens",
           {{"addr", addr}, {"keys", !bootstrap.admin.admin_keys.empty()}});
  return wiring;
}

net::Task<void> AdminWiring::serve() { co_await server_->serve(); }
net::Task<void> AdminWiring::stop() { co_await server_->stop(); }

}  // namespace stint::app
