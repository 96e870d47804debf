// A real Redis Cluster of three masters with a replica each: where buckets are, slots that move,
// and masters that go away.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "limit/bucket_key.h"
#include "net/tls_testing.h"
#include "redis/slots.h"
#include "store/redis/layout.h"
#include "tests/integration/cluster_servers.h"
#include "tests/integration/redis_store_testing.h"
#include "tests/integration/steady_load.h"

namespace stint::redis_testing {
namespace {

using std::chrono::steady_clock;

constexpr std::int64_t kPlenty = 1'000'000;

class RedisCluster : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { servers_ = std::make_unique<ClusterServers>(); }
  static void TearDownTestSuite() { servers_.reset(); }

  void SetUp() override {
    servers_->wait_until_settled();
    for (std::size_t i = 0; i < ClusterServers::kNodes; ++i) {
      servers_->node(i).command({"FLUSHALL"});
    }
    rig_ = std::make_unique<StoreRig>(replica_on(servers_->deployment(), told_));
    ASSERT_TRUE(rig_->wait_until_degraded(false)) << told_.warnings();
  }

  // Masters, as they are now.
  [[nodiscard]] static std::vector<std::size_t> masters() {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < ClusterServers::kNodes; ++i) {
      const auto info = servers_->node(i).command({"INFO", "replication"});
      if (info_field(info, "role") == "master") found.push_back(i);
    }
    return found;
  }
  [[nodiscard]] static std::string counters_key(std::string_view bucket) {
    std::string key;
    store::append_counters_key(key, store::keys_begin("t"), bucket);
    return key;
  }
  // The counter of the first limit of a bucket, wherever it is.
  [[nodiscard]] static std::int64_t used(std::string_view bucket) {
    return used_at(servers_->node(servers_->node_of(counters_key(bucket))), bucket);
  }
  Outcome ask(const std::vector<BucketAsk>& buckets) {
    Call call = call_of(buckets);
    return acquire(*rig_, call);
  }

  static std::unique_ptr<ClusterServers> servers_;
  Told told_;
  std::unique_ptr<StoreRig> rig_;
};
std::unique_ptr<ClusterServers> RedisCluster::servers_;

// Values as callers send them, braces and all.
std::string value_of(int i) {
  const std::string number = std::to_string(i);
  switch (i % 6) {
    case 0:
      return "user" + number;
    case 1:
      return "a{b}c" + number;
    case 2:
      return "{}" + number;
    case 3:
      return "}{" + number;
    case 4:
      return "{x}" + number;
    default:
      return number + "{x";
  }
}

std::string bucket_key(const std::string& policy, int i) {
  std::string text;
  limit::BucketKeyWriter writer(text, policy);
  writer.add("api_key", value_of(i));
  const limit::KeySpan span = writer.finish();
  return text.substr(span.key_begin, span.key_size);
}

TEST_F(RedisCluster, AThousandKeysOfEachAlgorithmAreExactAndSpread) {
  constexpr int kKeys = 1000;
  constexpr int kQuota = 2;
  constexpr int kTries = kQuota + 1;
  const std::vector<Limit> algorithms = {requests_per(kLong, kQuota),
                                         requests_per(kLong, kQuota, Algorithm::sliding_window),
                                         requests_per(kLong, kQuota, Algorithm::sliding_log),
                                         store::token_bucket(1, kLong, kQuota), in_flight(kQuota)};
  for (std::size_t a = 0; a < algorithms.size(); ++a) {
    SCOPED_TRACE("algorithm " + std::to_string(a));
    const std::string policy = "p" + std::to_string(a);
    const auto set = limits({algorithms[a]});
    std::vector<std::string> keys;
    keys.reserve(kKeys);
    for (int i = 0; i < kKeys; ++i) keys.push_back(bucket_key(policy, i));
    EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), keys.size());
    for (const std::string& key : keys) {
      ASSERT_EQ(key.find_first_of("{}"), std::string::npos) << "would move the hash tag";
      ASSERT_EQ(redis::slot_of(key), redis::slot_of_key(counters_key(key)));
    }
    std::deque<Call> calls;
    Answers answers;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      for (const std::string& key : keys) {
        calls.push_back(call_of({{key, set}}));
        rig_->store().acquire(calls.back().record(), answers.expect());
      }
      answers.wait();
    }
    std::vector<int> admitted(keys.size(), 0);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      ASSERT_NE(calls[i].record().outcome, Outcome::undecided) << told_.warnings();
      admitted[i % keys.size()] += calls[i].admitted();
    }
    EXPECT_THAT(admitted, ::testing::Each(kQuota));
  }
  for (const std::size_t i : masters()) {
    const std::int64_t keys = servers_->node(i).command({"DBSIZE"}).integer();
    EXPECT_GT(keys, 5 * kKeys / 3 / 2) << "node " << i;
  }
  EXPECT_EQ(told_.warnings(), "");
}

