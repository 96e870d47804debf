#include "store/redis/servers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace stint::store {
namespace {

// For how long a replica announces itself at a time, and how often (three times in it).
constexpr Duration kAnnouncedFor = std::chrono::seconds{15};
constexpr Duration kAnnounceEvery = std::chrono::seconds{5};
// Of a question about a server's settings.
constexpr Duration kLookTimeout = std::chrono::seconds{2};

// "6.0.16": below 6.2. What cannot be read is not.
bool too_old(std::string_view version) {
  unsigned major = 0;
  unsigned minor = 0;
  const char* const end = version.data() + version.size();
  const auto [dot, fault] = std::from_chars(version.data(), end, major);
  if (fault != std::errc{} || dot == end || *dot != '.') return false;
  if (std::from_chars(dot + 1, end, minor).ec != std::errc{}) return false;
  return major < 6 || (major == 6 && minor < 2);
}

}  // namespace

Servers::Servers(net::EventLoop& loop, Shared& shared, const RedisStore::MakeTopology& make,
                 Duration timeout, std::function<void()> on_available)
    : loop_(loop),
      shared_(shared),
      timeout_(timeout),
      on_available_(std::move(on_available)),
      topology_(make(loop, [this](std::string_view name) { return prepare(name); })),
      births_(shared.entropy.next()),
      mover_(loop, shared, *topology_, timeout,
             [this](const redis::Target& target) -> ServerClock& {
               return site(target.name()).clock;
             }) {}

Servers::~Servers() = default;

net::Task<void> Servers::stop() { co_await topology_->stop(); }

void Servers::enter() {
  entered_ = true;
  for (const auto& [name, site] : sites_) {
    if (!site->gone) shared_.add_target(name, site->degraded);
  }
}

void Servers::leave() {
  entered_ = false;
  for (const auto& [name, site] : sites_) {
    if (!site->gone) shared_.remove_target(name, site->degraded);
  }
}

Site& Servers::site(std::string_view target) {
  auto found = sites_.find(target);
  if (found == sites_.end()) {
    auto made = std::make_unique<Site>();
    made->name = target;
    if (shared_.options.hooks.of_target) made->hooks = shared_.options.hooks.of_target(target);
    found = sites_.emplace(std::string(target), std::move(made)).first;
    if (entered_) shared_.add_target(target, true);
  }
  return *found->second;
}

redis::ServerOptions Servers::prepare(std::string_view name) {
  Site& where = site(name);
  if (where.gone) {  // and is back
    where.gone = where.looked_at = false;
    where.degraded = true;
    if (shared_.options.hooks.of_target) where.hooks = shared_.options.hooks.of_target(name);
    if (entered_) shared_.add_target(name, true);
  }
  redis::ServerOptions options;
  options.name = name;
  options.client_name = "stint";
  const Scripts& scripts = shared_.scripts;
  options.scripts = {&scripts.decide, &scripts.announce, &scripts.look, &scripts.take,
                     &scripts.install};
  options.probe = announcement(where);
  options.probe_every = kAnnounceEvery;
  options.entropy = &shared_.entropy;
  options.on_event = [this, &where](const redis::ServerEvent& event) { on_event(where, event); };
  options.on_time = [this, &where](TimePoint store, Duration sent, Duration received) {
    where.clock.learn(store, sent, received);
    shared_.learn(where.clock.offset());
  };
  return options;
}

redis::Probe Servers::announcement(Site& where) {
  redis::Probe probe;
  probe.script = &shared_.scripts.announce;
  probe.make = [this] {
    redis::Probe::Call call;
    call.keys = {shared_.replicas_key};
    call.args = {shared_.replica, std::to_string(kAnnouncedFor.count())};
    return call;
  };
  probe.on_reply = [this, &where](const redis::CallResult& result) { announced(where, result); };
  return probe;
}

void Servers::announced(Site& where, const redis::CallResult& result) {
  if (!result) return;
  const std::int64_t replicas = (*result)[1].integer();
  if (replicas > 0) shared_.set_replicas(replicas);
  // The server counts as available only after this callback.
  loop_.post([weak = weak_from_this(), &where] {
    const auto self = weak.lock();
    if (!self) return;
    for (redis::Target* target : self->topology_->targets()) {
      if (target->name() != where.name || !target->available()) continue;
      self->set_degraded(where, false, "");
      self->look_at_settings(where, *target);
      self->on_available_();
      return;
    }
  });
}

