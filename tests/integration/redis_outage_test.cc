// The outage rule: what is decided while Redis is away, how long callers wait for it, and what
// Redis is told when it is back.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/integration/redis_store_testing.h"

namespace stint::redis_testing {
namespace {

constexpr Duration kTimeout = std::chrono::milliseconds{100};
// For machines that have other things to do, too.
constexpr int kPatience = 5;
constexpr Duration kBackWithin = std::chrono::seconds{2};

enum class Fault : std::uint8_t { killed, stopped, refused, stalled };

class RedisOutage : public RedisStoreTest {
 protected:
  [[nodiscard]] StoreRig::Options quick(Fault fault) {
    const bool by_gate = fault == Fault::refused || fault == Fault::stalled;
    StoreRig::Options options = by_gate ? patient_through(gate_) : patient();
    options.store.timeout = kTimeout;
    options.store.hooks = told_.hooks();
    return options;
  }

  void begin(Fault fault) {
    switch (fault) {
      case Fault::killed:
        return server_.kill();
      case Fault::stopped:
        return server_.pause();
      case Fault::refused:
        gate_.refuse();
        return gate_.close_all();
      case Fault::stalled:
        return gate_.stall();
    }
  }
  void end(Fault fault) {
    switch (fault) {
      case Fault::killed:
        return server_.restart();
      case Fault::stopped:
        return server_.resume();
      case Fault::refused:
      case Fault::stalled:
        return gate_.pass();
    }
  }

  // What a reconnect brings about: whatever is still to be carried back is.
  void reconnect(StoreRig& replica) {
    const std::string before = connection();
    server_.command({"CLIENT", "KILL", "TYPE", "normal"});
    EXPECT_TRUE(eventually([&] {
      const std::string now = connection();
      return !now.empty() && now != before;
    }));
    EXPECT_TRUE(replica.wait_until_degraded(false));
  }
  // What names the connection of a replica with one event loop; empty: there is none.
  std::string connection() {
    const redis::Reply clients = server_.command({"CLIENT", "LIST"});
    const std::string_view all = clients.text();
    const std::size_t at = all.find(" name=stint ");
    if (at == std::string_view::npos) return {};
    const std::size_t line = all.rfind('\n', at) + 1;  // 0 if it is the first
    return std::string(all.substr(line, all.find(' ', line) - line));
  }

