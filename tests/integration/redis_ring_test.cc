// Several servers: where buckets are, and how they move when the servers change.
#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "redis/deployment.h"
#include "tests/integration/redis_store_testing.h"

namespace stint::redis_testing {
namespace {

constexpr int kBuckets = 60;

std::string bucket(int i) { return "b" + std::to_string(i); }

class RedisRing : public RedisStoreTest {
 protected:
  [[nodiscard]] StoreRig::Options on(const std::vector<const RedisServer*>& servers,
                                     const std::vector<const RedisServer*>& previous = {}) const {
    redis::RingDeployment ring;
    ring.ring = ring_of(servers, ring.shards);
    if (!previous.empty()) ring.previous = ring_of(previous, ring.shards);
    ring.handover = std::chrono::hours{1};
    StoreRig::Options options = patient();
    options.deployment.emplace().servers = std::move(ring);
    return options;
  }
  using Shards = std::vector<redis::RingDeployment::Shard>;
  // Notes those that are not there yet.
  [[nodiscard]] static std::shared_ptr<const HashRing> ring_of(
      const std::vector<const RedisServer*>& servers, Shards& shards) {
    auto ring = std::make_shared<HashRing>(HashRing::create().value());
    for (const RedisServer* each : servers) {
      const redis::ServerAddress address = redis::parse_url(each->url()).value();
      const std::string name = redis::to_string(address);
      EXPECT_TRUE(ring->add_node(name));
      if (std::ranges::find(shards, name, &Shards::value_type::name) != shards.end()) continue;
      shards.push_back({name, address});
    }
    return ring;
  }
  // Where the counters of a bucket are counted now.
  [[nodiscard]] std::vector<RedisServer*> homes(const std::string& of) {
    std::vector<RedisServer*> found;
    for (RedisServer* each : {&server_, &second_, &third_}) {
      if (each->command({"TYPE", counters_key(of)}).text() == "string") found.push_back(each);
    }
    return found;
  }
  Outcome ask(StoreRig& rig, const std::string& of, const Limit& limit,
              OnStoreError rule = OnStoreError::deny) {
    Call call = call_of({{of, limits({limit}), {{1, 1}}}}, rule);
    return acquire(rig, call);
  }
  int admitted(StoreRig& rig, const std::string& of, const Limit& limit, int tries) {
    int count = 0;
    for (int i = 0; i < tries; ++i) count += ask(rig, of, limit) == Outcome::admitted ? 1 : 0;
    return count;
  }

