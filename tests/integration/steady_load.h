// Admissions one after another, all the time, and how each was decided.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/redis_store_testing.h"

namespace stint::redis_testing {

// Of one bucket, by one thread, from its construction until `stop`.
// Thread rule: the thread that made it.
class SteadyLoad {
 public:
  struct Sample {
    std::chrono::steady_clock::time_point asked;
    std::chrono::steady_clock::time_point answered;
    Outcome outcome{};
    bool by_redis = false;  // else by the outage rule
    bool maybe_charged = false;
  };

  enum class After : bool { keep, give_back };
  SteadyLoad(StoreRig& rig, std::string bucket, limit::LimitSetPtr limits,
             OnStoreError rule = OnStoreError::allow, After after = After::keep)
      : thread_([this, &rig, bucket = std::move(bucket), limits = std::move(limits), rule, after] {
          while (!stopping_.load()) {
            Sample sample;
            Call call = call_of({{bucket, limits}}, rule);
            sample.asked = std::chrono::steady_clock::now();
            sample.outcome = acquire(rig, call);
            sample.answered = std::chrono::steady_clock::now();
            sample.by_redis = sample.outcome != Outcome::undecided && call.bucket().local == 0 &&
                              call.bucket().charged;
            sample.maybe_charged = call.bucket().maybe_charged;
            {
              const std::lock_guard lock(mutex_);
              samples_.push_back(sample);
            }
            let_pass(std::chrono::milliseconds{1});
            if (after == After::give_back && call.admitted()) (void)give_back(rig, call);
          }
        }) {}
  ~SteadyLoad() { stop(); }
  SteadyLoad(const SteadyLoad&) = delete;
  SteadyLoad& operator=(const SteadyLoad&) = delete;

  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] std::vector<Sample> samples() const {
    const std::lock_guard lock(mutex_);
    return samples_;
  }
  // Whether one that was asked since was decided by Redis.
  [[nodiscard]] bool counted_since(std::chrono::steady_clock::time_point since) const {
    for (const Sample& sample : samples()) {
      if (sample.asked >= since && sample.by_redis) return true;
    }
    return false;
  }
  [[nodiscard]] std::size_t by_redis() const {
    std::size_t count = 0;
    for (const Sample& sample : samples()) count += sample.by_redis;
    return count;
  }
  [[nodiscard]] std::size_t by_rule() const {
    std::size_t count = 0;
    for (const Sample& sample : samples()) count += !sample.by_redis;
    return count;
  }
  [[nodiscard]] std::size_t maybe_charged() const {
    std::size_t count = 0;
    for (const Sample& sample : samples()) count += sample.maybe_charged;
    return count;
  }

 private:
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::vector<Sample> samples_;
  std::thread thread_;
};

}  // namespace stint::redis_testing
