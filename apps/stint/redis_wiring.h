// The store in Redis as the configuration asks for it.
#pragma once

#include <expected>
#include <memory>
#include <string>

#include "config/bootstrap.h"
#include "gateway/store_health.h"
#include "gateway/store_metrics.h"
#include "net/connect.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "redis/url.h"
#include "store/redis/redis_store.h"

namespace stint::app {

// Thread rule: as RedisStore; the constructor before anything runs.
class RedisWiring {
 public:
  // Null: the counters are in memory. Error: what of the configuration cannot be used.
  // `metrics` and `log` must outlive it.
  [[nodiscard]] static std::expected<std::unique_ptr<RedisWiring>, std::string> create(
      const config::RateLimit& ratelimit, observe::Metrics& metrics, const observe::Log& log);

  [[nodiscard]] const std::shared_ptr<store::RedisStore>& store() const noexcept { return store_; }
  void add_loop(net::EventLoop& loop);

  // Whether the server can be reached and used now: blocks for up to two seconds. Error: why not.
  [[nodiscard]] std::expected<void, std::string> check() const;

  [[nodiscard]] gateway::StoreHealth health() const;
  // "redis host:6379/0, shared by all replicas": for the log.
  [[nodiscard]] std::string description() const;

 private:
  RedisWiring() = default;
  [[nodiscard]] redis::ServerOptions complete(redis::ServerOptions server) const;

  redis::ServerAddress address_;
  std::shared_ptr<const net::TlsClientContext> tls_;
  std::unique_ptr<gateway::ShardMetrics> metrics_;
  std::shared_ptr<store::RedisStore> store_;
};

}  // namespace stint::app
