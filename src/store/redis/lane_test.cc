// What a lane does with calls that certainly did not run: with targets that are none.
#include "store/redis/lane.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/event_loop.h"
#include "net/loop_testing.h"
#include "store/redis/scripts.h"

namespace stint::store {
namespace {

const std::vector<Limit> kFive = {requests_per(std::chrono::hours{1}, 5)};

using std::chrono::milliseconds;

class FakeTarget final : public redis::Target {
 public:
  explicit FakeTarget(std::string name) : name_(std::move(name)) {}

  struct Asked {
    std::vector<std::string> keys;
    double not_after = 0;  // of the plan, store time in microseconds
    redis::CallDone done;
  };
  void call(const redis::Script& /*script*/, std::span<const std::string_view> keys,
            std::span<const std::string_view> args, Duration /*deadline*/,
            redis::CallDone done) override {
    Asked one;
    one.keys.assign(keys.begin(), keys.end());
    std::memcpy(&one.not_after, args[0].data(), sizeof one.not_after);
    one.done = std::move(done);
    asked.push_back(std::move(one));
    if (answer_at_once) answer(*answer_at_once);
  }
  void command(std::span<const std::string_view> /*words*/, Duration /*deadline*/,
               redis::CallDone /*done*/) override {}
  [[nodiscard]] bool available() const noexcept override { return true; }
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }

  // Answers the first that is not answered yet.
  void answer(const std::string& error) {
    Asked first = std::move(asked.front());
    asked.pop_front();
    ++calls;
    first.done(std::unexpected(redis::classify(error)));
  }

  std::deque<Asked> asked;
  int calls = 0;  // that were answered
  std::optional<std::string> answer_at_once;

 private:
  const std::string name_;
};

class LaneTest : public ::testing::Test {
 protected:
  struct Place {
    explicit Place(std::string name) : target(std::move(name)) {}
    FakeTarget target;
    ServerClock clock;
    RedisTargetHooks hooks;
    std::unique_ptr<Lane> lane;
  };

  LaneTest() {
    for (Place* place : {&a_, &b_}) {
      // They are hours apart.
      const TimePoint now{std::chrono::hours{place == &a_ ? 1'000 : 2'000}};
      place->clock.learn(now, loop_.now(), loop_.now());
      LaneHooks hooks;
      hooks.target = &place->hooks;
      hooks.redirected = [this](std::string_view key, const redis::CallError& error) {
        EXPECT_EQ(key, "p:a");
        ++redirected_;
        if (error.text.ends_with("a:1")) return a_.lane.get();
        return error.text.ends_with("b:1") ? b_.lane.get() : nullptr;
      };
      place->lane =
          std::make_unique<Lane>(loop_, place->target, place->clock, scripts_, "t:rl:1:", births_,
                                 LaneOptions{.timeout = milliseconds{100}}, std::move(hooks));
    }
  }

  struct Waiting {
    AdmissionRecord record;
    std::optional<Decided> decided;
  };
  // Asks the lane for one.
  Waiting& ask(Lane& lane) {
    Waiting& waiting = waiting_.emplace_back();
    BucketSlot bucket;
    bucket.key = bucket.text = "p:a";
    bucket.policy = "p";
    bucket.limits = limits_;
    waiting.record.buckets.push_back(std::move(bucket));
    waiting.record.slots.push_back({.need = 1, .charge = 1});
    lane.ask(waiting.record, {0}, false, [this, &waiting](Decided decided) {
      EXPECT_FALSE(waiting.decided) << "answered twice";
      waiting.decided = std::move(decided);
      loop_.stop();
    });
    return waiting;
  }
  // Runs the loop until it is answered, or something is asked of `target` again.
  void run_until(const std::function<bool()>& condition) {
    bool expired = false;
    net::Deadline guard(loop_.deadlines(), [&] { expired = true; });
    guard.arm(loop_.now() + std::chrono::seconds{20});
    while (!condition() && !expired) net::run_what_is_ready(loop_);
    EXPECT_FALSE(expired);
  }

