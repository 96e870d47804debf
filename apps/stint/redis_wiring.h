// The store in Redis as the configuration asks for it.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/entropy.h"
#include "base/mutex.h"
#include "config/bootstrap.h"
#include "gateway/store_health.h"
#include "gateway/store_metrics.h"
#include "observe/distinct.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "redis/deployment.h"
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
  // Of any limit. For hand-overs that begin from now on.
  void set_longest_window(Duration window) noexcept { longest_window_ = window; }

  // Whether every server can be reached and used now: blocks for up to two seconds. Error: why not.
  [[nodiscard]] std::expected<void, std::string> check() const;
  // Other servers, or other ways to them, from soon on. The value: what an operator may not have
  // meant. Error: what cannot be used; nothing has changed. After the loops were started.
  [[nodiscard]] std::expected<std::vector<std::string>, std::string> reload(
      const config::Redis& redis);
  // Logs how servers stand when that has changed, that one is away at most once in ten seconds; and
  // brings the metrics up to date that nobody else does.
  // To be called a few times a second, on one thread.
  void tell();

  [[nodiscard]] gateway::StoreHealth health() const;
  // "redis host:6379/0, shared by all replicas": for the log.
  [[nodiscard]] std::string description() const;

 private:
  RedisWiring(config::Redis redis, observe::Metrics& metrics, const observe::Log& log)
      : redis_(std::move(redis)),
        metrics_(metrics),
        log_(log),
        hash_seed_(base::system_entropy().next()) {}
  [[nodiscard]] store::RedisStoreHooks hooks();
  [[nodiscard]] std::vector<std::string> warnings(const redis::Deployment& next) const;
  [[nodiscard]] store::RedisStore::MakeTopology make();
  // Shown from now on, and for some minutes after the store has the server no more.
  std::shared_ptr<observe::DistinctCounter> show(std::string_view server);
  void set_degraded(std::string_view server, bool degraded) const;
  void show_keys(Duration now);

  // What was logged of a server last, and when.
  struct Logged {
    std::optional<bool> away{};
    std::optional<Duration> trouble_since{};  // it is in trouble, and that was not logged
    std::optional<Duration> away_at{};
  };

  // What is shown of a server.
  struct Shard {
    gateway::ShardMetrics metrics;
    std::shared_ptr<observe::DistinctCounter> keys;
    std::optional<Duration> gone_at{};  // it is no server of ours any more
  };

  config::Redis redis_;
  observe::Metrics& metrics_;
  const observe::Log& log_;
  redis::Deployment deployment_;
  std::string touched_key_;  // the one that `check` asks for
  Duration longest_window_ = std::chrono::hours{1};
  Duration handing_over_until_{0};  // steady time
  std::map<std::string, Logged, std::less<>> logged_;
  Duration keys_shown_at_{0};
  const std::uint64_t hash_seed_;
  mutable base::Mutex mutex_;
  std::map<std::string, Shard, std::less<>> shards_ STINT_GUARDED_BY(mutex_);
  std::shared_ptr<store::RedisStore> store_;
};

}  // namespace stint::app
