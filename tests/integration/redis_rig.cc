#include "tests/integration/redis_rig.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "base/entropy.h"

namespace stint::redis_testing {

std::string prelude_with_time_of(const std::string& time_key) {
  return "local function now_us() return tonumber(redis.call('GET', '" + time_key +
         "') or 0) end\n"
         "local function ttl_ms(us) return us and 3600000 end\n";
}

std::string prelude_with_time_beside(const std::string& time_key) {
  return "local time_key = '" + time_key +
         "' .. string.match(KEYS[1], '{.-}')\n"
         "local function now_us() return tonumber(redis.call('GET', time_key) or 0) end\n"
         "local function ttl_ms(us) return us and 3600000 end\n";
}

std::string fresh_prefix() {
  static std::atomic<int> next{0};
  return "t" + std::to_string(next.fetch_add(1));
}

redis::Deployment StoreRig::deployment_of(const Options& options) {
  redis::Deployment deployment;
  if (options.deployment) {
    deployment = *options.deployment;
  } else {
    auto address = redis::parse_url(options.url);
    if (!address) throw std::runtime_error(address.error());
    deployment.servers = redis::SingleDeployment{*address};
  }
  if (!options.tls.ca_file.empty() || options.url.starts_with("rediss:")) {
    auto tls = net::TlsClientContext::create(options.tls);
    if (!tls) throw std::runtime_error(tls.error().text);
    deployment.tls = deployment.sentinel_tls = *tls;
  }
  deployment.connect_timeout = options.connect_timeout;
  return deployment;
}

StoreRig::StoreRig(Options options) {
  const redis::Deployment deployment = deployment_of(options);
  store_ = std::make_unique<store::RedisStore>(std::move(options.store), system_clock(),
                                               base::system_entropy());
  const auto make = [deployment](net::EventLoop& loop, const store::RedisStore::Prepare& prepare) {
    return redis::make_topology(loop, deployment, prepare);
  };
  for (std::size_t i = 0; i < options.loops; ++i) {
    loops_.push_back(std::make_unique<Loop>());
    store_->add_loop(loops_.back()->loop, make);
    store_->start(loops_.back()->loop);
  }
  for (const auto& loop : loops_) {
    loop->thread = std::thread([&on = loop->loop] { on.run(); });
  }
}

StoreRig::~StoreRig() {
  for (const auto& loop : loops_) {
    loop->loop.post([this, &on = loop->loop] {
      auto* tasks = new net::TaskGroup(on);
      auto stop = [](store::RedisStore& store, net::EventLoop& of,
                     net::TaskGroup* group) -> net::Task<void> {
        co_await store.stop(of);
        of.post([group, &of] {
          delete group;
          of.stop();
        });
      };
      tasks->start(stop(*store_, on, tasks));
    });
  }
  for (const auto& loop : loops_) loop->thread.join();
}

void StoreRig::replace(const Options& options) {
  const auto make = [deployment = deployment_of(options)](
                        net::EventLoop& loop, const store::RedisStore::Prepare& prepare) {
    return redis::make_topology(loop, deployment, prepare);
  };
  store_->replace(make, options.store.timeout);
}

bool StoreRig::wait_until_degraded(bool degraded) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  while (std::chrono::steady_clock::now() < until) {
    const auto health = store_->health();
    const bool any =
        std::ranges::any_of(health, [](const auto& target) { return target.degraded; });
    if (!health.empty() && any == degraded) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace stint::redis_testing