TEST_F(RedisCluster, SeveralSlotsAreAllOrNothing) {
  const auto masters_now = masters();
  const std::string full = servers_->bucket_at(masters_now[0], "p:full");
  const std::vector<std::string> others = {servers_->bucket_at(masters_now[1], "p:a"),
                                           servers_->bucket_at(masters_now[2], "p:b"),
                                           servers_->bucket_at(masters_now[0], "p:c")};
  const auto one = limits({requests_per(kLong, 1)});
  const auto many = limits({requests_per(kLong, kPlenty)});
  EXPECT_EQ(ask({{others[0], many}, {full, one}, {others[1], many}, {others[2], many}}),
            Outcome::admitted);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(ask({{others[0], many}, {full, one}, {others[1], many}, {others[2], many}}),
              Outcome::refused);
  }
  for (const std::string& other : others) {
    EXPECT_TRUE(eventually([&] { return used(other) == 1; })) << other << " " << used(other);
  }
  EXPECT_EQ(used(full), 1);
  EXPECT_EQ(told_.warnings(), "");
}

// While a slot moves, and when this replica has not heard yet that it has: nobody is shown a bucket
// as gone that is not.
TEST_F(RedisCluster, SweepsSayWhatMoves) {
  const std::size_t from = masters()[0];
  const std::size_t to = masters()[1];
  const std::string bucket = servers_->bucket_at(from, "moving:key=");
  const std::uint16_t slot = redis::slot_of(bucket);
  ASSERT_EQ(ask({{bucket, limits({requests_per(kLong, kPlenty)})}}), Outcome::admitted);
  struct Seen {
    bool listed = false;
    bool complete = true;
  };
  const auto look = [&] {
    Seen seen;
    std::uint64_t cursor = 0;
    do {
      BucketPage page;
      Answers answers;
      rig_->store().list("moving:*", cursor, 100, page, answers.expect());
      answers.wait();
      seen.listed = seen.listed || !page.buckets.empty();
      seen.complete = seen.complete && page.unreached.empty();
      cursor = page.next;
    } while (cursor != 0);
    return seen;
  };
  EXPECT_TRUE(look().listed);
  servers_->begin_move(slot, from, to);
  servers_->move_keys(slot, from, to);
  for (int i = 0; i < 3; ++i) {
    const Seen seen = look();
    EXPECT_FALSE(seen.complete) << i;
  }
  servers_->end_move(slot, to);
  const Seen first = look();
  EXPECT_TRUE(first.listed || !first.complete);
  EXPECT_TRUE(eventually([&] {
    const Seen seen = look();
    return seen.listed && seen.complete;
  }));
  EXPECT_EQ(reset_all(*rig_, "moving:*"), 1U);
  servers_->begin_move(slot, to, from);
  servers_->end_move(slot, from);
}

TEST_F(RedisCluster, SweepsVisitEveryMaster) {
  const auto set = limits({requests_per(kLong, kPlenty), in_flight(5)});
  constexpr int kBuckets = 60;
  for (int i = 0; i < kBuckets; ++i) {
    ASSERT_EQ(ask({{"sweep:key=" + std::to_string(i), set}}), Outcome::admitted);
  }
  // SCAN may name a key twice.
  const auto listed = [&] {
    const auto all = list_all(*rig_, "sweep:*", 7);
    return std::set<std::string>(all.begin(), all.end());
  };
  EXPECT_EQ(listed().size(), kBuckets);
  EXPECT_EQ(reset_all(*rig_, "sweep:*"), kBuckets);
  EXPECT_TRUE(listed().empty());
  for (const std::size_t i : masters()) {
    const redis::Reply left = servers_->node(i).command({"KEYS", "t:rl:1:{sweep*"});
    EXPECT_EQ(left.size(), 0U) << "leases too";
  }
  EXPECT_EQ(told_.warnings(), "");
}

