// Faults that rate limiters met in production, each as the behaviour that rules it out. The
// names tell the fault; what belongs to other layers (loading, headers) is tested there.
#include <string>
#include <utility>
#include <vector>

#include "limit/bucket_key.h"
#include "tests/contract/store_contract.h"

namespace stint::store {
namespace {

STINT_STORE_CONTRACT(FieldCases);

TEST_P(FieldCases, C01ALimitOfZeroDeniesAllOfAThousandAndNothingBreaks) {
  const auto set = limits({requests_per(kMinute, 0)});
  EXPECT_EQ(admitted_of(1000, {{"a", set}}), 0);
  EXPECT_EQ(remaining("a", set), 0);
}

TEST_P(FieldCases, C02AnIdleBucketIsFullHoweverLongItWasIdle) {
  constexpr std::int64_t kLimit = 1'000'000'000;
  for (const Algorithm algorithm :
       {Algorithm::fixed_window, Algorithm::sliding_window, Algorithm::token_bucket}) {
    const auto set = limits({tokens_per(kSecond, kLimit, algorithm)});
    const std::string key(to_string(algorithm));
    SCOPED_TRACE(key);
    set_time(kStart);
    ASSERT_TRUE(admits(key, set));
    for (const Duration idle : {12 * kHour, 30 * kDay, 36'525 * kDay}) {
      advance(idle);
      const Call made = acquired({{key, set}});
      EXPECT_TRUE(made.admitted());
      EXPECT_EQ(made.slot().remaining, kLimit - 1);
    }
  }
}

TEST_P(FieldCases, C04ParallelEstimatesAreReservedAndReplacedByTheRealUse) {
  const auto set = limits({tokens_per(kMinute, 100)});
  std::vector<Call> admitted;
  for (int i = 0; i < 5; ++i) {
    Call made = acquired({{"a", set, {{40}}}});
    if (made.admitted()) admitted.push_back(std::move(made));
  }
  ASSERT_EQ(admitted.size(), 2U);
  for (Call& made : admitted) EXPECT_TRUE(settle(made, {30}));
  EXPECT_EQ(value("a"), 60);
  EXPECT_TRUE(admits("a", set, 40));
  EXPECT_FALSE(admits("a", set, 1));
}

TEST_P(FieldCases, C05ARefusalIsAboutTheLimitThatRefusedInAnyOrder) {
  const Limit requests = requests_per(kMinute, 60);
  const Limit tokens = tokens_per(kHour, 1000);
  for (const bool swapped : {false, true}) {
    const std::string key = swapped ? "swapped" : "straight";
    SCOPED_TRACE(key);
    const auto set = swapped ? limits({tokens, requests}) : limits({requests, tokens});
    const std::size_t t = swapped ? 0 : 1;
    const auto asks = [&](std::int64_t cost) {
      return swapped ? std::vector<Ask>{{cost}, {1}} : std::vector<Ask>{{1}, {cost}};
    };
    set_time(kStart + 48 * kSecond);
    ASSERT_TRUE(acquired({{key, set, asks(1000)}}).admitted());
    const Call refused = acquired({{key, set, asks(1)}});
    EXPECT_FALSE(refused.admitted());
    EXPECT_EQ(refused.slot(1 - t).verdict, Verdict::fits);
    EXPECT_EQ(refused.slot(1 - t).remaining, 59);
    EXPECT_EQ(refused.slot(t).verdict, Verdict::refused);
    EXPECT_EQ(refused.slot(t).remaining, 0);
    EXPECT_EQ(refused.slot(t).wait, kHour - 48 * kSecond);
    EXPECT_EQ(refused.slot(t).reset, kHour - 48 * kSecond);
    EXPECT_EQ(refused.wait(), kHour - 48 * kSecond);
  }
}

TEST_P(FieldCases, C06AnAbusiveUserDoesNotUseUpTheSite) {
  const auto site = limits({requests_per(kMinute, 100)});
  const auto user = limits({requests_per(kMinute, 10)});
  for (const bool swapped : {false, true}) {
    SCOPED_TRACE(swapped);
    const std::string prefix = swapped ? "swapped" : "straight";
    const auto buckets = [&](const std::string& name) {
      std::vector<BucketAsk> both = {{prefix + ":site", site}, {prefix + ":user=", user}};
      both[1].key += name;
      both[1].text = both[1].key;
      if (swapped) std::swap(both[0], both[1]);
      return both;
    };
    EXPECT_EQ(admitted_of(200, buckets("x")), 10);
    EXPECT_EQ(value(prefix + ":site"), 10);
    int others = 0;
    for (int i = 0; i < 100; ++i) {
      others += acquired(buckets("other" + std::to_string(i))).admitted() ? 1 : 0;
    }
    EXPECT_EQ(others, 90);
  }
}

TEST_P(FieldCases, C12ARefusedEstimateIsNotKept) {
  const auto set = limits({tokens_per(kMinute, 1000)});
  ASSERT_TRUE(admits("a", set, 900));
  EXPECT_EQ(admitted_of(50, {{"a", set, {{200}}}}), 0);
  EXPECT_EQ(value("a"), 900);
  Call made = acquired({{"a", set, {{100}}}});
  EXPECT_TRUE(made.admitted());
  EXPECT_TRUE(give_back(made)) << "the upstream failed";
  EXPECT_EQ(value("a"), 900);
}

TEST_P(FieldCases, C19PartsThatJoinAlikeHaveBucketsOfTheirOwn) {
  using Parts = std::vector<std::pair<std::string, std::string>>;
  const std::vector<std::pair<std::string, Parts>> all = {
      {"p", {{"x", "a:b"}, {"y", "c"}}},
      {"p", {{"x", "a"}, {"y", "b:c"}}},
      {"p", {{"x", "a:y=b"}, {"y", "c"}}},
      {"p", {{"x", "a%3Ab"}, {"y", "c"}}},
      {"p", {{"x", ""}, {"y", "c"}}},
      {"p", {{"x", "c"}, {"y", ""}}},
      {"p:x", {{"y", "z"}}},
      {"p", {{"x:y", "z"}}},
      {"p", {{"user", "127.0.0.1"}}},
      {"p", {{"client_ip", "127.0.0.1"}}},
      {"p", {{"api_key", "sk-123456789a"}}},
      {"p", {{"api_key", "sk-123456789b"}}},
      {"p", {{"api_key", std::string(200, 'k') + "a"}}},
      {"p", {{"api_key", std::string(200, 'k') + "b"}}},
      {"p", {{"api_key", "%#0123"}}},
      {"p", {{"x", "a_b"}, {"y", "c|d/e,f=g"}}},
      {"p", {{"x", "a"}, {"y", "b_c|d/e,f=g"}}},
  };
  const auto set = limits({requests_per(kMinute, 1)});
  for (const auto& [policy, parts] : all) {
    std::string escaped;
    limit::append_escaped(escaped, policy);
    std::string text;
    limit::BucketKeyWriter writer(text, escaped);
    for (const auto& [name, value] : parts) {
      std::string dimension;
      limit::append_escaped(dimension, name);
      writer.add(dimension, value);
    }
    const limit::KeySpan span = writer.finish();
    const BucketAsk ask{text.substr(span.key_begin, span.key_size),
                        set,
                        {{1}},
                        false,
                        text.substr(span.text_begin, span.text_size)};
    EXPECT_TRUE(acquired({ask}).admitted()) << ask.text << " shares a bucket with another";
    EXPECT_FALSE(acquired({ask}).admitted()) << ask.text;
  }
  EXPECT_EQ(list().size(), all.size());
}

TEST_P(FieldCases, C23AClockThatStepsLocksNobodyOutAndGivesOneBurstAtMost) {
  const auto set = limits({token_bucket(10, 10 * kSecond, 10)});
  ASSERT_TRUE(admits("a", set, 7));
  for (const Duration step : {-11 * kSecond, -kHour, Duration{0}}) {
    advance(step);
    EXPECT_EQ(remaining("a", set), 3);
  }
  EXPECT_EQ(admitted_of(10, {{"a", set}}), 3);
  EXPECT_LE(acquired({{"a", set}}).wait(), 10 * kSecond);
  advance(kHour);
  EXPECT_EQ(admitted_of(30, {{"a", set}}), 10);
}

}  // namespace
}  // namespace stint::store