  net::EventLoop loop_;
  const Scripts scripts_;
  std::uint64_t births_ = 1;
  limit::LimitSetPtr limits_ = limit::LimitSet::create(kFive).value();
  std::deque<Waiting> waiting_;
  int redirected_ = 0;
  Place a_{"a"};
  Place b_{"b"};
};

double us(TimePoint time) { return static_cast<double>(time.time_since_epoch().count()); }

TEST_F(LaneTest, WhatWasMovedGoesOnByTheClockOfWhereItGoes) {
  Waiting& waiting = ask(*a_.lane);
  ASSERT_EQ(a_.target.asked.size(), 1U);
  const double fence = a_.target.asked[0].not_after;
  EXPECT_LT(fence, us(TimePoint{std::chrono::hours{1'001}}));
  a_.target.answer("MOVED 1 b:1");
  EXPECT_FALSE(waiting.decided);
  ASSERT_EQ(b_.target.asked.size(), 1U);
  EXPECT_EQ(b_.target.asked[0].keys, std::vector<std::string>{"t:rl:1:{p:a}"});
  const double moved = b_.target.asked[0].not_after - us(TimePoint{std::chrono::hours{2'000}});
  EXPECT_NEAR(moved, fence - us(TimePoint{std::chrono::hours{1'000}}), 20'000)
      << "until the same instant";
  b_.target.answer("ERR of another kind");
  ASSERT_TRUE(waiting.decided);
  EXPECT_EQ(waiting.decided->fate, Answer::Fate::undecided);
  EXPECT_FALSE(waiting.decided->uncharged);
  EXPECT_TRUE(a_.lane->idle());
  EXPECT_TRUE(b_.lane->idle());
}

TEST_F(LaneTest, HopsAreBounded) {
  a_.target.answer_at_once = "MOVED 1 b:1";
  b_.target.answer_at_once = "ASK 1 a:1";
  Waiting& waiting = ask(*a_.lane);
  ASSERT_TRUE(waiting.decided);
  EXPECT_EQ(waiting.decided->fate, Answer::Fate::undecided);
  EXPECT_TRUE(waiting.decided->uncharged) << "it certainly did not run";
  EXPECT_EQ(a_.target.calls + b_.target.calls, static_cast<int>(Lane::kMostHops) + 1);
}

TEST_F(LaneTest, NowhereToGoIsAnError) {
  Waiting& waiting = ask(*a_.lane);
  a_.target.answer("MOVED 1 c:1");
  ASSERT_TRUE(waiting.decided);
  EXPECT_TRUE(waiting.decided->uncharged);
  EXPECT_EQ(waiting.decided->why, "a: MOVED 1 c:1");
}

TEST_F(LaneTest, TryAgainIsTriedAgainALittleLater) {
  Waiting& waiting = ask(*a_.lane);
  const Duration began = loop_.now();
  a_.target.answer("TRYAGAIN Multiple keys request during rehashing of slot");
  EXPECT_TRUE(a_.target.asked.empty()) << "not at once";
  // Who comes meanwhile waits too, and goes with it.
  Waiting& other = ask(*a_.lane);
  EXPECT_TRUE(a_.target.asked.empty());
  run_until([&] { return !a_.target.asked.empty(); });
  EXPECT_GE(loop_.now() - began, Lane::kTryAgainAfter);
  EXPECT_EQ(a_.target.asked.size(), 1U);
  EXPECT_FALSE(waiting.decided);
  a_.target.answer("CLUSTERDOWN The cluster is down");
  EXPECT_TRUE(waiting.decided && other.decided);
  EXPECT_EQ(redirected_, 0);
}

TEST_F(LaneTest, TryAgainEndsWithTheDeadline) {
  a_.target.answer_at_once = "TRYAGAIN not yet";
  const Duration began = loop_.now();
  Waiting& waiting = ask(*a_.lane);
  run_until([&] { return waiting.decided.has_value(); });
  EXPECT_TRUE(waiting.decided->uncharged);
  EXPECT_EQ(waiting.decided->why, "a: TRYAGAIN not yet");
  EXPECT_GE(loop_.now() - began, milliseconds{100} - 2 * Lane::kTryAgainAfter);
  EXPECT_GT(a_.target.calls, 2);
  EXPECT_LE(a_.target.calls, 21);
}

TEST_F(LaneTest, ChangesGoOnToo) {
  Change change;
  change.key = "p:a";
  change.limits = limits_;
  change.steps.push_back({Action::take, (*limits_)[0].name, 1, 0});
  std::optional<Changed> changed;
  a_.lane->change(std::move(change), [&](Changed what) { changed = std::move(what); });
  a_.target.answer("ASK 1 b:1");
  ASSERT_EQ(b_.target.asked.size(), 1U);
  EXPECT_FALSE(changed);
  b_.target.answer("MOVED 1 c:1");
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->kind, Changed::Kind::not_run);
  EXPECT_EQ(changed->change.key, "p:a") << "it is here again";
}

}  // namespace
}  // namespace stint::store
