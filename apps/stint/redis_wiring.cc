#include "redis_wiring.h"

#include <utility>

#include "base/entropy.h"
#include "redis/single.h"

namespace stint::app {
namespace {

// How long a check at the start may take: the look-up, the connection and the login.
constexpr Duration kCheck = std::chrono::seconds{2};
constexpr Duration kLook = std::chrono::milliseconds{10};

std::expected<redis::ServerAddress, std::string> address_of(const config::Redis& redis) {
  auto address = redis::parse_url(redis.url);
  if (!address) return std::unexpected("ratelimit.redis.url: " + address.error());
  // What the URL does not say, its neighbours may.
  if (address->username.empty()) address->username = redis.username;
  if (address->password.empty()) address->password = redis.password;
  if (address->database == 0) address->database = static_cast<std::uint32_t>(redis.database);
  return address;
}

}  // namespace

std::expected<std::unique_ptr<RedisWiring>, std::string> RedisWiring::create(
    const config::RateLimit& ratelimit, observe::Metrics& metrics, const observe::Log& log) {
  if (!ratelimit.redis) return nullptr;
  const config::Redis& redis = *ratelimit.redis;
  std::unique_ptr<RedisWiring> wiring(new RedisWiring);
  auto address = address_of(redis);
  if (!address) return std::unexpected(std::move(address.error()));
  wiring->address_ = std::move(*address);
  if (wiring->address_.tls) {
    auto tls = net::TlsClientContext::create({.ca_file = redis.tls.ca_file,
                                              .cert_file = redis.tls.cert_file,
                                              .key_file = redis.tls.key_file,
                                              .verify = redis.tls.verify});
    if (!tls) return std::unexpected("ratelimit.redis.tls: " + tls.error().text);
    wiring->tls_ = std::move(*tls);
  }
  wiring->metrics_ =
      std::make_unique<gateway::ShardMetrics>(metrics, redis::to_string(wiring->address_));
  const gateway::ShardMetrics shard = *wiring->metrics_;  // counts into the same series
  shard.set_degraded(true);                               // until it is connected

  store::RedisStoreOptions options;
  options.key_prefix = ratelimit.key_prefix;
  options.timeout = redis.timeout;
  options.replicas = ratelimit.replicas;
  options.max_buckets = ratelimit.max_buckets;
  options.lease_ttl = ratelimit.concurrency_ttl;
  options.hooks.on_latency = [shard](std::string_view, Duration took) { shard.answered(took); };
  options.hooks.on_decided = [shard](std::string_view, Outcome outcome) {
    shard.decided(outcome);
    if (outcome == Outcome::undecided) shard.fell_back();
  };
  options.hooks.on_unknown_charges = [shard](std::string_view, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) shard.lost_track();
  };
  options.hooks.on_degraded = [shard, &log](std::string_view target, bool degraded,
                                            std::string_view why) {
    shard.set_degraded(degraded);
    const std::string server(target);
    if (!degraded) return log.info("redis counts", {{"server", server}});
    log.warn("redis is away: the outage rule decides",
             {{"server", server}, {"why", std::string(why)}});
  };
  options.hooks.on_warning = [&log](std::string_view text) { log.warn(text); };
  wiring->store_ = std::make_shared<store::RedisStore>(std::move(options), system_clock(),
                                                       base::system_entropy());
  return wiring;
}

redis::ServerOptions RedisWiring::complete(redis::ServerOptions server) const {
  server.address = address_;
  server.tls = tls_;
  return server;
}

void RedisWiring::add_loop(net::EventLoop& loop) {
  store_->add_loop(loop, [this](net::EventLoop& on, const store::RedisStore::Prepare& prepare) {
    redis::ServerOptions server = complete(prepare(redis::to_string(address_)));
    return std::make_unique<redis::Single>(on, std::move(server));
  });
}

std::expected<void, std::string> RedisWiring::check() const {
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
  redis::Server server(loop, complete(std::move(options)));
  server.start();
  const auto wait = [](net::EventLoop& on, redis::Server& tried, const bool& done,
                       Duration until) -> net::Task<void> {
    while (!done && on.now() < until) {
      co_await on.wait_for(kLook);
    }
    co_await tried.stop();
  };
  tasks.start(wait(loop, server, over, loop.now() + kCheck));
  const auto end = [](net::TaskGroup& group, net::EventLoop& on) -> net::Task<void> {
    co_await group.join();
    on.post([&on] { on.stop(); });
  };
  net::TaskGroup ending(loop);
  ending.start(end(tasks, loop));
  loop.run();
  if (reached) return {};
  return std::unexpected("ratelimit.redis: " + redis::to_string(address_) + ": " + why);
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
  return "redis " + redis::to_string(address_) + ", shared by all replicas";
}

}  // namespace stint::app
