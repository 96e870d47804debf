// How a store reaches its server, and what it tells the operator about it.
#include <string>
#include <utility>

#include "net/tls_testing.h"
#include "tests/integration/redis_store_testing.h"

namespace stint::redis_testing {
namespace {

TEST(RedisConnect, ByTlsWithAClientCertificateAndAnAclUser) {
  net::TestAuthority authority;
  const auto theirs = authority.issue("DNS:localhost,IP:127.0.0.1");
  const auto ours = authority.issue("DNS:client.example");
  RedisServer::Options with;
  with.users = {"stint on >p@ss ~stint:* +@all -@dangerous +info +config|get"};
  with.ca_file = authority.ca_file();
  with.cert_file = theirs.certificate;
  with.key_file = theirs.key;
  RedisServer server(with);

  Told told;
  StoreRig::Options options;
  options.url = "rediss://stint:p%40ss@127.0.0.1:" + std::to_string(server.tls_port()) + "/3";
  options.loops = 2;
  options.tls.ca_file = authority.ca_file();
  options.tls.cert_file = ours.certificate;
  options.tls.key_file = ours.key;
  options.store.timeout = std::chrono::seconds{10};
  options.store.hooks = told.hooks();
  StoreRig replica(options);
  ASSERT_TRUE(replica.wait_until_degraded(false)) << told.warnings();
  const auto set = limits({requests_per(kLong, 3), in_flight(10)});
  for (int i = 0; i < 5; ++i) {
    Call call = call_of({{"p:a", set}});
    EXPECT_EQ(acquire(replica, call), i < 3 ? Outcome::admitted : Outcome::refused);
    if (i == 0) EXPECT_TRUE(give_back(replica, call));
    if (i == 0) EXPECT_EQ(acquire(replica, call), Outcome::admitted);
  }
  EXPECT_EQ(told.warnings(), "");

  // Without a certificate of ours nothing is sent, and the rule decides.
  options.tls.cert_file.clear();
  options.tls.key_file.clear();
  StoreRig stranger(options);
  Call call = call_of({{"p:a", set}});
  EXPECT_EQ(acquire(stranger, call), Outcome::undecided);
}

TEST(RedisConnect, AUserWithoutRightsIsToldAboutAndTheRuleDecides) {
  RedisServer::Options with;
  with.users = {"stint on >pass ~other:* +@all"};
  RedisServer server(with);
  Told told;
  StoreRig::Options options;
  options.url = "redis://stint:pass@127.0.0.1:" + std::to_string(server.port());
  options.store.hooks = told.hooks();
  StoreRig replica(options);
  EXPECT_TRUE(eventually([&] { return told.warnings_with("NOPERM") > 0; })) << told.warnings();
  Call call = call_of({{"p:a", limits({requests_per(kLong, 3)})}}, OnStoreError::local);
  EXPECT_EQ(acquire(replica, call), Outcome::admitted);
  EXPECT_NE(call.bucket().local, 0U);
  EXPECT_EQ(told.warnings().find("pass"), std::string::npos) << "no secrets";
  // Mended without a restart.
  server.command({"ACL", "SETUSER", "stint", "~*"});
  EXPECT_TRUE(replica.wait_until_degraded(false));
}

TEST(RedisConnect, APolicyThatEvictsIsWarnedAbout) {
  RedisServer::Options with;
  with.config = {"maxmemory-policy allkeys-lru"};
  RedisServer server(with);
  Told told;
  StoreRig::Options options;
  options.url = server.url();
  options.loops = 2;
  options.store.hooks = told.hooks();
  StoreRig replica(options);
  EXPECT_TRUE(eventually([&] { return told.warnings_with("allkeys-lru") > 0; }));
  EXPECT_EQ(told.warnings_with("allkeys-lru"), 1U) << told.warnings();
}

}  // namespace
}  // namespace stint::redis_testing
