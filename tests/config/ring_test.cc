// `stint ring`.
#include "cli/ring.h"

#include <gmock/gmock.h>

#include <string>

#include "tests/config/folder_testing.h"

namespace stint::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kTwo =
    "shards: [{name: a, url: \"redis://user:hush@h1\"}, {name: b, url: \"redis://h2/1\"}]";

class Ring : public testing::Test {
 protected:
  RingResult of(const std::string& redis, const RingChange& change = {}) {
    folder_.write("stint.yaml", "resources_file: r.yaml\nratelimit:\n  backend: redis\n  redis: {" +
                                    redis + "}\n");
    return ring(folder_.path("stint.yaml"), {}, change);
  }
  config::Folder folder_;
};

TEST_F(Ring, ShowsEachShardAndItsShare) {
  const auto result = of(std::string(kTwo) + ", virtual_nodes: 100");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.text,
            "2 shards, 100 virtual nodes for a weight of 1\n"
            "  shard   address     weight   points     share\n"
            "  a       h1:6379/0        1     1600   49.38 %\n"
            "  b       h2:6379/1        1     1600   50.62 %\n");
}

TEST_F(Ring, SaysThatThereIsOneShard) {
  const auto result = of("url: \"redis://h\"");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.text,
              AllOf(HasSubstr("one shard"), HasSubstr("h:6379/0"), HasSubstr("100.00 %")));
}

TEST_F(Ring, SaysWhatMovesWhenAShardComes) {
  const auto result = of(kTwo, {.with = {"c=redis://:hush@h3"}});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(
      result.text,
      AllOf(HasSubstr("after the change: 3 shards"), HasSubstr("of all buckets would move:\n"),
            testing::ContainsRegex("  a +c +1[0-9]\\.[0-9]{2} %\n"),
            testing::ContainsRegex("  b +c +1[0-9]\\.[0-9]{2} %\n"),
            Not(testing::ContainsRegex("  c +[ab] ")), Not(HasSubstr("hush"))));
}

TEST_F(Ring, SaysWhatMovesWhenOneGoesAndOneComes) {
  const auto result = of(kTwo, {.with = {"redis://h4:7/2,0.5"}, .without = {"a"}});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.text, testing::ContainsRegex("h4:7/2 +h4:7/2 +0.5 +1200 "));
  EXPECT_THAT(result.text, testing::ContainsRegex("  a +b +[0-9]"));
  EXPECT_THAT(result.text, testing::ContainsRegex("  b +h4:7/2 +[0-9]"));
}

TEST_F(Ring, AnotherAddressMovesNothing) {
  const auto result = of(kTwo, {.with = {"a=redis://elsewhere"}, .without = {"a"}});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.text, AllOf(HasSubstr("elsewhere:6379/0"), HasSubstr("no bucket moves\n")));
}

TEST_F(Ring, AnotherWeightMovesToThatShard) {
  const auto result = of(kTwo, {.with = {"a=redis://h1,2"}, .without = {"a"}});
  EXPECT_THAT(result.text, testing::ContainsRegex("  b +a +[0-9]"));
  EXPECT_THAT(result.text, Not(testing::ContainsRegex("  a +b +[0-9]")));
}

TEST_F(Ring, SaysWhatTheConfigurationMoves) {
  const auto result = of(std::string(kTwo) + ", previous: {urls: [\"a=redis://h1\"]}");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.text, HasSubstr("from ratelimit.redis.previous to these: "));
  EXPECT_THAT(result.text, testing::ContainsRegex("  a +b +[45][0-9]\\."));
}

TEST_F(Ring, RefusesChangesThatCannotBe) {
  const auto refused = [&](const RingChange& change) {
    const auto result = of(kTwo, change);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.text, Not(HasSubstr("hush")));
    return result.text;
  };
  EXPECT_EQ(refused({.without = {"z"}}), "stint: ring: --without: there is no shard 'z'\n");
  EXPECT_EQ(refused({.without = {"a", "b"}}), "stint: ring: --without: no shard is left\n");
  EXPECT_EQ(refused({.with = {"a=redis://x"}}),
            "stint: ring: --with: there is a shard 'a' already; to change it, name it --without, "
            "too\n");
  EXPECT_EQ(refused({.with = {"c=redis://x", "d=redis://:hush@x,0"}}),
            "stint: ring: --with 2: has a weight that is not 0.01 to 100\n");
  EXPECT_EQ(refused({.with = {"c=redis://x,1e1"}}),
            "stint: ring: --with: has a weight that is not 0.01 to 100\n");
  EXPECT_EQ(refused({.with = {"=redis://:hush@x"}}),
            "stint: ring: --with: has no name before the =\n");
  EXPECT_THAT(refused({.with = {"c=:hush@x"}}), HasSubstr("--with: must be a URL"));
}

TEST_F(Ring, TakesACommaInAPassword) {
  const auto result = of(kTwo, {.with = {"c=redis://u:a,2@x,3"}});
  EXPECT_EQ(result.exit_code, 0) << result.text;
  EXPECT_THAT(result.text, testing::ContainsRegex("c +x:6379/0 +3 "));
}

TEST_F(Ring, OfMemoryThereIsNone) {
  folder_.write("stint.yaml", "resources_file: r.yaml\n");
  const auto result = ring(folder_.path("stint.yaml"), {}, {});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.text, HasSubstr("ratelimit.backend is memory"));
  EXPECT_EQ(ring(folder_.path("stint.yaml"), {}, {.with = {"redis://h"}}).exit_code, 1);
}

TEST_F(Ring, SaysWhatIsWrongWithTheConfiguration) {
  const auto result = of("mode: ring");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.text, HasSubstr("ratelimit.redis.mode: ring needs shards or urls"));
}

}  // namespace
}  // namespace stint::cli
