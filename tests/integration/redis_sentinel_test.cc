// A master that moves, on real servers: a master with two replicas, and three Sentinels.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "net/tls_testing.h"
#include "store/redis/layout.h"
#include "tests/integration/redis_store_testing.h"
#include "tests/integration/sentinel_servers.h"
#include "tests/integration/steady_load.h"

namespace stint::redis_testing {
namespace {

using std::chrono::steady_clock;

constexpr Duration kBackWithin = std::chrono::seconds{2};

class Failover : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { servers_ = std::make_unique<SentinelServers>(); }
  static void TearDownTestSuite() { servers_.reset(); }

  void SetUp() override {
    servers_->wait_until_settled();
    rig_ = std::make_unique<StoreRig>(replica_on(servers_->deployment(), told_));
    ASSERT_TRUE(rig_->wait_until_degraded(false)) << told_.warnings();
    old_ = servers_->named_master().value();
  }

  // Writes reach the new master in time, and go on as if nothing had been.
  void expect_at(std::size_t master, steady_clock::time_point elected, const SteadyLoad& load,
                 const std::string& bucket) {
    const auto in_time = [&] { return load.counted_since(elected); };
    EXPECT_TRUE(eventually(in_time, kBackWithin)) << told_.warnings();
    const std::int64_t before = used_at(servers_->node(master), bucket);
    EXPECT_TRUE(eventually([&] { return used_at(servers_->node(master), bucket) > before + 20; }))
        << told_.warnings();
    EXPECT_TRUE(rig_->wait_until_degraded(false)) << told_.warnings();
    EXPECT_EQ(told_.warnings_with("must be mended"), 0U) << told_.warnings();
  }

