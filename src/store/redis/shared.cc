#include "store/redis/shared.h"

#include <utility>

#include "store/redis/layout.h"

namespace stint::store {
namespace {

constexpr Duration kTellEvery = std::chrono::seconds{10};

std::string random_name(base::Entropy& entropy) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name;
  for (int half = 0; half < 2; ++half) {
    std::uint64_t bits = entropy.next();
    for (int i = 0; i < 16; ++i, bits >>= 4) name.push_back(kDigits[bits & 0xF]);
  }
  return name;
}

}  // namespace

Shared::Shared(RedisStoreOptions made, const Clock& clock, base::Entropy& with)
    : options(std::move(made)),
      scripts(options.scripts != nullptr ? *options.scripts : own_scripts),
      keys_begin(store::keys_begin(options.key_prefix)),
      replicas_key(keys_begin + "replicas"),
      replica(random_name(with)),
      entropy(with),
      heard({.max_buckets = options.max_buckets,
             .hash_seed = with.next(),
             .lease_ttl = options.lease_ttl}),
      local({.max_buckets = options.max_buckets, .hash_seed = with.next()}),
      clock_(clock),
      offset_((clock.wall_now().time_since_epoch() - clock.steady_now()).count()),
      replicas_(options.replicas) {}

TimePoint Shared::now() const noexcept {
  return TimePoint{clock_.steady_now() + Duration{offset_.load(std::memory_order_relaxed)}};
}

void Shared::warn(const std::string& kind, const std::string& text) {
  if (!options.hooks.on_warning) return;
  const Duration now = clock_.steady_now();
  {
    const base::MutexLock lock(mutex_);
    const auto [told, first] = told_.try_emplace(kind, now);
    if (!first && now - told->second < kTellEvery) return;
    told->second = now;
  }
  options.hooks.on_warning(text);
}

void Shared::add_target(std::string_view target, bool degraded) {
  bool well = false;
  {
    const base::MutexLock lock(mutex_);
    Health& health = health_[std::string(target)];
    ++health.loops;
    if (degraded) {
      if (health.degraded_loops++ == 0) health.since = clock_.wall_now();
      health.why = kNotConnectedYet;
    }
    well = health.degraded_loops == 0 && health.loops == 1;
  }
  if (well && options.hooks.on_degraded) options.hooks.on_degraded(target, false, "");
}

void Shared::remove_target(std::string_view target, bool degraded) {
  bool gone = false;
  bool well = false;
  {
    const base::MutexLock lock(mutex_);
    const auto found = health_.find(target);
    Health& health = found->second;
    if (degraded) --health.degraded_loops;
    gone = --health.loops == 0;
    well = !gone && health.told && health.degraded_loops == 0;
    health.told = health.told && !well;
    if (gone) health_.erase(found);
  }
  if (gone && options.hooks.on_removed) options.hooks.on_removed(target);
  if (well && options.hooks.on_degraded) options.hooks.on_degraded(target, false, "");
}

void Shared::set_degraded(std::string_view target, bool degraded, const std::string& why) {
  bool tell = false;
  {
    const base::MutexLock lock(mutex_);
    Health& health = health_[std::string(target)];
    if (degraded && health.degraded_loops == 0) health.since = clock_.wall_now();
    health.degraded_loops += degraded ? 1 : -1;
    if (degraded) health.why = why;
    tell = degraded ? !health.told : health.degraded_loops == 0;
    health.told = degraded || (health.told && !tell);
  }
  if (tell && options.hooks.on_degraded) options.hooks.on_degraded(target, degraded, why);
}

void Shared::still_degraded(std::string_view target, const std::string& why) {
  bool tell = false;
  {
    const base::MutexLock lock(mutex_);
    Health& health = health_[std::string(target)];
    health.why = why;
    tell = !health.told;
    health.told = true;
  }
  if (tell && options.hooks.on_degraded) options.hooks.on_degraded(target, true, why);
}

std::string Shared::why_away(std::string_view target) const {
  const base::MutexLock lock(mutex_);
  const auto found = health_.find(target);
  if (found == health_.end() || found->second.degraded_loops == 0) return {};
  return " (" + found->second.why + ")";
}

std::vector<RedisTargetHealth> Shared::health() const {
  const base::MutexLock lock(mutex_);
  std::vector<RedisTargetHealth> all;
  for (const auto& [name, health] : health_) {
    const bool degraded = health.degraded_loops > 0;
    all.push_back({name, degraded, degraded ? health.why : std::string{},
                   degraded ? health.since : TimePoint{}});
  }
  return all;
}

}  // namespace stint::store
