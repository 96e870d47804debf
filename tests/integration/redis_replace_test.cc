// Servers are replaced while the store is used.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/redis_store_testing.h"

namespace stint::redis_testing {
namespace {

class RedisReplace : public RedisStoreTest {
 protected:
  [[nodiscard]] StoreRig::Options other() const {
    StoreRig::Options options = patient();
    options.url = other_.url();
    return options;
  }
  [[nodiscard]] static std::vector<std::string> names(const StoreRig& rig) {
    std::vector<std::string> names;
    for (const auto& target : const_cast<StoreRig&>(rig).store().health()) {
      names.push_back(target.name);
    }
    return names;
  }
  [[nodiscard]] static std::string name_of(const RedisServer& server) {
    return "127.0.0.1:" + std::to_string(server.port()) + "/0";
  }

  RedisServer other_;
};

TEST_F(RedisReplace, CallsGoToTheNewServerAndTheOldOneIsLeft) {
  const auto replica = rig(patient());
  const std::vector<BucketAsk> asked = {{"b", limits({requests_per(kLong, 5)}), {{1, 1}}}};
  Call first = call_of(asked);
  ASSERT_EQ(acquire(*replica, first), Outcome::admitted);
  EXPECT_EQ(used("b"), 1);
  replica->replace(other());
  ASSERT_TRUE(eventually([&] { return names(*replica) == std::vector{name_of(other_)}; }));
  EXPECT_TRUE(replica->wait_until_degraded(false));
  Call second = call_of(asked);
  ASSERT_EQ(acquire(*replica, second), Outcome::admitted);
  EXPECT_EQ(used("b"), 1);
  EXPECT_EQ(other_.command({"EXISTS", counters_key("b")}).integer(), 1);
  EXPECT_TRUE(eventually(
      [&] { return !server_.command({"CLIENT", "LIST"}).text().contains(" name=stint "); }));
  // A refund that comes late goes where the bucket is counted now; this bucket is another one.
  EXPECT_TRUE(give_back(*replica, first));
}

TEST_F(RedisReplace, NothingIsUndecidedMeanwhile) {
  const auto replica = rig(patient());
  replica->replace(patient());
  std::atomic<bool> over{false};
  std::atomic<int> asked{0};
  std::thread asking([&] {
    while (!over) {
      Call call = call_of({{"b", limits({requests_per(kLong, 1'000'000)}), {{1, 1}}}});
      EXPECT_EQ(acquire(*replica, call), Outcome::admitted);
      ++asked;
    }
  });
  for (int i = 0; i < 10; ++i) {
    const int before = asked;
    replica->replace(i % 2 == 0 ? patient() : other());
    EXPECT_TRUE(eventually([&] { return asked > before + 20; }));
  }
  over = true;
  asking.join();
}

TEST_F(RedisReplace, AWrongPasswordIsMended) {
  server_.command({"CONFIG", "SET", "requirepass", "right"});
  std::atomic<int> told_away{0};
  std::atomic<int> told_back{0};
  StoreRig::Options options = patient();
  options.loops = 3;
  options.store.hooks.on_degraded = [&](std::string_view, bool degraded, std::string_view) {
    ++(degraded ? told_away : told_back);
  };
  const std::string at = "127.0.0.1:" + std::to_string(server_.port());
  options.url = "redis://:wrong@" + at;
  StoreRig replica(options);
  ASSERT_TRUE(eventually([&] { return told_away > 0; }));
  options.url = "redis://:right@" + at;
  replica.replace(options);
  EXPECT_TRUE(replica.wait_until_degraded(false));
  EXPECT_TRUE(eventually([&] { return told_back == 1; }));
  EXPECT_EQ(told_away, 1);
  server_.command({"CONFIG", "SET", "requirepass", ""});
}

TEST_F(RedisReplace, AServerThatIsNotThereIsUsedAllTheSame) {
  const auto replica = rig(patient());
  other_.kill();
  StoreRig::Options gone = other();
  gone.store.timeout = std::chrono::milliseconds{50};
  replica->replace(gone);
  EXPECT_TRUE(replica->wait_until_degraded(true));
  Call call = call_of({{"b", limits({requests_per(kLong, 5)}), {{1, 1}}}}, OnStoreError::allow);
  EXPECT_EQ(acquire(*replica, call), Outcome::admitted);
  EXPECT_EQ(used("b"), 0);
}

TEST_F(RedisReplace, TheLastOfManyIsTheOneInUse) {
  const auto replica = rig(patient());
  for (int i = 0; i < 20; ++i) replica->replace(i % 2 == 0 ? patient() : other());
  EXPECT_TRUE(eventually([&] { return names(*replica) == std::vector{name_of(other_)}; }));
}

}  // namespace
}  // namespace stint::redis_testing