// Everything that is counted in the slot while it is moved.
TEST_F(RedisCluster, ASlotIsMovedUnderLoad) {
  const auto masters_now = masters();
  const std::size_t from = masters_now[0];
  const std::size_t to = masters_now[1];
  const std::string bucket = servers_->bucket_at(from, "p:moved");
  const std::uint16_t slot = redis::slot_of(bucket);
  // Others of the same slot: with several limits in one key, and with leases in a second.
  const auto same_slot = [&](const std::string& begin) {
    for (int i = 0;; ++i) {
      std::string found = begin + std::to_string(i);
      if (redis::slot_of(found) == slot) return found;
    }
  };
  const std::string three = same_slot("p:three");
  const std::string held = same_slot("p:held");
  const auto plain = limits({requests_per(kLong, kPlenty)});
  const auto several =
      limits({requests_per(kLong, kPlenty), requests_per(kLong, kPlenty, Algorithm::sliding_window),
              store::token_bucket(kPlenty, kLong, kPlenty)});
  const auto leased = limits({requests_per(kLong, kPlenty), in_flight(kPlenty)});
  {
    SteadyLoad load(*rig_, bucket, plain);
    SteadyLoad other(*rig_, three, several);
    SteadyLoad lease(*rig_, held, leased);
    // A second key that comes and goes, and what is kept of a log.
    SteadyLoad released(*rig_, same_slot("p:released"), leased, OnStoreError::allow,
                        SteadyLoad::After::give_back);
    SteadyLoad logged(
        *rig_, same_slot("p:logged"),
        limits({requests_per(std::chrono::milliseconds{200}, 1000, Algorithm::sliding_log)}));
    ASSERT_TRUE(eventually([&] { return load.by_redis() > 50 && lease.by_redis() > 50; }));

    servers_->begin_move(slot, from, to);
    // Keys that are not there yet are made at the new node already.
    for (int i = 0; i < 20; ++i) {
      const std::string fresh = same_slot("p:fresh" + std::to_string(i) + "-");
      EXPECT_EQ(ask({{fresh, plain}}), Outcome::admitted);
      EXPECT_EQ(ask({{fresh, plain}}), Outcome::admitted);
      EXPECT_EQ(servers_->node(to).command({"EXISTS", counters_key(fresh)}).integer(), 0)
          << "not without ASKING";
    }
    servers_->move_keys(slot, from, to);
    std::size_t counted = load.by_redis();
    ASSERT_TRUE(eventually([&] { return load.by_redis() > counted + 50; }));
    // Two keys are not taken while one of them is missing, until the time is up.
    const std::string late = same_slot("p:late");
    const auto asked = steady_clock::now();
    EXPECT_EQ(ask({{late, leased}}), Outcome::undecided);
    const auto took = steady_clock::now() - asked;
    EXPECT_GE(took, std::chrono::milliseconds{450});
    EXPECT_LT(took, std::chrono::milliseconds{700});
    EXPECT_GE(told_.warnings_with("TRYAGAIN"), 1U) << told_.warnings();
    servers_->end_move(slot, to);
    EXPECT_EQ(ask({{late, leased}}), Outcome::admitted);
    counted = load.by_redis();
    ASSERT_TRUE(eventually([&] { return load.by_redis() > counted + 50; }));

    // And back, while nothing waits for it.
    servers_->begin_move(slot, to, from);
    servers_->move_keys(slot, to, from);
    servers_->end_move(slot, from);
    counted = load.by_redis();
    ASSERT_TRUE(eventually([&] { return load.by_redis() > counted + 50; }));
    load.stop();
    other.stop();
    lease.stop();
    released.stop();
    logged.stop();
    EXPECT_EQ(load.by_rule(), 0U) << told_.warnings();
    EXPECT_EQ(other.by_rule(), 0U) << told_.warnings();
    EXPECT_EQ(used(bucket), static_cast<std::int64_t>(load.by_redis())) << "nothing twice";
    EXPECT_EQ(used(three), static_cast<std::int64_t>(other.by_redis()));
    // Its two keys were there all the time, but not at the same place.
    EXPECT_EQ(used(held), static_cast<std::int64_t>(lease.by_redis()));
    for (const SteadyLoad* each : {&load, &other, &lease}) {
      EXPECT_EQ(each->maybe_charged(), 0U) << "what was refused certainly did not run";
    }
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(used(same_slot("p:fresh" + std::to_string(i) + "-")), 2);
  }
  EXPECT_EQ(told_.warnings_with("must be mended"), 0U) << told_.warnings();
  EXPECT_EQ(told_.warnings_with("script"), 0U) << told_.warnings();
}

