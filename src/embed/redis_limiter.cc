// stint::create_redis_limiter: a store in Redis with an event loop and a thread of its own.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "admission/limiter_core.h"
#include "base/entropy.h"
#include "base/mutex.h"
#include "net/event_loop.h"
#include "redis/deployment.h"
#include "redis/url.h"
#include "stint/redis.h"
#include "store/redis/redis_store.h"

namespace stint {
namespace {

using admission::LimiterCore;
using store::RedisStore;

// Whether the server was reached once.
class Connected {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    connected_ = true;
    condition_.notify_all();
  }
  void wait_for(Duration span) {
    std::unique_lock lock(mutex_);
    condition_.wait_for(lock, span, [this] { return connected_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool connected_ = false;
};

class Runtime {
 public:
  Runtime(store::RedisStoreOptions options, const redis::Deployment& deployment)
      : renew_every_(options.lease_ttl / 9),
        store_(std::make_shared<RedisStore>(std::move(options), system_clock(),
                                            base::system_entropy())) {
    store_->add_loop(loop_, [&](net::EventLoop& on, const RedisStore::Prepare& prepare) {
      return redis::make_topology(on, deployment, prepare);
    });
  }

  [[nodiscard]] const std::shared_ptr<RedisStore>& store() const noexcept { return store_; }

  // Once. `core` lives until `stop`.
  void start(LimiterCore& core) {
    store_->start(loop_);
    tasks_.start(renew(loop_, core, renew_every_));
    thread_ = std::thread([this] { loop_.run(); });
  }

  // Not on the runtime's own thread.
  void stop() {
    loop_.post([this] {
      tasks_.cancel_all();
      ending_.start(end());
    });
    thread_.join();
  }

 private:
  static net::Task<void> renew(net::EventLoop& loop, LimiterCore& core, Duration pause) {
    for (;;) {
      auto go_on = co_await loop.wait_for(pause);
      if (!go_on) co_return;
      core.renew_leases();
    }
  }
  net::Task<void> end() {
    co_await tasks_.join();
    co_await store_->stop(loop_);
    loop_.post([this] { loop_.stop(); });
  }

  const Duration renew_every_;
  net::EventLoop loop_;
  std::shared_ptr<RedisStore> store_;
  net::TaskGroup tasks_{loop_};
  net::TaskGroup ending_{loop_};  // of what ends the others
  std::thread thread_;
};

Result<void> check(const RedisOptions& redis, const LimiterOptions& options) {
  if (options.max_buckets < 1) return invalid("max_buckets", "must be at least 1");
  if (options.concurrency_ttl < std::chrono::seconds{3} ||
      options.concurrency_ttl > std::chrono::hours{1}) {
    return invalid("concurrency_ttl", "must be between 3 s and 1 h");
  }
  if (options.clock != nullptr) return invalid("clock", "must be null: the time is the server's");
  if (redis.timeout < std::chrono::milliseconds{1}) {
    return invalid("redis.timeout", "must be at least 1 ms");
  }
  if (redis.connect_wait < Duration{0}) {
    return invalid("redis.connect_wait", "must not be negative");
  }
  if (redis.replicas < 1) return invalid("redis.replicas", "must be at least 1");
  // Braces would move the hash tag, and with it the slot.
  if (redis.key_prefix.empty() || redis.key_prefix.size() > 64 ||
      redis.key_prefix.find_first_of("{} ") != std::string::npos) {
    return invalid("redis.key_prefix", "must be 1 to 64 bytes without { } and spaces");
  }
  return {};
}

Result<std::vector<redis::ServerAddress>> addresses_of(const std::vector<std::string>& urls,
                                                       const char* field) {
  std::vector<redis::ServerAddress> addresses;
  for (const std::string& url : urls) {
    auto address = redis::parse_url(url);
    if (!address) return invalid(field, address.error());
    addresses.push_back(std::move(*address));
  }
  return addresses;
}

Result<redis::ClusterDeployment> cluster_of(const RedisOptions& options) {
  if (!options.url.empty()) return invalid("redis.url", "stands beside cluster_nodes");
  if (!options.sentinels.empty()) return invalid("redis.sentinels", "stand beside cluster_nodes");
  auto nodes = addresses_of(options.cluster_nodes, "redis.cluster_nodes");
  if (!nodes) return std::unexpected(std::move(nodes.error()));
  for (const redis::ServerAddress& node : *nodes) {
    if (node.database != 0) {
      return invalid("redis.cluster_nodes", "must have database 0: a Cluster has no other");
    }
  }
  redis::ServerAddress login = nodes->front();
  return redis::ClusterDeployment{.nodes = std::move(*nodes), .login = std::move(login)};
}

Result<redis::Deployment> deployment_of(const RedisOptions& options) {
  redis::Deployment deployment;
  if (!options.cluster_nodes.empty()) {
    auto cluster = cluster_of(options);
    if (!cluster) return std::unexpected(std::move(cluster.error()));
    deployment.servers = std::move(*cluster);
  } else {
    auto address = redis::parse_url(options.url);
    if (!address) return invalid("redis.url", address.error());
    auto sentinels = addresses_of(options.sentinels, "redis.sentinels");
    if (!sentinels) return std::unexpected(std::move(sentinels.error()));
    if (sentinels->empty()) {
      deployment.servers = redis::SingleDeployment{std::move(*address)};
    } else {
      std::string name = address->host;
      deployment.servers = redis::SentinelDeployment{.sentinels = std::move(*sentinels),
                                                     .master_name = std::move(name),
                                                     .master = std::move(*address)};
    }
  }
  if (!redis::needs_tls(deployment) && !redis::needs_sentinel_tls(deployment)) return deployment;
  auto tls = net::TlsClientContext::create({.ca_file = options.tls_ca_file,
                                            .cert_file = options.tls_cert_file,
                                            .key_file = options.tls_key_file,
                                            .verify = options.tls_verify});
  if (!tls) return invalid("redis.tls", tls.error().text);
  deployment.tls = deployment.sentinel_tls = std::move(*tls);
  return deployment;
}

}  // namespace

// What Limiter is a friend of: makes one of a core.
struct admission::MakeLimiter {
  static Limiter of(std::shared_ptr<LimiterCore> core) { return Limiter(std::move(core)); }
};

Result<Limiter> create_redis_limiter(const std::vector<Policy>& policies, const RedisOptions& redis,
                                     LimiterOptions options) {
  if (auto ok = check(redis, options); !ok) return std::unexpected(std::move(ok.error()));
  auto deployment = deployment_of(redis);
  if (!deployment) return std::unexpected(std::move(deployment.error()));
  auto table = policy::Table::create(policies);
  if (!table) return std::unexpected(std::move(table.error()));

  store::RedisStoreOptions store;
  store.key_prefix = redis.key_prefix;
  store.timeout = redis.timeout;
  store.replicas = redis.replicas;
  store.max_buckets = options.max_buckets;
  store.lease_ttl = options.concurrency_ttl;
  store.hooks.on_warning = std::move(options.on_warning);
  const auto connected = std::make_shared<Connected>();
  store.hooks.on_degraded = [connected](std::string_view, bool degraded, std::string_view) {
    if (!degraded) connected->set();
  };
  auto runtime = std::make_shared<Runtime>(std::move(store), *deployment);
  auto core = std::make_unique<LimiterCore>(runtime->store(), std::move(*table), system_clock(),
                                            options.concurrency_ttl, base::system_entropy());
  runtime->start(*core);
  connected->wait_for(redis.connect_wait);
  // The thread calls the core until it has ended.
  std::shared_ptr<LimiterCore> owned(core.release(), [runtime](LimiterCore* ended) {
    runtime->stop();
    delete ended;
  });
  return admission::MakeLimiter::of(std::move(owned));
}

}  // namespace stint
