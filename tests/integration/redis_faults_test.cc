// Faults that end by themselves, under load: nobody is told an error, nothing is counted twice.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "tests/integration/redis_store_testing.h"

namespace stint::redis_testing {
namespace {

constexpr std::size_t kReplicas = 3;

// Everybody asks as fast as the answers come. Stopped at the latest by its end.
class Load {
 public:
  Load(std::vector<std::unique_ptr<StoreRig>>& rigs, OnStoreError rule) {
    for (const auto& rig : rigs) {
      threads_.emplace_back([this, &on = *rig, rule] {
        const auto set = limits({requests_per(kLong, 1'000'000'000)});
        while (!stop_) {
          Call call = call_of({{"p:a", set}}, rule);
          if (acquire(on, call) != Outcome::admitted) {
            ++failed;
          } else {
            ++admitted;
            if (call.bucket().local == 0) ++admitted_by_redis;
          }
        }
      });
    }
  }
  ~Load() { stop(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  void stop() {
    stop_ = true;
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  // So many more, decided by Redis.
  void expect_more(std::int64_t count) const {
    const std::int64_t then = admitted_by_redis;
    EXPECT_TRUE(eventually([&] { return admitted_by_redis >= then + count; }));
  }

  std::atomic<std::int64_t> admitted{0};
  std::atomic<std::int64_t> admitted_by_redis{0};
  std::atomic<std::int64_t> failed{0};

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

class RedisFaults : public RedisStoreTest {
 protected:
  RedisFaults() {
    for (std::size_t i = 0; i < kReplicas; ++i) {
      StoreRig::Options options = patient();
      options.loops = 2;
      options.store.hooks = told_.hooks();
      rigs_.push_back(rig(std::move(options)));
    }
  }

  // And have told all that they counted by themselves.
  void wait_until_all_are_back() {
    for (const auto& rig : rigs_) {
      EXPECT_TRUE(rig->wait_until_degraded(false));
      EXPECT_TRUE(eventually([&] { return rig->store().stats().unsent_buckets == 0; }));
    }
  }
  // After a call of its own it counts in Redis, and nowhere else.
  void expect_exact_from_now_on() {
    const std::int64_t before = used("p:a");
    for (int i = 0; i < 30; ++i) {
      Call call = call_of({{"p:a", limits({requests_per(kLong, 1'000'000'000)})}});
      EXPECT_EQ(acquire(*rigs_[static_cast<std::size_t>(i) % kReplicas], call), Outcome::admitted);
    }
    EXPECT_EQ(used("p:a"), before + 30);
  }

  Told told_;
  std::vector<std::unique_ptr<StoreRig>> rigs_;
};

TEST_F(RedisFaults, AFlushOfTheScriptsIsNotNoticed) {  // C08
  Load load(rigs_, OnStoreError::deny);
  for (int i = 0; i < 10 && !HasFailure(); ++i) {
    server_.command({"SCRIPT", "FLUSH"});
    load.expect_more(50);
  }
  load.stop();
  EXPECT_EQ(load.failed, 0);
  EXPECT_EQ(used("p:a"), load.admitted);
  EXPECT_EQ(told_.unknown_charges(), 0U);
  EXPECT_EQ(told_.warnings(), "");
}

TEST_F(RedisFaults, ConnectionsThatAreCutCountNothingTwice) {
  std::int64_t admitted = 0;
  for (int i = 0; i < 5; ++i) {
    Load load(rigs_, OnStoreError::local);
    load.expect_more(50);
    server_.command({"CLIENT", "KILL", "TYPE", "normal"});
    load.expect_more(50);
    load.stop();
    wait_until_all_are_back();
    EXPECT_EQ(load.failed, 0);
    admitted += load.admitted;
    // Of those whose answer was lost, nobody knows whether Redis has them.
    const auto unknown = static_cast<std::int64_t>(told_.unknown_charges());
    EXPECT_GE(used("p:a"), admitted - unknown);
    EXPECT_LE(used("p:a"), admitted);
  }
  expect_exact_from_now_on();
}

TEST_F(RedisFaults, ARestartIsNotNoticed) {  // C08
  Load load(rigs_, OnStoreError::local);
  load.expect_more(200);
  const std::int64_t lost = load.admitted_by_redis;
  server_.restart();
  load.expect_more(200);
  load.stop();
  wait_until_all_are_back();
  EXPECT_EQ(load.failed, 0);
  const auto unknown = static_cast<std::int64_t>(told_.unknown_charges());
  const std::int64_t counted_here = load.admitted - load.admitted_by_redis;
  EXPECT_GE(used("p:a"), counted_here - unknown);
  EXPECT_LE(used("p:a"), load.admitted - lost + unknown);
  expect_exact_from_now_on();
}

}  // namespace
}  // namespace stint::redis_testing