// A store that counts elsewhere, and from then on in the Cluster; and back.
TEST_F(RedisCluster, AStoreChangesOver) {
  RedisServer server;
  Told told;
  StoreRig::Options alone = replica_on({}, told);
  alone.deployment.reset();
  alone.url = server.url();
  StoreRig rig(alone);
  ASSERT_TRUE(rig.wait_until_degraded(false));
  const std::string bucket = "p:over";
  SteadyLoad load(rig, bucket, limits({requests_per(kLong, kPlenty)}));
  ASSERT_TRUE(eventually([&] { return load.by_redis() > 50; }));
  rig.replace(replica_on(servers_->deployment(), told));
  ASSERT_TRUE(eventually([&] { return used(bucket) > 50; }));
  rig.replace(alone);
  ASSERT_TRUE(eventually([&] { return rig.store().health().size() == 1; }));
  const std::int64_t counted = used(bucket);
  const std::size_t before = load.by_redis();
  ASSERT_TRUE(eventually([&] { return load.by_redis() > before + 50; }));
  load.stop();
  EXPECT_EQ(load.by_rule(), 0U) << told.warnings();
  EXPECT_EQ(used(bucket), counted);
}

class MasterGoes : public RedisCluster {
 protected:
  // `go` takes one master away; its buckets are counted again soon after another one has its
  // slots, and nobody else notices anything.
  void expect_replaced(const std::function<void(RedisServer&)>& go,
                       const std::function<void(RedisServer&)>& come_back) {
    const auto masters_now = masters();
    const std::size_t gone = masters_now[0];
    const std::string its = servers_->bucket_at(gone, "p:its");
    const std::string other = servers_->bucket_at(masters_now[1], "p:other");
    const std::string third = servers_->bucket_at(masters_now[2], "p:third");
    const auto set = limits({requests_per(kLong, kPlenty)});
    SteadyLoad load(*rig_, its, set);
    SteadyLoad undisturbed(*rig_, other, set);
    SteadyLoad neither(*rig_, third, set);
    ASSERT_TRUE(eventually([&] { return load.by_redis() > 50 && neither.by_redis() > 50; }));
    go(servers_->node(gone));
    EXPECT_TRUE(rig_->wait_until_degraded(true));
    const std::size_t next = servers_->wait_for_other_owner(redis::slot_of(its), gone);
    const auto elected = steady_clock::now();
    EXPECT_TRUE(eventually([&] { return load.counted_since(elected); }, std::chrono::seconds{2}))
        << told_.warnings();
    EXPECT_GT(load.by_rule(), 0U);
    EXPECT_TRUE(rig_->wait_until_degraded(false)) << told_.warnings();
    EXPECT_TRUE(eventually([&] { return used(its) > 0; }));

    const std::size_t by_rule = load.by_rule();
    come_back(servers_->node(gone));
    servers_->wait_until_settled();
    const std::size_t counted = load.by_redis();
    ASSERT_TRUE(eventually([&] { return load.by_redis() > counted + 50; }));
    for (SteadyLoad* each : {&load, &undisturbed, &neither}) each->stop();
    EXPECT_EQ(load.by_rule(), by_rule) << "its return disturbs nobody: " << told_.warnings();
    EXPECT_EQ(undisturbed.by_rule(), 0U) << told_.warnings();
    EXPECT_EQ(neither.by_rule(), 0U) << told_.warnings();
    EXPECT_EQ(used(other), static_cast<std::int64_t>(undisturbed.by_redis()));
    EXPECT_EQ(servers_->node_of(its), next);
    // The one that is gone is no node to be told of any more.
    const auto health = rig_->store().health();
    EXPECT_EQ(health.size(), 4U) << "three masters and the whole";
  }
};

TEST_F(MasterGoes, Killed) {
  expect_replaced([](RedisServer& server) { server.kill(); },
                  [](RedisServer& server) { server.restart(); });
}

TEST_F(MasterGoes, CutOff) {
  expect_replaced([](RedisServer& server) { server.pause(); },
                  [](RedisServer& server) { server.resume(); });
}

