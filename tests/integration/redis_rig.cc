#include "tests/integration/redis_rig.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "base/entropy.h"
#include "redis/ring.h"
#include "redis/single.h"

namespace stint::redis_testing {

std::string prelude_with_time_of(const std::string& time_key) {
  return "local function now_us() return tonumber(redis.call('GET', '" + time_key +
         "') or 0) end\n"
         "local function ttl_ms(us) return us and '3600000' end\n";
}

std::string fresh_prefix() {
  static std::atomic<int> next{0};
  return "t" + std::to_string(next.fetch_add(1));
}

namespace {

redis::ServerAddress address_of(const std::string& url) {
  auto address = redis::parse_url(url);
  if (!address) throw std::runtime_error(address.error());
  return *address;
}

std::shared_ptr<const HashRing> ring_of(const std::vector<std::string>& urls) {
  auto ring = std::make_shared<HashRing>(*HashRing::create());
  for (const std::string& url : urls) {
    if (!ring->add_node(redis::to_string(address_of(url)))) throw std::runtime_error(url);
  }
  return ring;
}

}  // namespace

store::RedisStore::MakeTopology StoreRig::topology(const Options& options) {
  std::shared_ptr<const net::TlsClientContext> tls;
  if (options.url.starts_with("rediss:")) {
    auto context = net::TlsClientContext::create(options.tls);
    if (!context) throw std::runtime_error(context.error().text);
    tls = *context;
  }
  using Prepare = store::RedisStore::Prepare;
  const auto server = [tls, timeout = options.connect_timeout](const Prepare& prepare,
                                                               const std::string& url) {
    const redis::ServerAddress address = address_of(url);
    redis::ServerOptions made = prepare(redis::to_string(address));
    made.address = address;
    made.tls = tls;
    made.connect_timeout = timeout;
    return made;
  };
  if (options.urls.empty()) {
    return [server, url = options.url](net::EventLoop& loop, const Prepare& prepare) {
      return std::make_unique<redis::Single>(loop, server(prepare, url));
    };
  }
  std::vector<std::string> all = options.urls;
  for (const std::string& url : options.previous) {
    if (std::ranges::find(all, url) == all.end()) all.push_back(url);
  }
  const auto ring = ring_of(options.urls);
  const auto previous = options.previous.empty() ? nullptr : ring_of(options.previous);
  return [server, all, ring, previous](net::EventLoop& loop, const Prepare& prepare) {
    redis::RingOptions made{
        .ring = ring, .previous = previous, .handover = std::chrono::hours{1}, .servers = {}};
    for (const std::string& url : all) made.servers.push_back(server(prepare, url));
    return std::make_unique<redis::Ring>(loop, std::move(made));
  };
}

StoreRig::StoreRig(Options options) {
  const store::RedisStore::MakeTopology make = topology(options);
  store_ = std::make_unique<store::RedisStore>(std::move(options.store), system_clock(),
                                               base::system_entropy());
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
  store_->replace(topology(options), options.store.timeout);
}

bool StoreRig::wait_until_degraded(bool degraded) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  while (std::chrono::steady_clock::now() < until) {
    const auto health = store_->health();
    const bool any = std::ranges::any_of(health, &store::RedisTargetHealth::degraded);
    if (!health.empty() && any == degraded) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace stint::redis_testing
