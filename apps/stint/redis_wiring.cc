#include "redis_wiring.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "base/entropy.h"
#include "base/hash.h"
#include "redis_deployment.h"
#include "store/redis/layout.h"

namespace stint::app {
namespace {

// How long a check at the start may take: look-up, connection and login.
constexpr Duration kCheck = std::chrono::seconds{2};
constexpr Duration kLook = std::chrono::milliseconds{10};
constexpr Duration kTellEvery = std::chrono::seconds{10};
constexpr Duration kShowKeysEvery = std::chrono::seconds{1};
// A scrape every minute does not miss what became of a server that was replaced.
constexpr Duration kShownWhenGone = std::chrono::minutes{5};
constexpr Duration kTrouble = std::chrono::milliseconds{200};

void forget_previous(redis::RingDeployment& ring) {
  ring.previous = nullptr;
  ring.aliases.clear();
  const auto shares = ring.ring->distribution();
  std::erase_if(ring.shards, [&shares](const redis::RingDeployment::Shard& shard) {
    return std::ranges::find(shares, shard.name, &HashRing::Share::name) == shares.end();
  });
}

}  // namespace

std::expected<std::unique_ptr<RedisWiring>, std::string> RedisWiring::create(
    const config::RateLimit& ratelimit, observe::Metrics& metrics, const observe::Log& log) {
  if (!ratelimit.redis) return nullptr;
  std::unique_ptr<RedisWiring> wiring(new RedisWiring(*ratelimit.redis, metrics, log));
  auto deployment = redis_deployment(wiring->redis_);
  if (!deployment) return std::unexpected(std::move(deployment.error()));
  wiring->deployment_ = std::move(*deployment);
  for (const std::string& name : redis::target_names(wiring->deployment_)) wiring->show(name);

  store::RedisStoreOptions options;
  options.key_prefix = ratelimit.key_prefix;
  wiring->touched_key_ = store::keys_begin(ratelimit.key_prefix) + "replicas";
  options.timeout = ratelimit.redis->timeout;
  options.replicas = ratelimit.replicas;
  options.max_buckets = ratelimit.max_buckets;
  options.lease_ttl = ratelimit.concurrency_ttl;
  options.hooks = wiring->hooks();
  wiring->store_ = std::make_shared<store::RedisStore>(std::move(options), system_clock(),
                                                       base::system_entropy());
  return wiring;
}

store::RedisStoreHooks RedisWiring::hooks() {
  store::RedisStoreHooks hooks;
  hooks.of_target = [this](std::string_view target) {
    const gateway::ShardMetrics shard(metrics_, target);  // counts into the same series
    store::RedisTargetHooks of_target;
    of_target.on_bucket = [keys = show(target), seed = hash_seed_](std::string_view bucket_key) {
      keys->add(base::hash(bucket_key, seed), system_clock().steady_now());
    };
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
  hooks.on_degraded = [this](std::string_view target, bool degraded, std::string_view) {
    set_degraded(target, degraded);
  };
  hooks.on_removed = [this](std::string_view target) {
    const base::MutexLock lock(mutex_);
    const auto found = shards_.find(target);
    if (found == shards_.end()) return;
    // Not at once: what became of it is still to be read.
    found->second.gone_at = system_clock().steady_now();
    found->second.metrics.set_degraded(false);
  };
  hooks.on_warning = [this](std::string_view text) { log_.warn(text); };
  return hooks;
}

std::shared_ptr<observe::DistinctCounter> RedisWiring::show(std::string_view server) {
  const base::MutexLock lock(mutex_);
  const auto known = shards_.find(server);
  if (known != shards_.end()) {
    if (std::exchange(known->second.gone_at, std::nullopt)) {
      known->second.metrics.set_degraded(true);
    }
    return known->second.keys;
  }
  Shard shard{gateway::ShardMetrics(metrics_, server),
              std::make_shared<observe::DistinctCounter>()};
  shard.metrics.set_degraded(true);  // until it is connected
  return shards_.emplace(std::string(server), std::move(shard)).first->second.keys;
}

void RedisWiring::set_degraded(std::string_view server, bool degraded) const {
  const base::MutexLock lock(mutex_);
  const auto shard = shards_.find(server);
  if (shard != shards_.end()) shard->second.metrics.set_degraded(degraded);
}

void RedisWiring::show_keys(Duration now) {
  if (now - keys_shown_at_ < kShowKeysEvery) return;
  keys_shown_at_ = now;
  const base::MutexLock lock(mutex_);
  std::erase_if(shards_, [now](const auto& entry) {
    return entry.second.gone_at && now - *entry.second.gone_at >= kShownWhenGone;
  });
  for (const auto& [name, shard] : shards_) shard.metrics.set_keys(shard.keys->estimate(now));
}

store::RedisStore::MakeTopology RedisWiring::make() {
  auto* const ring = std::get_if<redis::RingDeployment>(&deployment_.servers);
  if (ring != nullptr && ring->previous != nullptr) {
    ring->handover = handover_of(redis_, longest_window_);
    handing_over_until_ = system_clock().steady_now() + ring->handover;
  }
  return
      [deployment = deployment_](net::EventLoop& loop, const store::RedisStore::Prepare& prepare) {
        return redis::make_topology(loop, deployment, prepare);
      };
}

void RedisWiring::add_loop(net::EventLoop& loop) { store_->add_loop(loop, make()); }

std::vector<std::string> RedisWiring::warnings(const redis::Deployment& next) const {
  std::vector<std::string> warnings;
  const auto* before = std::get_if<redis::RingDeployment>(&deployment_.servers);
  const auto* after = std::get_if<redis::RingDeployment>(&next.servers);
  if (before == nullptr || after == nullptr) return warnings;
  double moved = 0;
  for (const HashRing::Move& move : HashRing::moves(*before->ring, *after->ring)) {
    moved += move.share;
  }
  if (moved == 0) return warnings;
  if (after->previous == nullptr) {
    warnings.push_back("ratelimit.redis: " + std::to_string(std::lround(moved * 100)) +
                       " % of the buckets begin anew; with `previous` they would be brought along");
  } else if (system_clock().steady_now() < handing_over_until_) {
    warnings.emplace_back(
        "ratelimit.redis: the shards were changed again before handover_secs had passed: buckets "
        "that were not used since the last change begin anew");
  }
  return warnings;
}

std::expected<std::vector<std::string>, std::string> RedisWiring::reload(
    const config::Redis& redis) {
  auto deployment = redis_deployment(redis);
  if (!deployment) return std::unexpected(std::move(deployment.error()));
  std::vector<std::string> noted = warnings(*deployment);
  redis_ = redis;
  deployment_ = std::move(*deployment);
  for (const std::string& name : redis::target_names(deployment_)) show(name);
  store_->replace(make(), redis_.timeout);
  return noted;
}

void RedisWiring::tell() {
  const Duration now = system_clock().steady_now();
  show_keys(now);
  for (const store::RedisTargetHealth& target : store_->health()) {
    Logged& logged = logged_[target.name];
    if (!target.degraded) logged.trouble_since.reset();
    if (logged.away == target.degraded) continue;
    if (target.degraded && target.text == store::kNotConnectedYet) continue;
    // A connection that is lost and at once made again is nothing to tell about.
    if (target.degraded && !logged.trouble_since) logged.trouble_since = now;
    if (target.degraded && now - *logged.trouble_since < kTrouble) continue;
    if (target.degraded) {
      if (logged.away_at && now - *logged.away_at < kTellEvery) continue;
      logged.away_at = now;
    }
    logged.away = target.degraded;
    if (target.degraded) {
      log_.warn("redis is away: the outage rule decides",
                {{"server", target.name}, {"why", target.text}});
    } else {
      log_.info("redis counts", {{"server", target.name}});
    }
  }
}

std::expected<void, std::string> RedisWiring::check() const {
  net::EventLoop loop;
  net::TaskGroup tasks(loop);
  std::string why = "no answer within " + std::to_string(kCheck.count() / 1'000'000) + " s";
  bool over = false;
  // Where others are asked for the servers, one may fail and the next not.
  const bool patient = std::holds_alternative<redis::SentinelDeployment>(deployment_.servers) ||
                       std::holds_alternative<redis::ClusterDeployment>(deployment_.servers);
  const redis::Script touch("touch", "return 1");
  const auto prepare = [&](std::string_view name) {
    redis::ServerOptions options;
    options.name = name;
    options.client_name = "stint-check";
    // A node of a Cluster answers a PING, whatever keys it has.
    options.scripts = {&touch};
    options.probe.script = &touch;
    options.probe.make = [this] { return redis::Probe::Call{{touched_key_}, {}}; };
    options.on_event = [&why, &over, patient](const redis::ServerEvent& event) {
      using Kind = redis::ServerEvent::Kind;
      if (event.kind == Kind::connect_failed || event.kind == Kind::configuration) {
        why = event.text;
        over = !patient;
      }
    };
    return options;
  };
  redis::Deployment quick = deployment_;
  quick.connect_timeout = kCheck / 2;
  if (auto* ring = std::get_if<redis::RingDeployment>(&quick.servers)) forget_previous(*ring);
  const std::unique_ptr<redis::Topology> topology = redis::make_topology(loop, quick, prepare);
  bool reached = false;
  topology->start();
  const auto wait = [](net::EventLoop& on, redis::Topology& tried, const bool& failed,
                       bool& all_here, Duration until) -> net::Task<void> {
    while (!failed && !all_here && on.now() < until) {
      co_await on.wait_for(kLook);
      const auto targets = tried.targets();
      all_here = !targets.empty() && std::ranges::all_of(targets, &redis::Target::available);
    }
    co_await tried.stop();
  };
  tasks.start(wait(loop, *topology, over, reached, loop.now() + kCheck));
  const auto end = [](net::TaskGroup& group, net::EventLoop& on) -> net::Task<void> {
    co_await group.join();
    on.post([&on] { on.stop(); });
  };
  net::TaskGroup ending(loop);
  ending.start(end(tasks, loop));
  loop.run();
  if (reached) return {};
  return std::unexpected("ratelimit.redis: " + redis::to_string(deployment_) + ": " + why);
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
  return "redis " + redis::to_string(deployment_) + ", shared by all replicas";
}

}  // namespace stint::app