  Told told_;
  Gate gate_{server_.port()};
};

// Nobody takes a page that is short for the whole.
class RedisOutageSweeps : public RedisOutage, public ::testing::WithParamInterface<Fault> {};

TEST_P(RedisOutageSweeps, SayThatTheServerWasNotReached) {
  const auto replica = rig(quick(GetParam()));
  const auto set = limits({requests_per(kLong, 10)});
  for (const char* key : {"p:a", "p:b"}) {
    Call call = call_of({{key, set}});
    ASSERT_EQ(acquire(*replica, call), Outcome::admitted);
  }
  const auto list = [&] {
    BucketPage page;
    Answers answers;
    replica->store().list("*", 0, 100, page, answers.expect());
    answers.wait();
    return page;
  };
  const auto reset = [&] {
    store::ResetPage page;
    Answers answers;
    replica->store().reset("*", 0, page, answers.expect());
    answers.wait();
    return page;
  };
  const std::string server = replica->store().health().at(0).name;
  begin(GetParam());
  const BucketPage listed = list();
  EXPECT_TRUE(listed.buckets.empty());
  EXPECT_EQ(listed.next, 0U);
  ASSERT_EQ(listed.unreached.size(), 1U);
  EXPECT_EQ(listed.unreached[0].where, server);
  EXPECT_NE(listed.unreached[0].why, "");
  const store::ResetPage cleared = reset();
  EXPECT_EQ(cleared.removed, 0U);
  EXPECT_EQ(cleared.next, 0U);
  ASSERT_EQ(cleared.unreached.size(), 1U);
  EXPECT_EQ(cleared.unreached[0].where, server);
  end(GetParam());

  if (GetParam() == Fault::killed) return;  // it came back empty
  EXPECT_TRUE(eventually([&] { return list().unreached.empty(); }));
  EXPECT_EQ(list().buckets.size(), 2U);
  const store::ResetPage again = reset();
  EXPECT_EQ(again.removed, 2U);
  EXPECT_TRUE(again.unreached.empty());
}

INSTANTIATE_TEST_SUITE_P(, RedisOutageSweeps,
                         ::testing::Values(Fault::killed, Fault::stopped, Fault::refused,
                                           Fault::stalled));

class RedisOutageRules : public RedisOutage,
                         public ::testing::WithParamInterface<std::tuple<OnStoreError, Fault>> {};

TEST_P(RedisOutageRules, DecideWithoutWaitingAndAreCarriedBack) {  // C07
  const auto [rule, fault] = GetParam();
  const auto replica = rig(quick(fault));
  const auto set = limits({requests_per(kLong, 10)});
  for (int i = 0; i < 4; ++i) {
    Call call = call_of({{"p:a", set}}, rule);
    ASSERT_EQ(acquire(*replica, call), Outcome::admitted);
  }

  begin(fault);
  int admitted = 0;
  int waited = 0;
  for (int i = 0; i < 30; ++i) {
    Call call = call_of({{"p:a", set}}, rule);
    const Duration before = system_clock().steady_now();
    acquire(*replica, call);
    const Duration span = system_clock().steady_now() - before;
    EXPECT_LE(span, kPatience * (kTimeout + std::chrono::milliseconds{10}));
    if (span >= kTimeout / 2) ++waited;
    if (call.admitted()) ++admitted;
    if (rule == OnStoreError::deny) {
      EXPECT_EQ(call.record().outcome, Outcome::undecided);
      EXPECT_EQ(call.record().error.code, ErrorCode::unavailable);
      EXPECT_FALSE(call.bucket().charged);
    } else {
      EXPECT_NE(call.record().outcome, Outcome::undecided);
    }
  }
  EXPECT_LE(waited, 5) << "the breaker opens after three failures";
  EXPECT_TRUE(replica->store().health().at(0).degraded);
  EXPECT_NE(replica->store().health().at(0).text, "");
  EXPECT_LT(system_clock().wall_now() - replica->store().health().at(0).since,
            std::chrono::minutes{5});
  EXPECT_EQ(told_.warnings_with("outage rule"), 1U) << told_.warnings();
  std::int64_t counted_here = 0;
  switch (rule) {
    case OnStoreError::local:
      EXPECT_EQ(admitted, 6);
      counted_here = 6;
      break;
    case OnStoreError::local_full:
      EXPECT_EQ(admitted, 10);
      counted_here = 10;
      break;
    case OnStoreError::allow:
      EXPECT_EQ(admitted, 30);
      break;
    case OnStoreError::deny:
      EXPECT_EQ(admitted, 0);
      break;
  }

  end(fault);
  const Duration back = system_clock().steady_now();
  EXPECT_TRUE(replica->wait_until_degraded(false));
  EXPECT_LE(system_clock().steady_now() - back, kBackWithin);
  // The first were sent, and never answered: they may stand in Redis, and are not told once more.
  const std::int64_t told =
      std::max<std::int64_t>(counted_here - static_cast<std::int64_t>(told_.unknown_charges()), 0);
  const std::int64_t in_redis = (fault == Fault::killed ? 0 : 4) + told;
  EXPECT_TRUE(eventually([&] { return used("p:a") == in_redis; })) << used("p:a");
  Call next = call_of({{"p:a", set}}, rule);
  EXPECT_EQ(acquire(*replica, next), in_redis < 10 ? Outcome::admitted : Outcome::refused);
  EXPECT_EQ(next.bucket().local, 0U) << "Redis decides again";
  reconnect(*replica);
  Call last = call_of({{"p:a", set}}, rule);
  acquire(*replica, last);
  EXPECT_EQ(used("p:a"), in_redis + (next.admitted() ? 1 : 0) + (last.admitted() ? 1 : 0))
      << "carried back once";
}

std::string name_of(const ::testing::TestParamInfo<RedisOutageRules::ParamType>& info) {
  constexpr const char* kRules[] = {"Local", "LocalFull", "Allow", "Deny"};
  constexpr const char* kFaults[] = {"Killed", "Stopped", "Refused", "Stalled"};
  return std::string(kRules[static_cast<int>(std::get<0>(info.param))]) +
         kFaults[static_cast<int>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(
    All, RedisOutageRules,
    ::testing::Combine(::testing::Values(OnStoreError::local, OnStoreError::local_full,
                                         OnStoreError::allow, OnStoreError::deny),
                       ::testing::Values(Fault::killed, Fault::stopped, Fault::refused,
                                         Fault::stalled)),
    name_of);

TEST_F(RedisOutage, ThreeReplicasTogetherStayNearTheQuotaAndAllOfItIsCarriedBack) {
  std::vector<std::unique_ptr<StoreRig>> rigs;
  for (int i = 0; i < 3; ++i) {
    StoreRig::Options options = patient_through(gate_);
    options.loops = 2;
    options.store.hooks = told_.hooks();
    rigs.push_back(rig(std::move(options)));
  }
  // They announce themselves anew, and hear of each other.
  gate_.close_all();
  ASSERT_TRUE(eventually([&] { return gate_.accepted() >= 12; }));
  for (const auto& rig : rigs) {
    ASSERT_TRUE(rig->wait_until_degraded(false));
    ASSERT_EQ(rig->store().replicas(), 3);
  }

  const auto set = limits({requests_per(kLong, 100)});
  std::atomic<int> admitted{0};
  const auto ask = [&](StoreRig& on) {
    Call call = call_of({{"p:a", set}}, OnStoreError::local);
    if (acquire(on, call) == Outcome::admitted) ++admitted;
  };
  for (int i = 0; i < 42; ++i) ask(*rigs[static_cast<std::size_t>(i) % 3]);
  ASSERT_EQ(admitted, 42);

  begin(Fault::refused);
  for (const auto& rig : rigs) ASSERT_TRUE(rig->wait_until_degraded(true));
  on_threads(6, [&](int thread) {
    for (int i = 0; i < 200; ++i) ask(*rigs[static_cast<std::size_t>(thread) % 3]);
  });
  EXPECT_GE(admitted, 100);
  EXPECT_LE(admitted, 100 + 3 + 2) << "the last two were not heard of by all";
  const int then = admitted;

  end(Fault::refused);
  for (const auto& rig : rigs) ASSERT_TRUE(rig->wait_until_degraded(false));
  const auto unknown = static_cast<std::int64_t>(told_.unknown_charges());
  EXPECT_TRUE(eventually([&] { return used("p:a") >= then - unknown; }));
  on_threads(6, [&](int thread) {
    for (int i = 0; i < 20; ++i) ask(*rigs[static_cast<std::size_t>(thread) % 3]);
  });
  EXPECT_LE(admitted, then + unknown) << "everybody knows that it is used up";
  EXPECT_LE(used("p:a"), admitted);
  EXPECT_GE(used("p:a"), admitted - unknown) << told_.warnings();
}

TEST_F(RedisOutage, AtLeastOneIsAdmittedByEveryReplica) {
  StoreRig::Options options = quick(Fault::refused);
  options.store.replicas = 1000;
  begin(Fault::refused);
  StoreRig replica(std::move(options));
  for (int i = 0; i < 5; ++i) {
    Call call = call_of({{"p:a", limits({requests_per(kLong, 10)})}}, OnStoreError::local);
    EXPECT_EQ(acquire(replica, call), i == 0 ? Outcome::admitted : Outcome::refused);
  }
}

TEST_F(RedisOutage, AServerThatIsAwayAtTheStartIsFoundLater) {
  server_.kill();
  StoreRig replica(quick(Fault::killed));
  const auto set = limits({requests_per(kLong, 10)});
  Call before = call_of({{"p:a", set}}, OnStoreError::local);
  EXPECT_EQ(acquire(replica, before), Outcome::admitted);
  EXPECT_NE(before.bucket().local, 0U);
  server_.restart();
  ASSERT_TRUE(replica.wait_until_degraded(false));
  EXPECT_TRUE(eventually([&] { return used("p:a") == 1; }));
  Call after = call_of({{"p:a", set}}, OnStoreError::deny);
  EXPECT_EQ(acquire(replica, after), Outcome::admitted);
  EXPECT_EQ(after.slot().remaining, 8);
}

TEST_F(RedisOutage, WindowsThatAreOverAreNotCarriedBack) {
  const auto replica = rig(quick(Fault::refused));
  const auto set = limits({requests_per(kLong, 10), requests_per(kSecond, 10)});
  begin(Fault::refused);
  ASSERT_TRUE(replica->wait_until_degraded(true));
  Call call = call_of({{"p:a", set}}, OnStoreError::local);
  ASSERT_EQ(acquire(*replica, call), Outcome::admitted);
  const TimePoint end_of_window = call.record().now + kSecond;
  ASSERT_TRUE(eventually([&] {
    Call look = call_of({{"p:a", set}}, OnStoreError::local);
    peek(*replica, look);
    return look.record().now >= end_of_window;
  }));
  end(Fault::refused);
  ASSERT_TRUE(replica->wait_until_degraded(false));
  EXPECT_TRUE(eventually([&] { return used("p:a") == 1; }));
  EXPECT_EQ(used("p:a", 1), 0);
}

TEST_F(RedisOutage, WhatHasAnIdIsCarriedBackByIt) {
  const auto replica = rig(quick(Fault::refused));
  const auto set = limits({in_flight(10), requests_per(kLong, 10, Algorithm::sliding_log)});
  begin(Fault::refused);
  ASSERT_TRUE(replica->wait_until_degraded(true));
  std::deque<Call> calls;
  for (int i = 0; i < 4; ++i) {
    calls.push_back(call_of({{"p:a", set}}, OnStoreError::local));
    ASSERT_EQ(acquire(*replica, calls.back()), Outcome::admitted);
  }
  EXPECT_TRUE(give_back(*replica, calls[0])) << "never in Redis";
  end(Fault::refused);
  ASSERT_TRUE(replica->wait_until_degraded(false));
  EXPECT_TRUE(eventually([&] { return leases("p:a") == 3; }));
  EXPECT_TRUE(eventually([&] { return count_of(log_key("p:a", kLong)) == 3; }));

  const auto expiry_of = [&](std::size_t at) {
    const redis::Reply all =
        server_.command({"ZRANGE", leases_key("p:a"), "0", "-1", "WITHSCORES"});
    for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
      const auto low = static_cast<unsigned char>(all[i].text().back());
      if (low == (calls[at].record().id.low & 0xFF)) return all[i + 1].number().value_or(0);
    }
    return std::int64_t{0};
  };
  EXPECT_EQ(expiry_of(0), 0);
  const std::int64_t before = expiry_of(1);
  EXPECT_GT(before, 0);
  renew(*replica, calls[1]);
  EXPECT_GT(expiry_of(1), before);
  EXPECT_TRUE(give_back(*replica, calls[2]));
  EXPECT_EQ(expiry_of(2), 0);
  EXPECT_EQ(count_of(log_key("p:a", kLong)), 2);
  EXPECT_TRUE(settle(*replica, calls[1], {0, 1}));
  EXPECT_TRUE(settle(*replica, calls[3], {0, 1}));
  EXPECT_EQ(leases("p:a"), 0);
  EXPECT_EQ(count_of(log_key("p:a", kLong)), 2);
}

TEST_F(RedisOutage, WhatIsCutOffWhileItIsCarriedBackGoesWithTheNextConnection) {
  StoreRig::Options options = patient_through(gate_);
  options.store.calls_in_flight = 1;
  const auto replica = rig(std::move(options));
  const auto set =
      limits({requests_per(kLong, 1000, Algorithm::sliding_log), requests_per(kLong, 1000)});
  begin(Fault::refused);
  ASSERT_TRUE(replica->wait_until_degraded(true));
  for (int i = 0; i < 1000; ++i) {
    Call call = call_of({{"p:a", set}}, OnStoreError::local);
    ASSERT_EQ(acquire(*replica, call), Outcome::admitted);
  }
  // More than one call carries: the first of them is done, but its answer does not come.
  gate_.pass();
  gate_.delay(std::chrono::milliseconds{150});
  ASSERT_TRUE(eventually([&] { return count_of(log_key("p:a", kLong)) > 0; }));
  gate_.close_all();
  ASSERT_LT(count_of(log_key("p:a", kLong)), 1000);
  gate_.pass();
  EXPECT_TRUE(eventually([&] { return count_of(log_key("p:a", kLong)) == 1000; }));
  EXPECT_EQ(used("p:a", 1), 1000);
}

TEST_F(RedisOutage, WhatIsSettledBeforeTheReturnIsCarriedBackAsSettled) {
  const auto replica = rig(quick(Fault::refused));
  const auto set = limits({tokens_per(kLong, 1000)});
  begin(Fault::refused);
  ASSERT_TRUE(replica->wait_until_degraded(true));
  std::deque<Call> calls;
  for (int i = 0; i < 3; ++i) {
    calls.push_back(call_of({{"p:a", set, {{40}}}}, OnStoreError::local));
    ASSERT_EQ(acquire(*replica, calls.back()), Outcome::admitted);
  }
  EXPECT_TRUE(settle(*replica, calls[0], {7}));
  end(Fault::refused);
  ASSERT_TRUE(replica->wait_until_degraded(false));
  EXPECT_TRUE(eventually([&] { return used("p:a") == 7 + 80; })) << used("p:a");
  EXPECT_TRUE(settle(*replica, calls[1], {10}));
  EXPECT_TRUE(settle(*replica, calls[2], {100}));
  EXPECT_EQ(used("p:a"), 7 + 10 + 100);
}

TEST_F(RedisOutage, SettlementsAreKeptForTheReturn) {
  StoreRig::Options options = patient_through(gate_);
  const auto replica = rig(std::move(options));
  // More than are sent at a time.
  constexpr std::size_t kCalls = 1500;
  const auto set = limits({tokens_per(kLong, 1'000'000), in_flight(10'000)});
  std::deque<Call> calls;
  Answers answers;
  for (std::size_t i = 0; i < kCalls; ++i) {
    calls.push_back(call_of({{"p:a", set, {{5}, {1}}}}));
    replica->store().acquire(calls.back().record(), answers.expect());
  }
  answers.wait();
  ASSERT_EQ(used("p:a"), std::int64_t{5 * kCalls});
  ASSERT_EQ(leases("p:a"), std::int64_t{kCalls});
  begin(Fault::refused);
  ASSERT_TRUE(replica->wait_until_degraded(true));
  std::atomic<std::size_t> taken{0};
  std::int64_t real = 0;
  for (std::size_t i = 0; i < kCalls; ++i) {
    calls[i].record().slots[0].actual = static_cast<std::int64_t>(i % 10);
    calls[i].record().slots[1].actual = 0;
    real += static_cast<std::int64_t>(i % 10);
    replica->store().settle(calls[i].record(),
                            [&taken, done = answers.expect()](const Result<void>& result) mutable {
                              if (result) ++taken;
                              done();
                            });
  }
  answers.wait();
  EXPECT_EQ(taken, 0U) << "nobody is told that Redis has it";
  calls.clear();
  end(Fault::refused);
  ASSERT_TRUE(replica->wait_until_degraded(false));
  EXPECT_TRUE(eventually([&] { return used("p:a") == real; })) << used("p:a");
  EXPECT_TRUE(eventually([&] { return leases("p:a") == 0; })) << leases("p:a");
}

// Stopped for longer than the connections bear, while everybody goes on asking.
TEST_F(RedisOutage, ALongStopUnderLoadIsHardlyNoticed) {  // C07
  constexpr int kThreads = 4;
  constexpr Duration kStopped = std::chrono::seconds{2};
  StoreRig::Options options = quick(Fault::stopped);
  options.loops = 2;
  const auto replica = rig(std::move(options));
  const auto set = limits({requests_per(kLong, 1'000'000)});
  std::atomic<bool> end{false};
  std::atomic<std::int64_t> asked{0};
  std::atomic<std::int64_t> admitted{0};
  std::atomic<std::int64_t> waited{0};
  std::thread load([&] {
    on_threads(kThreads, [&](int) {
      while (!end) {
        Call call = call_of({{"p:a", set}}, OnStoreError::local);
        const Duration before = system_clock().steady_now();
        const Outcome outcome = acquire(*replica, call);
        const Duration span = system_clock().steady_now() - before;
        ++asked;
        if (outcome == Outcome::admitted) ++admitted;
        if (span >= kTimeout / 2) ++waited;
        EXPECT_LE(span, kPatience * (kTimeout + std::chrono::milliseconds{10}));
        let_pass(std::chrono::milliseconds{5});
      }
    });
  });
  EXPECT_TRUE(eventually([&] { return asked > 100; }));
  server_.pause();
  let_pass(kStopped);
  const std::int64_t while_stopped = waited;
  server_.resume();
  const Duration back = system_clock().steady_now();
  EXPECT_TRUE(replica->wait_until_degraded(false));
  EXPECT_LE(system_clock().steady_now() - back, kBackWithin);
  end = true;
  load.join();
  EXPECT_GE(asked, 200 * kStopped / kSecond);
  EXPECT_EQ(admitted, asked);
  // Three failures in a row open the breaker of an event loop; four callers may be in each.
  EXPECT_LE(while_stopped, 2 * (3 + kThreads));
  // One whose reply did not get out is told by nobody once more, whether it ran or not.
  const auto unknown = static_cast<std::int64_t>(told_.unknown_charges());
  EXPECT_TRUE(eventually([&] { return used("p:a") >= admitted - unknown; })) << used("p:a");
  EXPECT_LE(used("p:a"), admitted);
}

TEST_F(RedisOutage, ARecordOfSeveralRules) {
  const auto replica = rig(quick(Fault::refused));
  begin(Fault::refused);
  ASSERT_TRUE(replica->wait_until_degraded(true));
  const auto set = limits({requests_per(kLong, 1)});
  const auto ask = [&](OnStoreError second) {
    Call call = call_of({{"p:a", set}, {"q:a", set}}, OnStoreError::local);
    call.record().buckets[1].on_store_error = second;
    return acquire(*replica, call);
  };
  EXPECT_EQ(ask(OnStoreError::deny), Outcome::undecided);
  EXPECT_EQ(ask(OnStoreError::allow), Outcome::admitted) << "the one before charged nothing";
  EXPECT_EQ(ask(OnStoreError::allow), Outcome::refused);
}

// They are told a few at a time, or most would wait for longer than a call may.
TEST_F(RedisOutage, ManyBucketsAreCarriedBack) {
  constexpr int kMany = 3000;
  const auto replica = rig(quick(Fault::stopped));
  begin(Fault::stopped);
  ASSERT_TRUE(replica->wait_until_degraded(true));
  for (int i = 0; i < kMany; ++i) {
    Call call = call_of({{"many" + std::to_string(i), limits({requests_per(kLong, 5)}), {{1, 1}}}},
                        OnStoreError::local);
    ASSERT_EQ(acquire(*replica, call), Outcome::admitted);
  }
  end(Fault::stopped);
  const auto told = [this] {
    return server_.command({"DBSIZE"}).integer() - 1;
  };  // and the replicas
  const auto lost = static_cast<std::int64_t>(told_.unknown_charges());
  EXPECT_TRUE(eventually([&] { return told() + lost >= kMany; }, std::chrono::seconds{20}))
      << told();
}

}  // namespace
}  // namespace stint::redis_testing
