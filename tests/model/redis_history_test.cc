// Random histories of calls: the store in Redis answers as the reference does, call by call.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <semaphore>
#include <string>

#include "tests/integration/redis_rig.h"
#include "tests/model/history_check.h"
#include "tests/model/history_gen.h"
#include "tests/model/history_run.h"

namespace stint::model {
namespace {

constexpr int kHistories = 400;
constexpr const char* kTimeKey = "test:now";

class RedisHistories : public testing::Test {
 protected:
  RedisHistories() : scripts_(redis_testing::prelude_with_time_of(kTimeKey)) {
    set_time(TimePoint{std::chrono::days{20'000}});
    redis_testing::StoreRig::Options options;
    options.url = server_.url();
    options.store.scripts = &scripts_;
    options.store.timeout = std::chrono::seconds{10};
    options.store.hooks.on_warning = [](std::string_view text) { ADD_FAILURE() << text; };
    rig_ = std::make_unique<redis_testing::StoreRig>(std::move(options));
    EXPECT_TRUE(rig_->wait_until_degraded(false));
  }

  void set_time(TimePoint now) {
    const std::string text = std::to_string(now.time_since_epoch().count());
    server_.command({"SET", kTimeKey, text});
  }

  std::string fault(const History& history) {
    server_.command({"FLUSHDB"});
    return run(history, Compared::that_keep, {{"redis", &rig_->store(), [this](TimePoint now) {
                                                 set_time(now);
                                                 learn_time();
                                               }}});
  }

  // Calls that the store makes while it believes in the time before come too late and are made
  // again, several at once in any order. So it is told first.
  void learn_time() {
    store::AdmissionRecord record;
    record.buckets.push_back({.key = "looked:at", .text = "looked:at", .limits = looked_at_});
    record.slots.push_back({.need = 1, .charge = 1});
    std::binary_semaphore done{0};
    rig_->store().peek(record, [&] { done.release(); });
    done.acquire();
  }

 private:
  redis_testing::RedisServer server_;
  const store::Scripts scripts_;
  const limit::LimitSetPtr looked_at_ =
      limit::LimitSet::create(std::vector{requests_per(std::chrono::hours{1}, 1)}).value();
  std::unique_ptr<redis_testing::StoreRig> rig_;
};

TEST_F(RedisHistories, ThatOnceFoundABugAgree) {
  for (const auto& path : seeds()) {
    SCOPED_TRACE(path.filename().string());
    const std::string found = fault(read_history(path));
    EXPECT_TRUE(found.empty()) << found;
  }
}

TEST_F(RedisHistories, OfTimeThatGoesOnAgree) {
  check(forward_histories(), kHistories, [this](const History& history) { return fault(history); });
}

// A settlement by limits that were replaced names the keys of the logs that it knows. Another log
// of the bucket, if it lies ahead, is brought back by the next admission instead: up to then its
// entries stand at the instants at which they were made.
bool replaces_logs(const History& history) {
  const bool logs = std::ranges::any_of(history.policies, [](const auto& policy) {
    return std::ranges::any_of(
        policy, [](const Limit& limit) { return limit.algorithm == Algorithm::sliding_log; });
  });
  return logs && std::ranges::any_of(history.ops, [](const Op& op) {
           return std::holds_alternative<Relayout>(op);
         });
}

TEST_F(RedisHistories, OfTimeThatStepsBackAgree) {
  check(stepping_histories(), kHistories, [this](const History& history) {
    return replaces_logs(history) ? std::string{} : fault(history);
  });
}

}  // namespace
}  // namespace stint::model
