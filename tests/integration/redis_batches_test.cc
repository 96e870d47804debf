// Group commit: what queues goes together in few calls, and everybody gets the right answer.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/integration/redis_store_testing.h"
#include "tests/model/reference_store.h"

namespace stint::redis_testing {
namespace {

using store::AdmissionRecord;
using store::LimitSlot;

constexpr TimePoint kNow{std::chrono::sys_days{std::chrono::year{2026} / 3 / 1} + kMinute};

class RedisBatches : public RedisStoreTest {
 protected:
  // While it is paused, all but the first call queues: one call may be under way.
  [[nodiscard]] StoreRig::Options one_at_a_time() const {
    StoreRig::Options options = patient();
    options.store.calls_in_flight = 1;
    return options;
  }

  // What `queue` starts is sent when all of it is there.
  template <class Queue>
  void together(Queue queue) {
    server_.pause();
    queue();
    server_.resume();
  }
};

TEST_F(RedisBatches, OneHotBucketTakesFewCalls) {
  const auto replica = rig(one_at_a_time());
  const auto set = limits({requests_per(kLong, 300)});
  std::deque<Call> calls;
  for (int i = 0; i < 400; ++i) calls.push_back(call_of({{"p:a", set}}));
  const std::int64_t before = script_calls();
  Answers answers;
  together([&] {
    for (Call& call : calls) replica->store().acquire(call.record(), answers.expect());
  });
  answers.wait();
  // The first one by itself, the others 64 at a time; maybe an announcement.
  EXPECT_LE(script_calls() - before, 1 + 7 + 1);
  int admitted = 0;
  for (const Call& call : calls) {
    if (call.admitted()) ++admitted;
    // They were made one after another, and are answered so.
    EXPECT_EQ(call.slot().remaining, 300 - admitted);
    EXPECT_EQ(call.slot().verdict, call.admitted() ? Verdict::fits : Verdict::refused);
    EXPECT_EQ(call.slot().wait > Duration::zero(), !call.admitted());
  }
  EXPECT_EQ(admitted, 300);
  EXPECT_EQ(used("p:a"), 300);
}

TEST_F(RedisBatches, ACallCarriesAtMost256Buckets) {
  const auto replica = rig(one_at_a_time());
  const auto set = limits({requests_per(kLong, 1)});
  std::deque<Call> calls;
  for (int i = 0; i < 100; ++i) {
    std::vector<BucketAsk> buckets;
    buckets.reserve(10);
    for (int k = 0; k < 10; ++k) {
      buckets.push_back({"p" + std::to_string(k) + ":" + std::to_string(i), set});
    }
    calls.push_back(call_of(buckets));
  }
  const std::int64_t before = script_calls();
  Answers answers;
  together([&] {
    for (Call& call : calls) replica->store().acquire(call.record(), answers.expect());
  });
  answers.wait();
  for (const Call& call : calls) EXPECT_TRUE(call.admitted());
  const std::int64_t made = script_calls() - before;
  EXPECT_GE(made, 1 + 4);
  EXPECT_LE(made, 1 + 4 + 1);
}

// A replica beside the reference model, both at one instant.
class RedisMixedBatches : public RedisBatches {
 protected:
  RedisMixedBatches() {
    StoreRig::Options options = one_at_a_time();
    options.store.scripts = &scripts_;
    server_.command({"SET", "now", std::to_string(kNow.time_since_epoch().count())});
    replica_ = rig(std::move(options));
  }

  // The same admission twice: for Redis and for the model.
  struct Pair {
    Call redis;
    Call model;
  };
  Pair& pair(const std::vector<BucketAsk>& buckets) {
    const std::uint64_t id = next_id_++;
    return pairs_.emplace_back(Call(id, kTtl, buckets), Call(id, kTtl, buckets));
  }

  [[nodiscard]] std::vector<BucketAsk> random_ask() {
    std::vector<BucketAsk> buckets;
    for (std::size_t policy = 0; policy < policies_.size(); ++policy) {
      if (random(2) == 0 && (policy + 1 < policies_.size() || !buckets.empty())) continue;
      BucketAsk ask;
      ask.key = "p" + std::to_string(policy) + ":" + std::to_string(random(3));
      ask.limits = policies_[policy];
      ask.shadow = random(4) == 0;
      ask.asks.clear();
      for (const limit::Spec& spec : ask.limits->specs()) {
        const bool lease = spec.name.algorithm == Algorithm::concurrency;
        Ask one;
        one.need = lease ? 1 : random(4);
        one.charge = lease ? 1 : random(4);
        one.skip = random(8) == 0;
        ask.asks.push_back(one);
      }
      buckets.push_back(std::move(ask));
    }
    return buckets;
  }
  std::int64_t random(std::int64_t below) {
    return static_cast<std::int64_t>(dice_() % static_cast<std::uint64_t>(below));
  }

