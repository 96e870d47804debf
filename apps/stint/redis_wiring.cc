#include "redis_wiring.h"

#include <algorithm>
#include <utility>

#include "base/entropy.h"

namespace stint::app {
namespace {

// How long a check of a server at the start may take: the look-up, the connection and the login.
constexpr Duration kCheck = std::chrono::seconds{2};
constexpr Duration kLook = std::chrono::milliseconds{10};
constexpr Duration kLongestHandover = std::chrono::hours{1};

}  // namespace

std::expected<std::unique_ptr<RedisWiring>, std::string> RedisWiring::create(
    const config::RateLimit& ratelimit, observe::Metrics& metrics, const observe::Log& log) {
  if (!ratelimit.redis) return nullptr;
  std::unique_ptr<RedisWiring> wiring(new RedisWiring(metrics));
  auto plan = RedisPlan::create(*ratelimit.redis);
  if (!plan) return std::unexpected(std::move(plan.error()));
  wiring->plan_ = std::move(*plan);
  wiring->show(*wiring->plan_);

  store::RedisStoreOptions options;
  options.key_prefix = ratelimit.key_prefix;
  options.timeout = wiring->plan_->timeout();
  options.replicas = ratelimit.replicas;
  options.max_buckets = ratelimit.max_buckets;
  options.lease_ttl = ratelimit.concurrency_ttl;
  options.hooks = wiring->hooks(log);
  wiring->store_ = std::make_shared<store::RedisStore>(std::move(options), system_clock(),
                                                       base::system_entropy());
  return wiring;
}

store::RedisStoreHooks RedisWiring::hooks(const observe::Log& log) {
  store::RedisStoreHooks hooks;
  hooks.of_target = [this](std::string_view target) {
    const gateway::ShardMetrics shard(metrics_, target);  // counts into the same series
    store::RedisTargetHooks of_target;
    of_target.on_latency = [shard](Duration took) { shard.answered(took); };
    of_target.on_decided = [shard](Outcome outcome) {
      shard.decided(outcome);
      if (outcome == Outcome::undecided) shard.fell_back();
    };
    of_target.on_unknown_charges = [shard](std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) shard.lost_track();
    };
    return of_target;
  };
  hooks.on_degraded = [this, &log](std::string_view target, bool degraded, std::string_view why) {
    set_degraded(target, degraded);
    const std::string server(target);
    if (!degraded) return log.info("redis counts", {{"server", server}});
    log.warn("redis is away: the outage rule decides",
             {{"server", server}, {"why", std::string(why)}});
  };
  hooks.on_removed = [this](std::string_view target) {
    const base::MutexLock lock(mutex_);
    const auto found = shards_.find(target);
    if (found != shards_.end()) shards_.erase(found);
  };
  hooks.on_warning = [&log](std::string_view text) { log.warn(text); };
  return hooks;
}

void RedisWiring::show(const RedisPlan& plan) {
  const base::MutexLock lock(mutex_);
  for (const RedisPlan::Server& server : plan.servers()) {
    const auto [shard, fresh] =
        shards_.try_emplace(server.name, gateway::ShardMetrics(metrics_, server.name));
    if (fresh) shard->second.set_degraded(true);  // until it is connected
  }
}

void RedisWiring::set_degraded(std::string_view server, bool degraded) const {
  const base::MutexLock lock(mutex_);
  const auto shard = shards_.find(server);
  if (shard != shards_.end()) shard->second.set_degraded(degraded);
}

store::RedisStore::MakeTopology RedisWiring::make() const {
  return [plan = plan_, handover = std::min(longest_window_, kLongestHandover)](
             net::EventLoop& loop, const store::RedisStore::Prepare& prepare) {
    return plan->make(loop, prepare, handover);
  };
}

void RedisWiring::add_loop(net::EventLoop& loop) { store_->add_loop(loop, make()); }

std::expected<void, std::string> RedisWiring::reload(const config::Redis& redis) {
  auto plan = RedisPlan::create(redis);
  if (!plan) return std::unexpected(std::move(plan.error()));
  plan_ = std::move(*plan);
  show(*plan_);
  store_->replace(make(), plan_->timeout());
  return {};
}

std::expected<void, std::string> RedisWiring::check() const {
  for (const RedisPlan::Server& server : plan_->servers()) {
    if (auto reached = check(server); !reached) return reached;
  }
  return {};
}

std::expected<void, std::string> RedisWiring::check(const RedisPlan::Server& server) const {
  net::EventLoop loop;
  net::TaskGroup tasks(loop);
  std::string why = "no answer within " + std::to_string(kCheck.count() / 1'000'000) + " s";
  bool reached = false;
  redis::ServerOptions options;
  options.client_name = "stint-check";
  options.connect_timeout = kCheck / 2;
  bool over = false;
  options.on_event = [&](const redis::ServerEvent& event) {
    using Kind = redis::ServerEvent::Kind;
    if (event.kind == Kind::connected) {
      reached = over = true;
    } else if (event.kind == Kind::connect_failed || event.kind == Kind::configuration) {
      why = event.text;
      over = true;
    }
  };
  redis::Server checked(loop, plan_->complete(std::move(options), server));
  checked.start();
  const auto wait = [](net::EventLoop& on, redis::Server& tried, const bool& done,
                       Duration until) -> net::Task<void> {
    while (!done && on.now() < until) {
      co_await on.wait_for(kLook);
    }
    co_await tried.stop();
  };
  tasks.start(wait(loop, checked, over, loop.now() + kCheck));
  const auto end = [](net::TaskGroup& group, net::EventLoop& on) -> net::Task<void> {
    co_await group.join();
    on.post([&on] { on.stop(); });
  };
  net::TaskGroup ending(loop);
  ending.start(end(tasks, loop));
  loop.run();
  if (reached) return {};
  return std::unexpected("ratelimit.redis: " + redis::to_string(server.address) + ": " + why);
}

gateway::StoreHealth RedisWiring::health() const {
  gateway::StoreHealth health;
  health.backend = "redis";
  for (const store::RedisTargetHealth& target : store_->health()) {
    // Why is in the log: this page is for everybody.
    health.shards.push_back({target.name, target.degraded, target.degraded ? "away" : ""});
  }
  return health;
}

std::string RedisWiring::description() const {
  return plan_->description() + ", shared by all replicas";
}

}  // namespace stint::app