TEST_F(RedisCluster, AnyNodeWillDoToBeginWith) {
  redis::Deployment deployment = servers_->deployment();
  auto& nodes = std::get<redis::ClusterDeployment>(deployment.servers).nodes;
  // One that is not there, and replicas.
  nodes.clear();
  const auto masters_now = masters();
  for (std::size_t i = 0; i < ClusterServers::kNodes; ++i) {
    if (std::ranges::find(masters_now, i) != masters_now.end()) continue;
    redis::ServerAddress address;
    address.host = "127.0.0.1";
    address.port = servers_->node(i).port();
    nodes.push_back(address);
  }
  redis::ServerAddress nobody;
  nobody.host = "127.0.0.1";
  nobody.port = 1;
  nodes.insert(nodes.begin(), nobody);
  Told told;
  StoreRig rig(replica_on(deployment, told));
  EXPECT_TRUE(rig.wait_until_degraded(false)) << told.warnings();
}

TEST_F(RedisCluster, NoNodeIsThere) {
  redis::Deployment deployment = servers_->deployment();
  auto& nodes = std::get<redis::ClusterDeployment>(deployment.servers).nodes;
  nodes.resize(1);
  nodes[0].port = 1;
  Told told;
  StoreRig rig(replica_on(deployment, told));
  Call call = call_of({{"p:a", limits({requests_per(kLong, 1)})}});
  EXPECT_EQ(acquire(rig, call), Outcome::undecided);
  EXPECT_TRUE(eventually([&] {
    const auto health = rig.store().health();
    return health.size() == 1 && health[0].name == "cluster" &&
           health[0].text.contains("no node answers: 127.0.0.1:1: ");
  })) << rig.store().health().at(0).text;
  BucketPage page;
  Answers answers;
  rig.store().list("*", 0, 10, page, answers.expect());
  answers.wait();
  EXPECT_EQ(page.unreached.size(), 1U);
}

TEST(RedisClusterLogin, AServerThatIsNoClusterSaysSo) {
  RedisServer server;
  redis::ClusterDeployment of;
  redis::ServerAddress address;
  address.host = "127.0.0.1";
  address.port = server.port();
  of.nodes.push_back(address);
  redis::Deployment deployment;
  deployment.servers = of;
  Told told;
  StoreRig rig(replica_on(deployment, told));
  EXPECT_TRUE(eventually([&] {
    const auto health = rig.store().health();
    return !health.empty() && health[0].text.contains("cluster support disabled");
  })) << rig.store().health().at(0).text;
}

TEST(RedisClusterLogin, ByTlsAndWithAUser) {
  net::TestAuthority authority;
  const auto theirs = authority.issue("DNS:localhost,IP:127.0.0.1");
  ClusterServers::Options with;
  with.tls = true;
  with.node.ca_file = authority.ca_file();
  with.node.cert_file = theirs.certificate;
  with.node.key_file = theirs.key;
  with.node.password = "d4ta";
  with.node.users = {
      "stint on >p@ss ~t:* +@read +@write -@dangerous +evalsha +script|load +client|setname "
      "+time +ping +cluster|info +cluster|slots +asking"};
  ClusterServers servers(with);

  redis::Deployment deployment = servers.deployment();
  auto& login = std::get<redis::ClusterDeployment>(deployment.servers).login;
  login.username = "stint";
  login.password = "p@ss";
  Told told;
  StoreRig::Options options = replica_on(deployment, told);
  options.tls.ca_file = authority.ca_file();
  options.tls.cert_file = theirs.certificate;
  options.tls.key_file = theirs.key;
  {
    StoreRig rig(options);
    ASSERT_TRUE(rig.wait_until_degraded(false)) << told.warnings();
    const auto set = limits({requests_per(kLong, 1), in_flight(3)});
    for (int i = 0; i < 50; ++i) {
      Call call = call_of({{"p:" + std::to_string(i), set}});
      EXPECT_EQ(acquire(rig, call), Outcome::admitted);
    }
    EXPECT_EQ(told.warnings(), "");
  }
  login.password = "wrong";
  options.deployment = deployment;
  Told wrong;
  options.store.hooks = wrong.hooks();
  StoreRig rig(options);
  EXPECT_TRUE(eventually([&] { return wrong.warnings_with("WRONGPASS") > 0; })) << wrong.warnings();
}

}  // namespace
}  // namespace stint::redis_testing
