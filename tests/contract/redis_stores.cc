// The store in Redis, on a real server. Its scripts are told the time by the tests.
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/contract/store_contract.h"
#include "tests/integration/redis_rig.h"

namespace stint::store {
namespace {

using redis_testing::RedisServer;
using redis_testing::StoreRig;

RedisServer& server() {
  static RedisServer made;
  return made;
}

class RedisTested final : public TestedStore {
 public:
  explicit RedisTested(TimePoint start)
      : prefix_(redis_testing::fresh_prefix()),
        scripts_(redis_testing::prelude_with_time_of(prefix_ + ":now")) {
    set_time(start);
    StoreRig::Options options;
    options.url = server().url();
    options.store.key_prefix = prefix_;
    options.store.scripts = &scripts_;
    options.store.timeout = std::chrono::seconds{10};
    options.store.hooks.on_warning = [](std::string_view text) {
      ADD_FAILURE() << "the store warns: " << text;
    };
    rig_ = std::make_unique<StoreRig>(std::move(options));
    if (!rig_->wait_until_degraded(false)) throw std::runtime_error("no connection to Redis");
  }
  [[nodiscard]] RateStore& store() override { return rig_->store(); }
  void set_time(TimePoint now) override {
    const std::string text = std::to_string(now.time_since_epoch().count());
    server().command({"SET", prefix_ + ":now", text});
  }

 private:
  const std::string prefix_;
  const Scripts scripts_;
  std::unique_ptr<StoreRig> rig_;
};

}  // namespace

std::vector<StoreFactory> tested_stores() {
  return {{"Redis", [](TimePoint start) { return std::make_unique<RedisTested>(start); }}};
}

}  // namespace stint::store
