// The server's time steps: nobody waits longer than a period, and one extra burst is the most.
#include <chrono>
#include <cstdint>
#include <string>

#include "tests/integration/redis_store_testing.h"

namespace stint::redis_testing {
namespace {

constexpr TimePoint kStart{std::chrono::sys_days{std::chrono::year{2026} / 3 / 1} +
                           std::chrono::hours{12} + std::chrono::seconds{30}};

class RedisClock : public RedisStoreTest,
                   public ::testing::WithParamInterface<std::chrono::seconds> {
 protected:
  RedisClock() {
    StoreRig::Options options = patient();
    options.store.scripts = &scripts_;
    set_time(kStart);
    for (int i = 0; i < 2; ++i) rigs_.push_back(rig(options));
  }
  void set_time(TimePoint now) {
    server_.command({"SET", "now", std::to_string(now.time_since_epoch().count())});
  }
  Call ask(const limit::LimitSetPtr& set, const std::string& key) {
    Call call = call_of({{key, set}}, OnStoreError::deny, kMinute);
    acquire(*rigs_[asked_++ % rigs_.size()], call);
    return call;
  }
  int admitted_of(int tries, const limit::LimitSetPtr& set, const std::string& key) {
    int admitted = 0;
    for (int i = 0; i < tries; ++i) {
      const Call call = ask(set, key);
      EXPECT_NE(call.record().outcome, Outcome::undecided);
      EXPECT_LE(call.slot().wait, kMinute);
      EXPECT_LE(call.slot().reset, 2 * kMinute);
      if (call.admitted()) ++admitted;
    }
    return admitted;
  }

  const store::Scripts scripts_{prelude_with_time_of("now")};
  std::vector<std::unique_ptr<StoreRig>> rigs_;
  std::size_t asked_ = 0;
};

TEST_P(RedisClock, Steps) {  // C23
  const std::vector<limit::LimitSetPtr> sets = {
      limits({requests_per(kMinute, 10)}),
      limits({requests_per(kMinute, 10, Algorithm::sliding_window)}),
      limits({requests_per(kMinute, 10, Algorithm::sliding_log)}),
      limits({store::token_bucket(10, kMinute, 10)}),
      limits({in_flight(10)}),
  };
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const std::string key = "p:" + std::to_string(i);
    SCOPED_TRACE(key);
    set_time(kStart);
    EXPECT_EQ(admitted_of(3, sets[i], key), 3);
    set_time(kStart + GetParam());
    EXPECT_TRUE(ask(sets[i], key).admitted()) << "somebody at 3 of 10 is not locked out";
    EXPECT_LE(admitted_of(30, sets[i], key), 10) << "one extra burst at most";
    // And in the next period it is as if nothing had happened.
    set_time(kStart + GetParam() + 2 * kMinute);
    EXPECT_EQ(admitted_of(30, sets[i], key), 10);
    EXPECT_EQ(admitted_of(5, sets[i], key), 0);
  }
}

std::string name_of(const ::testing::TestParamInfo<std::chrono::seconds>& info) {
  return (info.param.count() < 0 ? "Back" : "Forward") +
         std::to_string(std::abs(info.param.count()));
}

INSTANTIATE_TEST_SUITE_P(By, RedisClock,
                         ::testing::Values(std::chrono::seconds{-11}, std::chrono::hours{-1},
                                           std::chrono::hours{1}),
                         name_of);

}  // namespace
}  // namespace stint::redis_testing
