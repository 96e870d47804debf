// Who is who among the Redis servers of a configuration.
#include "config/shards.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "redis/url.h"

namespace stint::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Redis redis_of(const std::string& block, const Environment& environment = {}) {
  const auto loaded = parse_bootstrap(
      "stint.yaml", "resources_file: r\nratelimit:\n  backend: redis\n  redis: {" + block + "}\n",
      environment);
  for (const Fault& fault : loaded.faults) ADD_FAILURE() << to_string(fault);
  return loaded.value ? *loaded.value->ratelimit.redis : Redis();
}

std::vector<std::string> names_of(const std::vector<RedisShard>& shards) {
  std::vector<std::string> names;
  names.reserve(shards.size());
  for (const RedisShard& shard : shards) names.push_back(shard.name);
  return names;
}

TEST(Shards, AreKnownByTheirNamesElseByTheirAddresses) {
  const auto shards = shards_of(redis_of(
      "shards: [{name: a, url: \"redis://h1\"}, {url: \"redis://u:p@h2:7000/4\", weight: 2.5}, "
      "{url: \"rediss://[::1]\"}]"));
  EXPECT_THAT(names_of(shards), ElementsAre("a", "h2:7000/4", "[::1]:6379/0"));
  EXPECT_EQ(shards[0].address(), "h1:6379/0");
  EXPECT_EQ(shards[0].weight, 1.0);
  EXPECT_EQ(shards[1].weight, 2.5);
  EXPECT_FALSE(shards[1].server.tls);
  EXPECT_TRUE(shards[2].server.tls);
}

TEST(Shards, TakeWhatTheirUrlDoesNotSayFromTheKeysBesideIt) {
  const auto shards = shards_of(
      redis_of("urls: [\"redis://h1\", \"b=redis://me:mine@h2/0\"], username: all, password: ours, "
               "database: 3"));
  EXPECT_THAT(names_of(shards), ElementsAre("h1:6379/3", "b"));
  EXPECT_EQ(shards[0].server.username, "all");
  EXPECT_EQ(shards[0].server.password, "ours");
  EXPECT_EQ(shards[1].server.username, "me");
  EXPECT_EQ(shards[1].server.password, "mine");
  EXPECT_EQ(shards[1].server.database, 0);  // said, so it counts
}

TEST(Shards, OfOneServerIsOne) {
  const auto shards = shards_of(redis_of("url: \"redis://:secret@h/2\""));
  ASSERT_EQ(shards.size(), 1U);
  EXPECT_EQ(shards[0].name, "h:6379/2");
  EXPECT_THAT(shards[0].address(), Not(HasSubstr("secret")));
}

TEST(Shards, OfBeforeAChangeAreKnownInTheSameWay) {
  const Redis redis = redis_of(
      "urls: [\"a=redis://h1\", \"b=redis://h2\"], previous: {urls: [\"a=redis://old\", "
      "\"redis://x\"]}, database: 1");
  EXPECT_THAT(names_of(previous_shards_of(redis)), ElementsAre("a", "x:6379/1"));
  EXPECT_THAT(previous_shards_of(redis_of("url: \"redis://h\"")), IsEmpty());
}

TEST(Shards, OfSentinelAndClusterAreNotKnown) {
  Redis redis;
  redis.mode = RedisMode::cluster;
  redis.nodes = {"h:1"};
  EXPECT_THAT(shards_of(redis), IsEmpty());
  redis.mode = RedisMode::sentinel;
  EXPECT_THAT(shards_of(redis), IsEmpty());
}

// The counters of a server without a name are found by this text: what the configuration says and
// what the client says must be one.
TEST(Shards, AddressIsTheOneThatTheClientKnows) {
  for (const char* url : {"redis://h", "redis://h:1/2", "rediss://u:p%40@Some.Host:65535/15",
                          "redis://[::1]", "redis://[2001:db8::1]:7/0", "redis://10.0.0.1:6379/"}) {
    const RedisShard shard = complete(Shard{.name = {}, .url = url}, Redis());
    EXPECT_EQ(shard.name, redis::to_string(redis::parse_url(url).value())) << url;
  }
}

TEST(Shards, MakeTheSameRingInWhateverOrder) {
  const Redis redis = redis_of(
      "shards: [{name: a, url: \"redis://h1\"}, {name: b, url: \"redis://h2\", weight: 2}, {url: "
      "\"redis://h3\"}], virtual_nodes: 20");
  auto shards = shards_of(redis);
  const auto ring = ring_of(shards, redis.virtual_nodes);
  ASSERT_TRUE(ring);
  EXPECT_EQ(ring->virtual_nodes(), 20);
  std::ranges::reverse(shards);
  shards[0].server.host = "elsewhere";  // with the name it had
  const auto other = ring_of(shards, redis.virtual_nodes);
  ASSERT_TRUE(other);
  EXPECT_THAT(HashRing::moves(*ring, *other), IsEmpty());
}

TEST(Shards, RefuseToMakeARingOfTwoAlike) {
  const std::vector<RedisShard> shards{{.name = "a"}, {.name = "a"}};
  EXPECT_EQ(ring_of(shards, 150).error().code, ErrorCode::already_exists);
}

}  // namespace
}  // namespace stint::config
