// Logging in to real redis-server processes: passwords, ACL users, TLS.
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>

#include "net/tls_testing.h"
#include "redis/server.h"
#include "redis/server_testing.h"
#include "tests/integration/redis_testing.h"

namespace stint::redis {
namespace {

using Kind = ServerEvent::Kind;
using redis_testing::RedisServer;

class LogIn : public ::testing::Test {
 protected:
  const Script count{"count", "return redis.call('INCR', KEYS[1])"};
};

TEST_F(LogIn, APasswordAloneLogsIn) {
  RedisServer::Options with;
  with.password = "s3cret";
  RedisServer redis(with);
  ServerOptions options = options_for(redis.port());
  options.address = parse_url(redis.url()).value();
  TestClient client(options);
  client.server->start();
  client.wait_until_available();
  EXPECT_EQ(told(client.call(count, "a")), "1");
}

TEST_F(LogIn, AWrongPasswordIsToldAndTriedAgain) {
  RedisServer::Options with;
  with.users = {"alice on >old ~* +@all"};
  RedisServer redis(with);
  ServerOptions options = options_for(redis.port());
  options.address.username = "alice";
  options.address.password = "new";
  TestClient client(options);
  client.server->start();
  client.wait_for_event(Kind::breaker_opened);
  EXPECT_TRUE(client.text_of(Kind::configuration).starts_with("AUTH: WRONGPASS")) << client.told();
  EXPECT_TRUE(client.text_of(Kind::connect_failed).starts_with("AUTH: WRONGPASS"));
  EXPECT_EQ(client.told().find("new"), std::string::npos) << "no password in any text";
  EXPECT_EQ(told(client.call(count, "a")), "not_run unavailable");

  EXPECT_EQ(redis.command({"ACL", "SETUSER", "alice", ">new"}).text(), "OK");
  client.wait_until_available();
  EXPECT_EQ(told(client.call(count, "a")), "1");
}

TEST_F(LogIn, TlsWithAClientCertificateAndAnAclUser) {
  net::TestAuthority authority;
  const auto theirs = authority.issue("DNS:localhost,IP:127.0.0.1");
  const auto ours = authority.issue("DNS:client.example");
  RedisServer::Options with;
  with.users = {"alice on >p@ss ~* +@all"};
  with.ca_file = authority.ca_file();
  with.cert_file = theirs.certificate;
  with.key_file = theirs.key;
  RedisServer redis(with);

  net::TlsClientContext::Options tls;
  tls.ca_file = authority.ca_file();
  tls.cert_file = ours.certificate;
  tls.key_file = ours.key;
  ServerOptions options;
  options.address =
      parse_url("rediss://alice:p%40ss@127.0.0.1:" + std::to_string(redis.tls_port())).value();
  EXPECT_THROW(TestClient{options}, std::invalid_argument) << "no TLS context";
  options.tls = net::TlsClientContext::create(tls).value();
  {
    TestClient client(options);
    client.server->start();
    client.wait_until_available();
    EXPECT_EQ(told(client.command({"ACL", "WHOAMI"})), "alice");
    Load load(client, count, 2000, std::chrono::seconds(10));
    load.run(50);
    EXPECT_EQ(load.good, 2000);
    EXPECT_EQ(redis.command({"GET", "load"}).number(), 2000);
  }

  const net::TestAuthority somebody_else;
  tls.ca_file = somebody_else.ca_file();
  options.tls = net::TlsClientContext::create(tls).value();
  {
    TestClient client(options);
    client.server->start();
    client.wait_for_event(Kind::connect_failed);
    EXPECT_EQ(client.count(Kind::connected), 0) << client.told();
  }

  tls.ca_file = authority.ca_file();
  tls.cert_file.clear();
  tls.key_file.clear();
  options.tls = net::TlsClientContext::create(tls).value();
  TestClient client(options);
  client.server->start();
  client.wait_for_event(Kind::connect_failed);
  EXPECT_EQ(client.count(Kind::connected), 0) << client.told();
}

}  // namespace
}  // namespace stint::redis