  static std::unique_ptr<SentinelServers> servers_;
  Told told_;
  std::unique_ptr<StoreRig> rig_;
  std::size_t old_ = 0;
};
std::unique_ptr<SentinelServers> Failover::servers_;

TEST_F(Failover, OrderedWhileTheOldMasterLives) {
  SteadyLoad load(*rig_, "p:ordered", limits({requests_per(kLong, 1'000'000)}));
  ASSERT_TRUE(eventually([&] { return load.by_redis() > 50; }));
  servers_->order_failover();
  const std::size_t master = servers_->wait_for_other_master(old_);
  const auto elected = steady_clock::now();
  expect_at(master, elected, load, "p:ordered");
  servers_->wait_until_settled();  // the old one is a replica by then
  load.stop();
  // The old master was left at once: all that Redis admitted since is known to the new one.
  std::size_t since = 0;
  for (const auto& sample : load.samples()) {
    since += sample.by_redis && sample.asked > elected + kBackWithin;
  }
  EXPECT_GT(since, 0U);
  EXPECT_GE(used_at(servers_->node(master), "p:ordered"), static_cast<std::int64_t>(since));
  EXPECT_TRUE(eventually([&] {
    return used_at(servers_->node(old_), "p:ordered") ==
           used_at(servers_->node(master), "p:ordered");
  })) << "a replica of it";
}

TEST_F(Failover, TheMasterIsKilledAndComesBackAsAReplica) {
  SteadyLoad load(*rig_, "p:killed", limits({requests_per(kLong, 1'000'000)}));
  ASSERT_TRUE(eventually([&] { return load.by_redis() > 50; }));
  servers_->node(old_).kill();
  EXPECT_TRUE(rig_->wait_until_degraded(true));
  const std::size_t master = servers_->wait_for_other_master(old_);
  expect_at(master, steady_clock::now(), load, "p:killed");
  EXPECT_GT(load.by_rule(), 0U) << "the gap follows the outage rule";

  // On a busy machine they could miss the new one as well, and move again.
  servers_->let_sentinels_miss_nobody(true);
  servers_->wait_until_settled();
  ASSERT_TRUE(rig_->wait_until_degraded(false)) << told_.warnings();
  const std::size_t settled = servers_->named_master().value();
  const std::size_t rule_before = load.by_rule();
  servers_->node(old_).restart();
  servers_->wait_until_settled();
  load.stop();
  servers_->let_sentinels_miss_nobody(false);
  EXPECT_EQ(servers_->named_master(), settled);
  EXPECT_EQ(load.by_rule(), rule_before) << "its return disturbs nobody: " << told_.warnings();
  EXPECT_TRUE(eventually([&] {
    return used_at(servers_->node(old_), "p:killed") ==
           used_at(servers_->node(settled), "p:killed");
  }));
}

TEST_F(Failover, AMasterThatHangsIsReplaced) {
  SteadyLoad load(*rig_, "p:hangs", limits({requests_per(kLong, 1'000'000)}));
  ASSERT_TRUE(eventually([&] { return load.by_redis() > 50; }));
  servers_->node(old_).pause();
  const std::size_t master = servers_->wait_for_other_master(old_);
  expect_at(master, steady_clock::now(), load, "p:hangs");
  // It wakes as the master that it was; nothing is sent there any more.
  const std::int64_t at_old = [&] {
    servers_->node(old_).resume();
    return used_at(servers_->node(old_), "p:hangs");
  }();
  const std::size_t counted = load.by_redis();
  ASSERT_TRUE(eventually([&] { return load.by_redis() > counted + 50; }));
  servers_->wait_until_settled();
  load.stop();
  EXPECT_GE(used_at(servers_->node(master), "p:hangs"), at_old + 50);
}

TEST_F(Failover, SentinelsThatAreAwayDisturbNobody) {
  SteadyLoad load(*rig_, "p:watchers", limits({requests_per(kLong, 1'000'000)}));
  for (const std::size_t i : {0U, 1U, 2U}) servers_->sentinel(i).kill();
  const std::size_t counted = load.by_redis();
  ASSERT_TRUE(eventually([&] { return load.by_redis() > counted + 500; }));
  EXPECT_EQ(load.by_rule(), 0U) << told_.warnings();
  // Whoever comes now finds no master, and says why.
  Told told;
  StoreRig late(replica_on(servers_->deployment(), told));
  Call call = call_of({{"p:watchers", limits({requests_per(kLong, 1'000'000)})}});
  EXPECT_EQ(acquire(late, call), Outcome::undecided);
  EXPECT_TRUE(eventually([&] {
    const auto health = late.store().health();
    return !health.empty() && health[0].text.contains("no Sentinel names the master");
  })) << late.store().health().at(0).text;
  // One is enough.
  servers_->restart_sentinel(1);
  EXPECT_TRUE(late.wait_until_degraded(false));
  for (const std::size_t i : {0U, 2U}) servers_->restart_sentinel(i);
  load.stop();
  EXPECT_EQ(load.by_rule(), 0U) << told_.warnings();
}

// Nothing else shows it as long as the master is well.
TEST_F(Failover, ASentinelThatStaysAwayIsToldOf) {
  redis::Deployment deployment = servers_->deployment();
  std::get<redis::SentinelDeployment>(deployment.servers).missing_after =
      std::chrono::milliseconds{100};
  Told told;
  StoreRig rig(replica_on(deployment, told));
  ASSERT_TRUE(rig.wait_until_degraded(false));
  servers_->sentinel(1).kill();
  const std::string place = "127.0.0.1:" + std::to_string(servers_->sentinel(1).port());
  EXPECT_TRUE(eventually([&] {
    return told.warnings_with("sentinel " + place + ": cannot be reached") == 1;
  })) << told.warnings();
  servers_->restart_sentinel(1);
  Call call = call_of({{"p:told", limits({requests_per(kLong, 1'000'000)})}});
  EXPECT_EQ(acquire(rig, call), Outcome::admitted);
}

TEST_F(Failover, TheNameOfTheMasterIsWrong) {
  redis::Deployment deployment = servers_->deployment();
  std::get<redis::SentinelDeployment>(deployment.servers).master_name = "another";
  Told told;
  StoreRig rig(replica_on(deployment, told));
  EXPECT_TRUE(eventually([&] {
    const auto health = rig.store().health();
    return !health.empty() && health[0].text.contains("No such master with that name");
  })) << rig.store().health().at(0).text;
}

TEST(SentinelLogin, ByTlsAndWithUsersAtBoth) {
  net::TestAuthority authority;
  const auto theirs = authority.issue("DNS:localhost,IP:127.0.0.1");
  SentinelServers::Options with;
  with.tls = true;
  for (RedisServer::Options* options : {&with.data, &with.watcher}) {
    options->ca_file = authority.ca_file();
    options->cert_file = theirs.certificate;
    options->key_file = theirs.key;
  }
  with.data.password = "d4ta";
  with.data.users = {
      "stint on >p@ss ~stint:* ~t:* +@read +@write -@dangerous +evalsha +script|load "
      "+client|setname +select +time +role"};
  with.watcher.password = "w4tch";
  with.watcher.users = {
      "asks on >s3ntinel +auth +ping +client|setname +sentinel|master "
      "+sentinel|get-master-addr-by-name"};
  SentinelServers servers(with);

  redis::Deployment deployment = servers.deployment();
  auto& from = std::get<redis::SentinelDeployment>(deployment.servers);
  from.master.username = "stint";
  from.master.password = "p@ss";
  for (redis::ServerAddress& sentinel : from.sentinels) {
    sentinel.username = "asks";
    sentinel.password = "s3ntinel";
  }
  Told told;
  StoreRig::Options options = replica_on(deployment, told);
  options.tls.ca_file = authority.ca_file();
  options.tls.cert_file = theirs.certificate;
  options.tls.key_file = theirs.key;
  {
    StoreRig rig(options);
    ASSERT_TRUE(rig.wait_until_degraded(false)) << told.warnings();
    Call call = call_of({{"p:a", limits({requests_per(kLong, 1), in_flight(3)})}});
    EXPECT_EQ(acquire(rig, call), Outcome::admitted);
    servers.order_failover();
    const std::size_t master = servers.wait_for_other_master(0);
    EXPECT_TRUE(eventually([&] {
      Call again = call_of({{"p:b", limits({requests_per(kLong, 1'000'000)})}});
      acquire(rig, again);
      return used_at(servers.node(master), "p:b") > 0;
    })) << told.warnings();
    EXPECT_EQ(told.warnings_with("must be mended"), 0U) << told.warnings();
  }
  // What somebody has to mend is told with the name of whoever said it.
  for (redis::ServerAddress& sentinel : from.sentinels) sentinel.password = "wrong";
  options.deployment = deployment;
  Told wrong;
  options.store.hooks = wrong.hooks();
  StoreRig rig(options);
  EXPECT_TRUE(eventually([&] { return wrong.warnings_with("must be mended: sentinel 127") > 0; }))
      << wrong.warnings();
  EXPECT_GT(wrong.warnings_with("WRONGPASS"), 0U) << wrong.warnings();
  EXPECT_FALSE(wrong.warnings().contains("s3ntinel"));
}

}  // namespace
}  // namespace stint::redis_testing