  static constexpr Duration kTtl = std::chrono::seconds{30};
  const store::Scripts scripts_{prelude_with_time_of("now")};
  const std::vector<limit::LimitSetPtr> policies_ = {
      limits({requests_per(kMinute, 40), tokens_per(kHour, 60, Algorithm::sliding_window)}),
      limits({requests_per(kMinute, 30, Algorithm::sliding_log), in_flight(15)}),
      limits({store::token_bucket(10, kMinute, 35)}),
  };
  std::mt19937_64 dice_{20261130};
  std::uint64_t next_id_ = 1;
  std::deque<Pair> pairs_;
  std::unique_ptr<StoreRig> replica_;
  model::ReferenceStore model_{[] { return kNow; }};
};

TEST_F(RedisMixedBatches, AnswerAsTheModel) {
  const auto nothing = [] {};
  // Something to settle and to renew.
  for (int i = 0; i < 60; ++i) {
    Pair& made = pair(random_ask());
    acquire(*replica_, made.redis);
    model_.acquire(made.model.record(), nothing);
    ASSERT_NO_FATAL_FAILURE(expect_same(made.redis.record(), made.model.record()));
  }
  std::vector<Pair*> settled;
  std::vector<AdmissionRecord*> renewed;
  std::vector<AdmissionRecord*> renewed_in_model;
  for (Pair& made : pairs_) {
    if (!made.redis.admitted()) continue;
    if (random(2) == 0) {
      settled.push_back(&made);
      for (std::size_t i = 0; i < made.redis.record().slots.size(); ++i) {
        const std::int64_t amount = random(6);
        const bool whole = made.redis.record().slots[i].charged.amount == 1;
        made.redis.record().slots[i].actual = whole ? 0 : amount;
        made.model.record().slots[i].actual = whole ? 0 : amount;
      }
    } else {
      renewed.push_back(&made.redis.record());
      renewed_in_model.push_back(&made.model.record());
    }
  }
  ASSERT_GT(settled.size(), 10U);
  ASSERT_GT(renewed.size(), 10U);

  Pair& first = pair(random_ask());
  std::vector<std::pair<Pair*, bool>> asked;
  asked.reserve(150);
  for (int i = 0; i < 150; ++i) asked.emplace_back(&pair(random_ask()), random(4) == 0);
  const std::int64_t before = script_calls();
  Answers answers;
  together([&] {
    replica_->store().acquire(first.redis.record(), answers.expect());
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (i < settled.size()) {
        replica_->store().settle(settled[i]->redis.record(),
                                 [done = answers.expect()](const Result<void>& result) mutable {
                                   EXPECT_TRUE(result);
                                   done();
                                 });
      }
      if (i == 5) replica_->store().renew(renewed, answers.expect());
      AdmissionRecord& record = asked[i].first->redis.record();
      if (asked[i].second) {
        replica_->store().peek(record, answers.expect());
      } else {
        replica_->store().acquire(record, answers.expect());
      }
    }
  });
  answers.wait();
  EXPECT_LE(script_calls() - before, 1 + 3 + 1);

  // What the first call did not take went in the next: the changes, then the admissions.
  model_.acquire(first.model.record(), nothing);
  for (Pair* one : settled) model_.settle(one->model.record(), [](const Result<void>&) {});
  model_.renew(renewed_in_model, nothing);
  int admitted = 0;
  for (const auto& [one, look] : asked) {
    if (look) {
      model_.peek(one->model.record(), nothing);
    } else {
      model_.acquire(one->model.record(), nothing);
    }
    expect_same(one->redis.record(), one->model.record());
    if (one->redis.admitted()) ++admitted;
  }
  EXPECT_GT(admitted, 20);
  EXPECT_LT(admitted, 130);
}

}  // namespace
}  // namespace stint::redis_testing
