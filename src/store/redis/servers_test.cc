// The ways to the servers: as many as are used.
#include "store/redis/servers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/entropy.h"
#include "net/event_loop.h"
#include "net/loop_testing.h"
#include "store/redis/redis_store.h"
#include "store/redis/shared.h"

namespace stint::store {
namespace {

const std::vector<Limit> kFive = {requests_per(std::chrono::hours{1}, 5)};

// Every key in a reach of its own, at one target that nobody calls.
class Spread final : public redis::Topology {
 public:
  [[nodiscard]] Route route(std::string_view routing_key) override {
    Route route;
    route.target = &target_;
    route.reach = std::hash<std::string_view>{}(routing_key);
    return route;
  }
  [[nodiscard]] std::span<redis::Target* const> targets() override { return {&pointer_, 1}; }
  void start() override {}
  [[nodiscard]] net::Task<void> stop() override { co_return; }

 private:
  class Nobody final : public redis::Target {
   public:
    void call(const redis::Script& /*script*/, std::span<const std::string_view> /*keys*/,
              std::span<const std::string_view> /*args*/, Duration /*deadline*/,
              redis::CallDone done) override {
      waiting = std::move(done);
    }
    void command(std::span<const std::string_view> /*words*/, Duration /*deadline*/,
                 redis::CallDone /*done*/) override {}
    [[nodiscard]] bool available() const noexcept override { return true; }
    [[nodiscard]] std::string_view name() const noexcept override { return "nobody"; }
    redis::CallDone waiting;
  };
  Nobody target_;
  redis::Target* pointer_ = &target_;
};

TEST(Servers, GiveUpLanesThatNobodyUses) {
  net::EventLoop loop;
  base::FixedEntropy entropy;
  Shared shared(RedisStoreOptions(), system_clock(), entropy);
  const auto servers = std::make_shared<Servers>(
      loop, shared,
      [](net::EventLoop&, const RedisStore::Prepare&) { return std::make_unique<Spread>(); },
      std::chrono::seconds{1}, [] {});
  Lane& used = servers->lane("used");
  Change change;
  change.key = "used";
  change.limits = limit::LimitSet::create(kFive).value();
  used.change(std::move(change), [](const Changed&) {});
  std::size_t most = 0;
  for (int turn = 0; turn < 100; ++turn) {
    for (int i = 0; i < 100; ++i) {
      (void)servers->lane("key" + std::to_string(turn) + "-" + std::to_string(i));
    }
    net::run_what_is_ready(loop);
    most = std::max(most, servers->lanes());
  }
  EXPECT_LE(most, 300U) << "of 10,000";
  EXPECT_EQ(&servers->lane("used"), &used) << "it waits for an answer";
}

}  // namespace
}  // namespace stint::store
