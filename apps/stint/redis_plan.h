// The servers that ratelimit.redis asks for.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/bootstrap.h"
#include "config/shards.h"
#include "net/connect.h"
#include "redis/url.h"
#include "stint/hash_ring.h"
#include "store/redis/redis_store.h"

namespace stint::app {

// Immutable, and shared by the topologies of all event loops. Thread rule: any thread.
class RedisPlan {
 public:
  // Error: what cannot be used.
  [[nodiscard]] static std::expected<std::shared_ptr<const RedisPlan>, std::string> create(
      const config::Redis& redis);

  struct Server {
    std::string name;  // as configured; of one without a name "host:port/database"
    redis::ServerAddress address;
  };
  // Those of the ring before the last change, too.
  [[nodiscard]] const std::vector<Server>& servers() const noexcept { return servers_; }
  // "redis host:6379/0", "redis ring of 3": for the log.
  [[nodiscard]] const std::string& description() const noexcept { return description_; }
  [[nodiscard]] Duration timeout() const noexcept { return timeout_; }

  // What is the same for each server: its address, how to log in, what it must prove.
  [[nodiscard]] redis::ServerOptions complete(redis::ServerOptions options,
                                              const Server& server) const;
  // Makes the topology for one event loop. `handover`: for how long buckets are brought from where
  // they were before the last change, if the configuration does not say.
  [[nodiscard]] std::unique_ptr<redis::Topology> make(net::EventLoop& loop,
                                                      const store::RedisStore::Prepare& prepare,
                                                      Duration handover) const;

 private:
  RedisPlan() = default;
  // Of shards that stand at `key`, whose servers are noted.
  [[nodiscard]] std::expected<std::shared_ptr<const HashRing>, std::string> ring_of(
      std::string_view key, const std::vector<config::RedisShard>& shards, int virtual_nodes);
  void note(const config::RedisShard& shard);

  std::vector<Server> servers_;
  std::shared_ptr<const HashRing> ring_;      // null: one server
  std::shared_ptr<const HashRing> previous_;  // null: no change is under way
  std::optional<Duration> handover_;
  std::shared_ptr<const net::TlsClientContext> tls_;
  Duration timeout_{0};
  std::string description_;
};

}  // namespace stint::app