void Servers::look_at_settings(Site& where, redis::Target& target) {
  if (where.looked_at) return;
  where.looked_at = true;
  where.looking = 2;
  const Duration deadline = loop_.now() + kLookTimeout;
  // Whoever may not ask is not warned: both commands are often forbidden to users.
  const std::array<std::string_view, 3> policy = {"CONFIG", "GET", "maxmemory-policy"};
  target.command(policy, deadline, [this, &where](const redis::CallResult& result) {
    --where.looking;
    if (!result || result->size() < 2 || (*result)[1].text() == "noeviction") return;
    shared_.warn("eviction " + where.name,
                 "redis " + where.name + " may evict counters: its maxmemory-policy is " +
                     std::string((*result)[1].text()) + ", and should be noeviction");
  });
  const std::array<std::string_view, 2> info = {"INFO", "server"};
  target.command(info, deadline, [this, &where](const redis::CallResult& result) {
    --where.looking;
    if (!result) return;
    constexpr std::string_view kField = "redis_version:";
    std::string_view text = result->text();
    if (text.contains("redis_mode:cluster") && !topology_->of_cluster()) {
      shared_.warn("mode " + where.name,
                   "redis " + where.name +
                       " is a node of a Redis Cluster, and has some of the "
                       "buckets only: its nodes belong under `nodes` (mode cluster)");
    }
    const std::size_t at = text.find(kField);
    if (at == std::string_view::npos) return;
    text.remove_prefix(at + kField.size());
    const std::string version(text.substr(0, text.find_first_of("\r\n")));
    if (!too_old(version)) return;
    shared_.warn("version " + where.name,
                 "redis " + where.name + " is version " + version + "; 6.2 or later is needed");
  });
}

void Servers::on_event(Site& where, const redis::ServerEvent& event) {
  using Kind = redis::ServerEvent::Kind;
  switch (event.kind) {
    case Kind::connected:
    case Kind::breaker_closed:
      return;
    case Kind::configuration:
      // Such faults repeat: what is not about those two questions is told a moment later.
      if (where.looking > 0) return;
      return shared_.warn("configuration " + where.name + event.text,
                          "redis " + where.name + " must be mended: " + event.text);
    case Kind::connect_failed:
    case Kind::lost:
    case Kind::breaker_opened:
      if (!where.degraded) return set_degraded(where, true, event.text);
      if (entered_ && !where.gone) shared_.still_degraded(where.name, event.text);
      return;
    case Kind::found:
      return set_degraded(where, false, "");
    case Kind::gone:
      return forget(where);
  }
}

// Whoever has a lane to it may still use it: it is only told of no more.
void Servers::forget(Site& where) {
  if (where.gone) return;
  where.gone = true;
  where.hooks = {};
  if (entered_) shared_.remove_target(where.name, where.degraded);
}

void Servers::set_degraded(Site& where, bool degraded, const std::string& why) {
  if (where.gone || where.degraded == degraded) return;
  where.degraded = degraded;
  if (entered_) shared_.set_degraded(where.name, degraded, why);
}

LaneHooks Servers::lane_hooks(Site& where, redis::Target& target) {
  LaneHooks made;
  made.target = &where.hooks;
  made.on_fault = [this, &where](std::string_view text) {
    shared_.warn("fault " + where.name, "redis " + where.name + ": " + std::string(text));
  };
  made.on_learned = [this, &where] { shared_.learn(where.clock.offset()); };
  made.redirected = [this, &target](std::string_view key, const redis::CallError& error) {
    const redis::Topology::Route route = topology_->redirected(key, target, error);
    return route.target == nullptr ? nullptr : &lane_of(route);
  };
  return made;
}

Lane& Servers::lane(std::string_view bucket_key) { return lane_of(topology_->route(bucket_key)); }

Lane& Servers::lane_of(const redis::Topology::Route& route) {
  std::unique_ptr<Lane>& known = lanes_[route];
  if (known == nullptr) {
    redis::Target& target = *route.target;
    Site& where = site(target.name());
    const LaneOptions options{.calls_in_flight = shared_.options.calls_in_flight,
                              .timeout = timeout_};
    known = std::make_unique<Lane>(loop_, target, where.clock, shared_.scripts, shared_.keys_begin,
                                   births_, options, lane_hooks(where, target));
    if (lanes_.size() > most_lanes_ && !freeing_) {
      freeing_ = true;
      // Not now: whoever asked for this one may hold others.
      loop_.post([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->free_idle_lanes();
      });
    }
  }
  return *known;
}

void Servers::free_idle_lanes() {
  freeing_ = false;
  std::erase_if(lanes_, [](const auto& entry) { return entry.second->idle(); });
  most_lanes_ = std::max(kFewLanes, 2 * lanes_.size());
}

bool Servers::all_available() {
  return std::ranges::all_of(topology_->targets(),
                             [](const redis::Target* target) { return target->available(); });
}

bool Servers::idle() const noexcept {
  return mover_.idle() &&
         std::ranges::all_of(lanes_, [](const auto& entry) { return entry.second->idle(); });
}

}  // namespace stint::store
