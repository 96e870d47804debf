// Buckets with fixed windows: in a call that asks them once they go a way of their own, which must
// not show.
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/integration/redis_store_testing.h"
#include "tests/model/reference_store.h"

namespace stint::redis_testing {
namespace {

using store::AdmissionRecord;
using store::LimitSlot;

class RedisWindows : public RedisStoreTest {
 protected:
  [[nodiscard]] std::string held(std::string_view bucket) {
    const auto reply = server_.command({"GET", counters_key(bucket)});
    return std::string(reply.text());
  }
  [[nodiscard]] std::chrono::milliseconds lives(std::string_view bucket) {
    return std::chrono::milliseconds{server_.command({"PTTL", counters_key(bucket)}).integer()};
  }
};

// What is written into a value that is there leaves its time to live alone.
TEST_F(RedisWindows, KeepTheirTimeToLive) {
  const auto replica = rig(patient());
  const auto one = limits({requests_per(kLong, 100)});
  const auto two = limits({requests_per(kLong, 100), tokens_per(kLong, 100)});
  for (const auto& [key, set] : {std::pair("one", one), std::pair("two", two)}) {
    Call call = call_of({{key, set}});
    ASSERT_EQ(acquire(*replica, call), Outcome::admitted) << key;
    const std::string first = held(key);
    const auto whole = lives(key);
    ASSERT_GT(whole.count(), 1000);
    // Shorter than it would be set: that tells whether it was.
    const std::int64_t shorter = whole.count() / 2;
    server_.command({"PEXPIRE", counters_key(key), std::to_string(shorter)});
    Call again = call_of({{key, set}});
    ASSERT_EQ(acquire(*replica, again), Outcome::admitted) << key;
    EXPECT_LE(lives(key).count(), shorter) << key;
    EXPECT_GT(lives(key).count(), 0) << key;
    EXPECT_EQ(held(key).size(), first.size()) << key;
    EXPECT_NE(held(key), first) << key;
    EXPECT_EQ(used(key), 2) << key;
  }
}

// A replica beside the reference model, at an instant that the test sets.
class RedisWindowBatches : public RedisWindows {
 protected:
  RedisWindowBatches() {
    StoreRig::Options options = patient();
    options.store.calls_in_flight = 1;
    options.store.scripts = &scripts_;
    set_time(now_);
    replica_ = rig(std::move(options));
  }

  void set_time(TimePoint now) {
    now_ = now;
    server_.command({"SET", "now", std::to_string(now.time_since_epoch().count())});
  }

  // The same admission twice: for Redis and for the model.
  struct Pair {
    Call redis;
    Call model;
    bool look = false;
  };
  Pair& pair() {
    std::vector<BucketAsk> buckets = {random_bucket(24)};
    if (random(6) == 0) buckets.push_back(random_bucket(24));
    if (buckets.size() == 2 && buckets[0].key == buckets[1].key) buckets.pop_back();
    const std::uint64_t id = next_id_++;
    return pairs_.emplace_back(Call(id, kTtl, buckets), Call(id, kTtl, buckets), random(10) == 0);
  }
  [[nodiscard]] BucketAsk random_bucket(std::int64_t buckets) {
    const std::int64_t which = random(buckets);
    BucketAsk ask;
    ask.key = "p:" + std::to_string(which);
    // The last ones never go the short way.
    ask.limits = which < 12 ? one_ : which < 20 ? two_ : mixed_;
    ask.shadow = random(8) == 0;
    ask.asks.clear();
    for (std::size_t i = 0; i < ask.limits->size(); ++i) {
      Ask one;
      if (random(3) == 0) {
        one.need = random(5);
        one.charge = random(5);
        one.skip = random(8) == 0;
      }
      ask.asks.push_back(one);
    }
    return ask;
  }
  std::int64_t random(std::int64_t below) {
    return static_cast<std::int64_t>(dice_() % static_cast<std::uint64_t>(below));
  }

  void ask(Pair& pair, Answers& answers) {
    if (pair.look) {
      replica_->store().peek(pair.redis.record(), answers.expect());
    } else {
      replica_->store().acquire(pair.redis.record(), answers.expect());
    }
  }
  void ask_model(Pair& pair) {
    if (pair.look) {
      model_.peek(pair.model.record(), [] {});
    } else {
      model_.acquire(pair.model.record(), [] {});
    }
  }

  static constexpr Duration kTtl = std::chrono::seconds{30};
  TimePoint now_{std::chrono::sys_days{std::chrono::year{2026} / 3 / 1} + kMinute / 2};
  const store::Scripts scripts_{prelude_with_time_of("now")};
  const limit::LimitSetPtr one_ = limits({requests_per(kMinute, 20)});
  const limit::LimitSetPtr two_ = limits({requests_per(kMinute, 20), tokens_per(kHour, 60)});
  const limit::LimitSetPtr mixed_ =
      limits({requests_per(kMinute, 20), tokens_per(kHour, 60, Algorithm::sliding_window)});
  std::mt19937_64 dice_{20261201};
  std::uint64_t next_id_ = 1;
  std::deque<Pair> pairs_;
  std::unique_ptr<StoreRig> replica_;
  model::ReferenceStore model_{[this] { return now_; }};
};

// New and known ones, asked once and more often, alone and together with others, looked at,
// settled, full; in the same window, the next, one long after, and one that was before.
TEST_F(RedisWindowBatches, AnswerAsTheModel) {
  const std::vector<Duration> steps = {
      Duration::zero(), kMinute / 4, kMinute, Duration::zero(), kHour, -2 * kMinute, kMinute / 4};
  std::vector<Pair*> open;
  int refused = 0;
  for (const Duration step : steps) {
    set_time(now_ + step);
    // By this the replica learns of it: else the first call would come too late, and once more.
    Call clock = call_of({{"q:clock", one_}});
    acquire(*replica_, clock);
    for (Pair* made : open) {
      for (std::size_t i = 0; i < made->redis.record().slots.size(); ++i) {
        const std::int64_t actual = random(3);
        made->redis.record().slots[i].actual = actual;
        made->model.record().slots[i].actual = actual;
      }
    }
    Pair& first = pair();
    std::vector<Pair*> asked;
    for (int i = 0; i < 140; ++i) asked.push_back(&pair());
    Answers answers;
    server_.pause();
    ask(first, answers);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (i < open.size()) {
        replica_->store().settle(open[i]->redis.record(),
                                 [done = answers.expect()](const Result<void>& result) mutable {
                                   EXPECT_TRUE(result);
                                   done();
                                 });
      }
      ask(*asked[i], answers);
    }
    server_.resume();
    answers.wait();

    // What the first call did not take went in the next: the changes, then the admissions.
    ask_model(first);
    for (Pair* made : open) model_.settle(made->model.record(), [](const Result<void>&) {});
    open.clear();
    expect_same(first.redis.record(), first.model.record());
    for (Pair* made : asked) {
      ask_model(*made);
      expect_same(made->redis.record(), made->model.record());
      ASSERT_FALSE(HasFailure());
      if (!made->redis.admitted()) ++refused;
      if (made->redis.admitted() && !made->look && open.size() < 20) open.push_back(made);
    }
  }
  EXPECT_GT(refused, 20);
  EXPECT_LT(refused, 600);
}

}  // namespace
}  // namespace stint::redis_testing
