#include "tests/integration/redis_rig.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "base/entropy.h"

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

StoreRig::StoreRig(Options options) {
  auto address = redis::parse_url(options.url);
  if (!address) throw std::runtime_error(address.error());
  if (address->tls) {
    auto tls = net::TlsClientContext::create(options.tls);
    if (!tls) throw std::runtime_error(tls.error().text);
    tls_ = *tls;
  }
  store_ = std::make_unique<store::RedisStore>(std::move(options.store), system_clock(),
                                               base::system_entropy());
  const auto make = [this, address = *address, timeout = options.connect_timeout](
                        net::EventLoop& loop, const store::RedisStore::Prepare& prepare) {
    redis::ServerOptions server = prepare(redis::to_string(address));
    server.address = address;
    server.tls = tls_;
    server.connect_timeout = timeout;
    return std::make_unique<redis::Single>(loop, std::move(server));
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

bool StoreRig::wait_until_degraded(bool degraded) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  while (std::chrono::steady_clock::now() < until) {
    const auto health = store_->health();
    if (!health.empty() && health[0].degraded == degraded) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace stint::redis_testing