  RedisServer second_;
  RedisServer third_;
};

TEST_F(RedisRing, EachBucketIsOnOneServerWhateverTheOrder) {
  const auto one = rig(on({&server_, &second_, &third_}));
  const auto other = rig(on({&third_, &server_, &second_}));
  std::set<RedisServer*> used_servers;
  for (int i = 0; i < kBuckets; ++i) {
    const Limit limit = requests_per(kLong, 3);
    EXPECT_EQ(admitted(*one, bucket(i), limit, 2), 2);
    EXPECT_EQ(admitted(*other, bucket(i), limit, 2), 1);
    const auto at = homes(bucket(i));
    ASSERT_EQ(at.size(), 1U);
    used_servers.insert(at[0]);
  }
  EXPECT_EQ(used_servers.size(), 3U);
}

TEST_F(RedisRing, ARefusalByOneServerGivesBackWhatOthersCharged) {
  const auto replica = rig(on({&server_, &second_, &third_}));
  const Limit narrow = requests_per(kLong, 2);
  const Limit wide = requests_per(kLong, 1000);
  for (int i = 0; i < kBuckets; ++i) {
    Call call =
        call_of({{"narrow", limits({narrow}), {{1, 1}}}, {bucket(i), limits({wide}), {{1, 1}}}});
    EXPECT_EQ(acquire(*replica, call), i < 2 ? Outcome::admitted : Outcome::refused);
  }
  EXPECT_TRUE(eventually([&] {
    int left = 0;
    for (int i = 2; i < kBuckets; ++i) left += homes(bucket(i)).empty() ? 0 : 1;
    return left == 0;
  }));
}

struct Kind {
  const char* name;
  Limit limit;
};

class RedisRingMove : public RedisRing, public ::testing::WithParamInterface<Kind> {};

// Counted on two servers, then on three, then on two again: nothing is forgotten and nothing is
// counted twice, wherever a bucket was.
TEST_P(RedisRingMove, BucketsAreBroughtAlong) {
  const Limit& limit = GetParam().limit;
  const auto before = rig(on({&server_, &second_}));
  std::vector<std::deque<Call>> running(kBuckets);
  const auto charge = [&](StoreRig& by, int i, Outcome expected) {
    Call& call = running[static_cast<std::size_t>(i)].emplace_back(
        call_of({{bucket(i), limits({limit}), {{1, 1}}}}));
    EXPECT_EQ(acquire(by, call), expected) << bucket(i);
  };
  for (int i = 0; i < kBuckets; ++i) charge(*before, i, Outcome::admitted);

  const auto after = rig(on({&server_, &second_, &third_}, {&server_, &second_}));
  int moved = 0;
  for (int i = 0; i < kBuckets; ++i) {
    charge(*after, i, Outcome::admitted);
    moved += homes(bucket(i)) == std::vector{&third_} ? 1 : 0;
  }
  EXPECT_GT(moved, 5);
  EXPECT_LT(moved, 40);

  // Another process brings them again, and back.
  const auto back = rig(on({&server_, &second_}, {&server_, &second_, &third_}));
  for (int i = 0; i < kBuckets; ++i) {
    charge(*back, i, Outcome::admitted);
    charge(*back, i, Outcome::refused);
    EXPECT_EQ(homes(bucket(i)).size(), 1U);
    EXPECT_NE(homes(bucket(i)), std::vector{&third_});
  }
}

// What one gave back stays given back, whoever brings the bucket again.
TEST_P(RedisRingMove, WhatWasGivenBackIsNotBroughtAgain) {
  const Limit& limit = GetParam().limit;
  const auto before = rig(on({&server_, &second_}));
  std::deque<Call> calls;
  for (int i = 0; i < kBuckets; ++i) {
    for (int k = 0; k < 3; ++k) {
      calls.push_back(call_of({{bucket(i), limits({limit}), {{1, 1}}}}));
      ASSERT_EQ(acquire(*before, calls.back()), Outcome::admitted);
    }
  }
  const auto one = rig(on({&server_, &second_, &third_}, {&server_, &second_}));
  for (Call& call : calls) EXPECT_TRUE(give_back(*one, call));
  const auto other = rig(on({&server_, &second_, &third_}, {&server_, &second_}));
  for (int i = 0; i < kBuckets; ++i) EXPECT_EQ(admitted(*other, bucket(i), limit, 4), 3);
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, RedisRingMove,
    ::testing::Values(Kind{"FixedWindow", requests_per(kLong, 3)},
                      Kind{"SlidingWindow", requests_per(kLong, 3, Algorithm::sliding_window)},
                      Kind{"SlidingLog", requests_per(kLong, 3, Algorithm::sliding_log)},
                      Kind{"TokenBucket", requests_per(kLong, 3, Algorithm::token_bucket)},
                      Kind{"Concurrency", in_flight(3)}),
    [](const auto& test) { return test.param.name; });

TEST_F(RedisRing, WhoStillHasTheOldServersDecidesByTheOutageRuleAndSettlesLater) {
  const Limit limit = requests_per(kLong, 6);
  const auto old = rig(on({&server_, &second_}));
  std::vector<std::string> moved;
  std::deque<Call> charged;
  for (int i = 0; i < kBuckets; ++i) {
    charged.push_back(call_of({{bucket(i), limits({limit}), {{1, 1}}}}));
    ASSERT_EQ(acquire(*old, charged.back()), Outcome::admitted);
  }
  const auto young = rig(on({&server_, &second_, &third_}, {&server_, &second_}));
  for (int i = 0; i < kBuckets; ++i) {
    EXPECT_EQ(ask(*young, bucket(i), limit), Outcome::admitted);
    if (homes(bucket(i)) == std::vector{&third_}) moved.push_back(bucket(i));
  }
  ASSERT_FALSE(moved.empty());
  for (const std::string& each : moved) {
    EXPECT_EQ(ask(*old, each, limit, OnStoreError::deny), Outcome::undecided);
    EXPECT_EQ(ask(*old, each, limit, OnStoreError::local), Outcome::admitted);
  }
  // These wait for the old process to change its servers, or are counted there as they stand.
  for (Call& call : charged) std::ignore = give_back(*old, call);
  old->replace(on({&server_, &second_, &third_}, {&server_, &second_}));
  EXPECT_TRUE(eventually([&] { return old->store().health().size() == 3; }));
  // Of each: 1 given back, 1 by the young one, 1 locally, which is told by now.
  const auto used_of = [&](const std::string& of) { return used_at(third_, of); };
  for (const std::string& each : moved) {
    ASSERT_TRUE(eventually([&] { return used_of(each) == 2; })) << each << ": " << used_of(each);
  }
}

// What is counted for a server that is away goes by its clock, not by that of another one.
TEST_F(RedisRing, ServersMayHaveDifferentTimes) {
  const store::Scripts scripts(prelude_with_time_of("time"));
  const auto set_time = [](RedisServer& server, TimePoint time) {
    server.command({"SET", "time", std::to_string(time.time_since_epoch().count())});
  };
  const TimePoint hour{kHour * 500'000};
  set_time(server_, hour + kMinute);
  set_time(second_, hour + kHour + kMinute);
  StoreRig::Options options = on({&server_, &second_});
  options.store.timeout = std::chrono::milliseconds{200};
  options.store.scripts = &scripts;
  const auto replica = rig(std::move(options));
  const Limit limit = requests_per(kHour, 3);
  std::vector<std::string> here;
  std::vector<std::string> there;
  for (int i = 0; i < kBuckets; ++i) {
    EXPECT_EQ(admitted(*replica, bucket(i), limit, 1), 1);
    (homes(bucket(i)) == std::vector{&server_} ? here : there).push_back(bucket(i));
  }
  ASSERT_FALSE(here.empty() || there.empty());
  for (const std::string& each : there) EXPECT_EQ(admitted(*replica, each, limit, 4), 2);
  for (const std::string& each : here) EXPECT_EQ(admitted(*replica, each, limit, 4), 2);
  server_.pause();
  ASSERT_TRUE(replica->wait_until_degraded(true));
  EXPECT_EQ(ask(*replica, there[0], limit), Outcome::refused);  // its time was heard last
  // Of each one more, which the outage rule grants, and not a whole window more.
  for (const std::string& each : here) {
    EXPECT_EQ(ask(*replica, each, limit, OnStoreError::local), Outcome::admitted);
    EXPECT_EQ(ask(*replica, each, limit, OnStoreError::local), Outcome::refused);
  }
  server_.resume();
}

// A server's time may have got ahead of what was learned of it when it was connected with; of one
// that is only of the previous ring nothing else is asked.
TEST_F(RedisRing, BucketsAreBroughtFromAServerWhoseTimeHasGotAhead) {
  const store::Scripts scripts(prelude_with_time_of("time"));
  const auto set_time = [this](TimePoint time) {
    for (RedisServer* each : {&server_, &second_}) {
      each->command({"SET", "time", std::to_string(time.time_since_epoch().count())});
    }
  };
  const TimePoint hour{kHour * 500'000};
  set_time(hour);
  const auto with_scripts = [&](StoreRig::Options options) {
    options.store.scripts = &scripts;
    return rig(std::move(options));
  };
  const auto before = with_scripts(on({&server_}));
  const Limit limit = requests_per(kHour, 3);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(admitted(*before, bucket(i), limit, 2), 2);
  const auto after = with_scripts(on({&second_}, {&server_}));
  // What it has learned by connecting is behind that by years.
  set_time(hour + kMinute);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(admitted(*after, bucket(i), limit, 4), 1) << i;
}

// Whatever lies where a log should be, the bucket is brought, and the log begins anew.
TEST_F(RedisRing, ABucketIsBroughtWithoutALogThatIsNone) {
  const auto set =
      limits({requests_per(kLong, 3), requests_per(kLong, 100, Algorithm::sliding_log)});
  const auto ask_for = [&set](StoreRig& replica, const std::string& of) {
    Call call = call_of({{of, set}});
    return acquire(replica, call);
  };
  const auto before = rig(on({&server_}));
  for (int i = 0; i < 3; ++i) {
    for (int n = 0; n < 3; ++n) EXPECT_EQ(ask_for(*before, bucket(i)), Outcome::admitted);
    server_.command({"SET", log_key(bucket(i), kLong), "none"});
  }
  const auto after = rig(on({&second_}, {&server_}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask_for(*after, bucket(i)), Outcome::refused) << i;
}

TEST_F(RedisRing, ADeadOldServerIsGoneWithoutWaiting) {
  const Limit limit = requests_per(kLong, 3);
  {
    const auto before = rig(on({&server_, &second_}));
    for (int i = 0; i < kBuckets; ++i) EXPECT_EQ(admitted(*before, bucket(i), limit, 3), 3);
  }
  second_.kill();
  StoreRig::Options options = on({&server_, &third_}, {&server_, &second_});
  StoreRig after(std::move(options));
  ASSERT_TRUE(eventually([&] {
    int well = 0;
    for (const auto& target : after.store().health()) well += target.degraded ? 0 : 1;
    return well == 2;
  }));
  int again = 0;
  for (int i = 0; i < kBuckets; ++i) {
    const int more = admitted(after, bucket(i), limit, 4);
    EXPECT_TRUE(more == 0 || more == 3) << more;
    again += more / 3;
  }
  EXPECT_GT(again, 5);
  EXPECT_LT(again, 55);
}

TEST_F(RedisRing, ListingsAndResetsReachEveryServer) {
  const auto before = rig(on({&server_, &second_}));
  const Limit limit = requests_per(kLong, 3);
  for (int i = 0; i < kBuckets; ++i) EXPECT_EQ(ask(*before, bucket(i), limit), Outcome::admitted);
  const auto after = rig(on({&server_, &second_, &third_}, {&server_, &second_}));
  // Half of them have moved; the others are listed where they are.
  for (int i = 0; i < kBuckets / 2; ++i)
    EXPECT_EQ(ask(*after, bucket(i), limit), Outcome::admitted);
  const auto listed = list_all(*after, "b*", 10);
  EXPECT_EQ(listed.size(), static_cast<std::size_t>(kBuckets));
  EXPECT_EQ(std::set<std::string>(listed.begin(), listed.end()).size(), listed.size());

  EXPECT_EQ(reset_all(*after, "b*"), static_cast<std::size_t>(kBuckets));
  for (int i = 0; i < kBuckets; ++i) EXPECT_EQ(admitted(*after, bucket(i), limit, 4), 3);
}

// A window that is longer than the hand-over is counted to its end.
TEST_F(RedisRing, WhatWasBroughtLivesAsLongAsItsWindow) {
  const auto before = rig(on({&server_, &second_}));
  const std::vector<Limit> all = {requests_per(kLong, 9),
                                  requests_per(kLong, 9, Algorithm::sliding_window),
                                  requests_per(kLong, 9, Algorithm::token_bucket)};
  const auto ask_all = [&](StoreRig& by) {
    for (int i = 0; i < kBuckets; ++i)
      EXPECT_EQ(ask(by, bucket(i), all[static_cast<std::size_t>(i) % 3]), Outcome::admitted);
  };
  ask_all(*before);
  const auto after = rig(on({&server_, &second_, &third_}, {&server_, &second_}));
  ask_all(*after);
  ask_all(*after);
  const redis::Reply keys = third_.command({"KEYS", "*}"});
  EXPECT_GT(keys.size(), 5U);
  for (const redis::Value& key : keys.elements()) {
    EXPECT_GT(third_.command({"PTTL", key.text()}).integer(), 24 * 3600 * 1000) << key.text();
  }
}

TEST_F(RedisRing, EverythingExpires) {
  const auto before = rig(on({&server_, &second_}));
  const std::vector<Limit> all = {requests_per(kLong, 3), in_flight(5),
                                  requests_per(kLong, 7, Algorithm::sliding_log)};
  for (int i = 0; i < kBuckets; ++i) {
    Call call = call_of({{bucket(i), limits(all), {{1, 1}, {1, 1}, {1, 1}}}});
    EXPECT_EQ(acquire(*before, call), Outcome::admitted);
  }
  const auto after = rig(on({&server_, &second_, &third_}, {&server_, &second_}));
  for (int i = 0; i < kBuckets; ++i) {
    Call call = call_of({{bucket(i), limits(all), {{1, 1}, {1, 1}, {1, 1}}}});
    EXPECT_EQ(acquire(*after, call), Outcome::admitted);
  }
  for (RedisServer* each : {&server_, &second_, &third_}) {
    const redis::Reply keys = each->command({"KEYS", "*"});
    EXPECT_GT(keys.size(), 5U);
    for (const redis::Value& key : keys.elements()) {
      EXPECT_GT(each->command({"PTTL", key.text()}).integer(), 0) << key.text();
    }
  }
}

}  // namespace
}  // namespace stint::redis_testing
