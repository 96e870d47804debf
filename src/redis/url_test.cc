#include "redis/url.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stint::redis {
namespace {

ServerAddress good(std::string_view text) {
  const auto address = parse_url(text);
  EXPECT_TRUE(address) << text << ": " << address.error();
  return address.value_or(ServerAddress());
}

TEST(RedisUrl, HasDefaults) {
  const ServerAddress address = good("redis://redis.local");
  EXPECT_EQ(address.host, "redis.local");
  EXPECT_EQ(address.port, 6379);
  EXPECT_EQ(address.database, 0U);
  EXPECT_EQ(address.username, "");
  EXPECT_EQ(address.password, "");
  EXPECT_FALSE(address.tls);
}

TEST(RedisUrl, HoldsAllParts) {
  const ServerAddress address = good("rediss://alice:secret@10.0.0.1:6380/15");
  EXPECT_TRUE(address.tls);
  EXPECT_EQ(address.username, "alice");
  EXPECT_EQ(address.password, "secret");
  EXPECT_EQ(address.host, "10.0.0.1");
  EXPECT_EQ(address.port, 6380);
  EXPECT_EQ(address.database, 15U);
}

TEST(RedisUrl, UserAndPasswordAreDecoded) {
  EXPECT_EQ(good("redis://:p%40ss%3a%2F%25@h").password, "p@ss:/%");
  EXPECT_EQ(good("redis://:p@ss@h").password, "p@ss");
  EXPECT_EQ(good("redis://:a:b@h").password, "a:b");
  EXPECT_EQ(good("redis://a%20b@h").username, "a b");
  EXPECT_EQ(good("redis://a%20b@h").password, "");
  EXPECT_EQ(good("redis://@h").username, "");
}

TEST(RedisUrl, BracketsHoldIpv6) {
  EXPECT_EQ(good("redis://[::1]").host, "::1");
  const ServerAddress address = good("redis://:x@[2001:db8::1]:7000/2");
  EXPECT_EQ(address.host, "2001:db8::1");
  EXPECT_EQ(address.port, 7000);
  EXPECT_EQ(to_string(address), "[2001:db8::1]:7000/2");
}

TEST(RedisUrl, AnEmptyDatabaseIsTheFirst) { EXPECT_EQ(good("redis://h/").database, 0U); }

TEST(RedisUrl, ItsNameHoldsNoSecrets) {
  EXPECT_EQ(to_string(good("rediss://alice:secret@h:1/3")), "h:1/3");
}

TEST(RedisUrl, RefusesEverythingElseWithoutRepeatingIt) {
  const std::vector<std::string> wrong{"",
                                       "redis.local:6379",
                                       "http://h",
                                       "REDIS://h",
                                       "redis:/h",
                                       "redis://",
                                       "redis://:6379",
                                       "redis://user:s3cret@",
                                       "redis://h:0",
                                       "redis://h:",
                                       "redis://h:65536",
                                       "redis://h:+1",
                                       "redis://h:6379x",
                                       "redis://s3cret host",
                                       "redis://::1",
                                       "redis://[::1",
                                       "redis://[::1]6379",
                                       "redis://[127.0.0.1]",
                                       "redis://[s3cret]",
                                       "redis://h/s3cret",
                                       "redis://h/-1",
                                       "redis://h/1/2",
                                       "redis://h/65536",
                                       "redis://h?db=1",
                                       "redis://:s3cret#x@h",
                                       "redis://:s3cret%@h",
                                       "redis://:s3cret%4@h",
                                       "redis://:%zzs3cret@h",
                                       "redis://" + std::string(254, 'h'),
                                       std::string("redis://h\0x", 11),
                                       std::string("redis://[::1\0]", 14)};
  for (const std::string& text : wrong) {
    const auto address = parse_url(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().find("s3cret"), std::string::npos);
    EXPECT_TRUE(address.error().starts_with("must") || address.error().starts_with("has"));
  }
}

}  // namespace
}  // namespace stint::redis
