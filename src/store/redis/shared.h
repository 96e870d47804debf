// What the parts of a Redis store on several event loops share.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/entropy.h"
#include "base/mutex.h"
#include "stint/time.h"
#include "store/redis/heard.h"
#include "store/redis/local_counters.h"
#include "store/redis/redis_store.h"

namespace stint::store {

// Thread rule: any thread.
class Shared {
 public:
  Shared(RedisStoreOptions options, const Clock& clock, base::Entropy& entropy);

  // The store's time as last learned from any server; the wall clock's until then.
  [[nodiscard]] TimePoint now() const noexcept;
  void learn(Duration offset) noexcept { offset_.store(offset.count(), std::memory_order_relaxed); }

  [[nodiscard]] std::int64_t replicas() const noexcept {
    return replicas_.load(std::memory_order_relaxed);
  }
  void set_replicas(std::int64_t replicas) noexcept {
    replicas_.store(replicas, std::memory_order_relaxed);
  }

  // Tells it unless something of the same kind was told in the last ten seconds.
  void warn(const std::string& kind, const std::string& text);

  // A loop has this server now. That it is not connected with it yet is nothing to tell about.
  void add_target(std::string_view target, bool degraded);
  // A loop has this server no more.
  void remove_target(std::string_view target, bool degraded);
  // One of the loops says how it stands with a server, when that changes; the first one that is in
  // trouble and the last one that is not are told on.
  void set_degraded(std::string_view target, bool degraded, const std::string& why);
  // It is still in trouble: told on if nothing was told yet.
  void still_degraded(std::string_view target, const std::string& why);
  // " (why)" while it is degraded, else nothing.
  [[nodiscard]] std::string why_away(std::string_view target) const;
  [[nodiscard]] std::vector<RedisTargetHealth> health() const;

  const RedisStoreOptions options;
  const Scripts own_scripts;
  const Scripts& scripts;
  const std::string keys_begin;
  const std::string replicas_key;
  const std::string replica;  // this process, for the announcements
  base::Entropy& entropy;
  Heard heard;
  LocalCounters local;

 private:
  struct Health {
    int loops = 0;
    int degraded_loops = 0;
    bool told = false;  // that it is degraded
    TimePoint since{};  // degraded
    std::string why;
  };

  const Clock& clock_;
  std::atomic<std::int64_t> offset_;  // store time - steady time, us
  std::atomic<std::int64_t> replicas_;
  mutable base::Mutex mutex_;
  std::map<std::string, Duration, std::less<>> told_ STINT_GUARDED_BY(mutex_);  // by kind
  std::map<std::string, Health, std::less<>> health_ STINT_GUARDED_BY(mutex_);  // by target
};

}  // namespace stint::store
