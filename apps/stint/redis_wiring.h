// The store in Redis as the configuration asks for it.
#pragma once

#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "config/bootstrap.h"
#include "gateway/store_health.h"
#include "gateway/store_metrics.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "redis_plan.h"
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
  // The longest window of any limit: for how long it takes to see the last of what was counted
  // elsewhere. Before `add_loop` and `reload`.
  void set_longest_window(Duration window) noexcept { longest_window_ = window; }

  // Whether every server can be reached and used now: blocks for up to two seconds for each. Error:
  // why not.
  [[nodiscard]] std::expected<void, std::string> check() const;
  // Other servers, or other ways to them, from soon on. Error: what cannot be used; nothing has
  // changed. After the loops were started.
  [[nodiscard]] std::expected<void, std::string> reload(const config::Redis& redis);

  [[nodiscard]] gateway::StoreHealth health() const;
  // "redis host:6379/0, shared by all replicas": for the log.
  [[nodiscard]] std::string description() const;

 private:
  explicit RedisWiring(observe::Metrics& metrics) : metrics_(metrics) {}
  [[nodiscard]] store::RedisStoreHooks hooks(const observe::Log& log);
  [[nodiscard]] std::expected<void, std::string> check(const RedisPlan::Server& server) const;
  [[nodiscard]] store::RedisStore::MakeTopology make() const;
  // Shown from now on, until the store has the server no more.
  void show(const RedisPlan& plan);
  void set_degraded(std::string_view server, bool degraded) const;

  observe::Metrics& metrics_;
  std::shared_ptr<const RedisPlan> plan_;
  Duration longest_window_ = std::chrono::hours{1};
  mutable base::Mutex mutex_;
  std::map<std::string, gateway::ShardMetrics, std::less<>> shards_ STINT_GUARDED_BY(mutex_);
  std::shared_ptr<store::RedisStore> store_;
};

}  // namespace stint::app
