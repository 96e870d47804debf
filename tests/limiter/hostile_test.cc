// Keys chosen by somebody hostile: none meets another's bucket, none frees a blocked one, and
// memory stays within its cap (C19, C24).
#include <malloc.h>

#include <random>

#include "store/memory/memory_store.h"
#include "tests/limiter/fixture.h"

namespace stint::test {
namespace {

using Hostile = LimiterTest;

TEST_F(Hostile, PartsThatReadAlikeTogetherAreDifferentBuckets) {
  limit({{.id = "p", .group_by = {"team", "member"}, .limits = {requests_per(60s, 1)}}});
  const std::vector<std::pair<std::string, std::string>> pairs{
      {"a:b", "c"}, {"a", "b:c"},     {"a:member=b", "c"}, {"a", "b:member=c"}, {"a_b", "c"},
      {"a", "b_c"}, {"a|b", "c"},     {"a", "b|c"},        {"a/b", "c"},        {"a", "b/c"},
      {"a,b", "c"}, {"a", "b,c"},     {"a=b", "c"},        {"a", "b=c"},        {"", "abc"},
      {"abc", ""},  {"a%3Ab", "c"},   {"a%", "3Ab"},       {"{a}", "b"},        {"a", "{b}"},
      {"", ""},     {":", ""},        {"", ":"},           {"%overflow", ""},   {"a\n", "b"},
      {"a", "\nb"}, {"\xff", "\xfe"}, {"\xfe", "\xff"}};
  for (const auto& [team, member] : pairs) {
    Attributes attributes;
    attributes.set(Dimension::team, team).set(Dimension::member, member);
    EXPECT_EQ(count_admitted(2, attributes), 1) << team << " and " << member;
  }
}

TEST_F(Hostile, PoliciesWhoseNamesRunIntoValuesAreDifferentBuckets) {
  Attributes attributes;
  attributes.set("x", "y:z").set("y", "z");
  limit({{.id = "x", .group_by = {"y"}, .limits = {requests_per(60s, 3)}},
         {.id = "x:y=z", .limits = {requests_per(60s, 3)}},
         {.id = "x:y", .group_by = {"x"}, .limits = {requests_per(60s, 3)}}});
  EXPECT_EQ(count_admitted(5, attributes), 3);
  EXPECT_EQ(limiter_->list("*")->buckets.size(), 3U);
}

TEST_F(Hostile, AUserNamedLikeAnAddressIsNotTheAddress) {
  limit({{.id = "user", .group_by = {"member"}, .limits = {requests_per(60s, 1)}},
         {.id = "address", .group_by = {"header:x-ip"}, .limits = {requests_per(60s, 2)}}});
  Attributes user;
  user.set(Dimension::member, "127.0.0.1").set("header:x-ip", "10.0.0.1");
  Attributes address;
  address.set("header:X-IP", "127.0.0.1");
  EXPECT_EQ(count_admitted(3, user), 1);
  EXPECT_EQ(count_admitted(3, address), 2);
}

TEST_F(Hostile, LongKeysThatShareABeginningAreDifferentBuckets) {
  limit({{.id = "p", .group_by = {"api_key"}, .limits = {requests_per(60s, 1)}}});
  const std::string beginning(5000, 'k');
  EXPECT_TRUE(admitted(beginning + "1"));
  EXPECT_TRUE(admitted(beginning + "2"));
  EXPECT_FALSE(admitted(beginning + "1"));
  EXPECT_EQ(limiter_->reset("p:api_key=kkkk*").removed, 2U);
  EXPECT_TRUE(admitted(beginning + "1"));
}

TEST_F(Hostile, ABucketExhaustedBeforeAFloodIsStillRefusedAfterIt) {
  constexpr int kCap = 10'000;
  limit({{.id = "p", .group_by = {"client_ip"}, .limits = {requests_per(1h, 2)}}},
        {.max_buckets = kCap});
  const auto of_ip = [](const std::string& ip) {
    Attributes attributes;
    attributes.set(Dimension::client_ip, ip);
    return attributes;
  };
  const std::string blocked = "198.51.100.1";
  EXPECT_EQ(count_admitted(3, of_ip(blocked)), 2);
  for (int i = 0; i < 10 * kCap; ++i) {
    const std::string ip = "ip-" + std::to_string(i);
    ASSERT_TRUE(admitted(of_ip(ip)));
    if (i % 1000 == 0) {
      ASSERT_FALSE(admitted(of_ip(blocked)));
    }
  }
  EXPECT_FALSE(admitted(of_ip(blocked)));
  EXPECT_LE(limiter_->stats().buckets, static_cast<std::size_t>(kCap));
  EXPECT_GE(limiter_->stats().evicted, static_cast<std::uint64_t>(8 * kCap));
}

// When every bucket is at its limit, new keys share one bucket: fewer are admitted, not more.
TEST_F(Hostile, WhenNoBucketCanGoNewKeysShareOne) {
  std::vector<std::string> warnings;
  limit({{.id = "p", .group_by = {"client_ip"}, .limits = {requests_per(1h, 1)}}},
        {.max_buckets = 100,
         .on_warning = [&](std::string_view text) { warnings.emplace_back(text); }});
  const auto try_new = [&](int number) {
    const std::string ip = std::to_string(number);
    Attributes attributes;
    attributes.set(Dimension::client_ip, ip);
    return admitted(attributes);
  };
  int count = 0;
  for (int i = 0; i < 1000; ++i) count += try_new(i) ? 1 : 0;
  EXPECT_EQ(count, 101);
  EXPECT_EQ(limiter_->stats().buckets, 101U);
  EXPECT_EQ(limiter_->stats().overflow_buckets, 1U);
  EXPECT_EQ(limiter_->stats().overflowed, 1U);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("policy p"), std::string::npos);
  clock_.advance(1h);
  EXPECT_TRUE(try_new(5000));
  EXPECT_TRUE(try_new(5001));
}

TEST_F(Hostile, SpentBucketsGoBeforeThoseInUse) {
  const auto policy = [](const char* id, const char* method, Duration window) {
    return Policy{.id = id,
                  .conditions = {Condition::equal("method", method)},
                  .group_by = {"client_ip"},
                  .limits = {requests_per(window, 9)}};
  };
  limit({policy("short", "GET", 1s), policy("long", "POST", 1h)}, {.max_buckets = 1000});
  const auto touch = [&](int number, const char* method) {
    const std::string ip = std::to_string(number);
    Attributes attributes;
    attributes.set(Dimension::client_ip, ip).set(Dimension::method, method);
    return admit(attributes).decision.limits[0].remaining;
  };
  for (int i = 0; i < 500; ++i) touch(i, "GET");
  for (int i = 0; i < 500; ++i) touch(i, "POST");
  clock_.advance(2s);
  for (int i = 500; i < 1000; ++i) EXPECT_EQ(touch(i, "POST"), 8);
  EXPECT_EQ(limiter_->stats().evicted, 0U);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(touch(i, "POST"), 7) << i;
}

TEST_F(Hostile, MemoryStaysWithinTheCapUnderTenTimesAsManyKeys) {
  constexpr int kCap = 50'000;
  limit({{.id = "p", .group_by = {"client_ip"}, .limits = {requests_per(24h, 1000)}}},
        {.max_buckets = kCap});
  std::size_t at_cap = 0;
  for (int i = 0; i < 10 * kCap; ++i) {
    const std::string ip = std::to_string(1'000'000'000 + i);
    Attributes attributes;
    attributes.set(Dimension::client_ip, ip);
    ASSERT_TRUE(admitted(attributes));
    if (i == kCap) at_cap = mallinfo2().uordblks;
  }
  EXPECT_EQ(limiter_->stats().buckets, static_cast<std::size_t>(kCap));
  // Under a sanitizer the allocator is another and counts nothing here.
  EXPECT_LE(mallinfo2().uordblks, at_cap + at_cap / 10);
}

}  // namespace
}  // namespace stint::test
