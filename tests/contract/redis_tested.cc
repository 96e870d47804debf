#include "tests/contract/redis_tested.h"

#include <stdexcept>
#include <utility>

namespace stint::store {
namespace {

using redis_testing::StoreRig;

class RedisTested final : public TestedStore {
 public:
  RedisTested(TimePoint start, const redis::Deployment& deployment,
              std::function<void(const std::string&, const std::string&)> set_key)
      : prefix_(redis_testing::fresh_prefix()),
        scripts_(redis_testing::prelude_with_time_of(prefix_ + ":now")),
        set_key_(std::move(set_key)) {
    set_time(start);
    StoreRig::Options options;
    options.deployment = deployment;
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
    set_key_(prefix_ + ":now", std::to_string(now.time_since_epoch().count()));
  }

 private:
  const std::string prefix_;
  const Scripts scripts_;
  const std::function<void(const std::string&, const std::string&)> set_key_;
  std::unique_ptr<StoreRig> rig_;
};

}  // namespace

std::unique_ptr<TestedStore> make_redis_tested(
    TimePoint start, const redis::Deployment& deployment,
    std::function<void(const std::string& key, const std::string& value)> set_key) {
  return std::make_unique<RedisTested>(start, deployment, std::move(set_key));
}

}  // namespace stint::store
