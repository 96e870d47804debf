#include "stint/headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stint {
namespace {

using namespace std::chrono_literals;
using std::chrono::days;
using std::chrono::sys_days;
using std::chrono::year;
using testing::ElementsAre;
using testing::IsEmpty;

using Fields = std::vector<HeaderField>;

constexpr auto kPlain = HeaderStyle::plain;
constexpr auto kOpenAi = HeaderStyle::openai;
constexpr auto kAnthropic = HeaderStyle::anthropic;

const TimePoint kNow = sys_days{year{2026} / 1 / 2} + 3h + 4min + 5s;

LimitStatus standing(std::string_view name, const Limit& limit, std::int64_t remaining,
                     Duration reset) {
  return {.policy_id = name,
          .policy_name = name,
          .limit = limit,
          .remaining = remaining,
          .reset = reset};
}

LimitStatus refused(std::string_view name, const Limit& limit, Duration wait, Duration reset) {
  LimitStatus status = standing(name, limit, 0, reset);
  status.verdict = Verdict::refused;
  status.wait = wait;
  return status;
}

LimitStatus never(std::string_view name, const Limit& limit) {
  LimitStatus status = standing(name, limit, 0, 0s);
  status.verdict = Verdict::never_fits;
  return status;
}

LimitStatus with(LimitStatus status, Verdict verdict, bool shadow = false) {
  status.verdict = verdict;
  status.shadow = shadow;
  return status;
}

Limit of(Unit unit, Duration window, std::int64_t quota) {
  Limit limit = tokens_per(window, quota);
  limit.unit = unit;
  return limit;
}

Limit bucket(Duration window, std::int64_t quota, std::int64_t burst) {
  Limit limit = requests_per(window, quota, Algorithm::token_bucket);
  limit.burst = burst;
  return limit;
}

Decision decided(Outcome outcome, std::vector<LimitStatus> limits) {
  Decision result;
  result.outcome = outcome;
  result.limits = std::move(limits);
  return result;
}

Fields admitted(std::vector<LimitStatus> limits, HeaderStyle style = kPlain) {
  return rate_limit_headers(decided(Outcome::admitted, std::move(limits)), style, kNow);
}

Fields refusal(std::vector<LimitStatus> limits, HeaderStyle style = kPlain) {
  return rate_limit_headers(decided(Outcome::refused, std::move(limits)), style, kNow);
}

std::string value(const Fields& fields, std::string_view name) {
  std::string found = "(none)";
  for (const HeaderField& field : fields) {
    if (field.name != name) continue;
    EXPECT_EQ(found, "(none)") << name << " is there twice";
    found = field.value;
  }
  return found;
}

std::vector<std::string_view> names(const Fields& fields) {
  std::vector<std::string_view> result;
  for (const HeaderField& field : fields) result.push_back(field.name);
  return result;
}

TEST(Headers, AreNoneWithoutALimit) {
  for (const HeaderStyle style : {kPlain, kOpenAi, kAnthropic}) {
    EXPECT_THAT(admitted({}, style), IsEmpty());
    EXPECT_THAT(refusal({}, style), IsEmpty());
  }
}

TEST(Headers, AreNoneWhenNothingIsKnown) {
  const auto limit = standing("team", requests_per(60s, 10), 0, 0s);
  EXPECT_THAT(rate_limit_headers(decided(Outcome::undecided, {limit}), kPlain, kNow), IsEmpty());
}

TEST(Headers, DescribeAnAdmission) {
  EXPECT_THAT(
      admitted({standing("team", requests_per(60s, 60), 59, 12'000'001us)}),
      ElementsAre(
          HeaderField{"RateLimit-Policy", "\"team-requests-60s\";q=60;qu=\"requests\";w=60"},
          HeaderField{"RateLimit", "\"team-requests-60s\";r=59;t=13"},
          HeaderField{"X-RateLimit-Limit", "60"}, HeaderField{"X-RateLimit-Remaining", "59"},
          HeaderField{"X-RateLimit-Reset", "13"}));
}

TEST(Headers, DescribeTheLimitThatRefusedNotTheOneThatPassed) {
  const auto passed = standing("a", requests_per(60s, 60), 56, 12s);
  const auto tokens = refused("b", tokens_per(1h, 1'000), 2'400'000'001us, 2'400'000'001us);
  for (const auto& limits : {std::vector{passed, tokens}, std::vector{tokens, passed}}) {
    EXPECT_THAT(
        refusal(limits),
        ElementsAre(
            HeaderField{"RateLimit-Policy",
                        "\"b-tokens-3600s\";q=1000;qu=\"tokens\";w=3600, "
                        "\"a-requests-60s\";q=60;qu=\"requests\";w=60"},
            HeaderField{"RateLimit", "\"b-tokens-3600s\";r=0;t=2401, \"a-requests-60s\";r=56;t=12"},
            HeaderField{"X-RateLimit-Limit", "1000"}, HeaderField{"X-RateLimit-Remaining", "0"},
            HeaderField{"X-RateLimit-Reset", "2401"}, HeaderField{"Retry-After", "2401"},
            HeaderField{"retry-after-ms", "2400001"}));
  }
}

// --- Retry-After

TEST(RetryFields, AreRoundedUpAndAtLeastASecond) {
  struct Case {
    Duration wait;
    const char* seconds;
    const char* milliseconds;
  };
  for (const auto& [wait, seconds, milliseconds] :
       {Case{1us, "1", "1"}, Case{1ms, "1", "1"}, Case{1'001us, "1", "2"}, Case{1s, "1", "1000"},
        Case{1s + 1us, "2", "1001"}, Case{59s + 999'999us, "60", "60000"},
        Case{days{366}, "31622400", "31622400000"}}) {
    const Fields fields = refusal({refused("team", requests_per(1h, 1), wait, 1h)});
    EXPECT_EQ(value(fields, "Retry-After"), seconds) << wait.count();
    EXPECT_EQ(value(fields, "retry-after-ms"), milliseconds) << wait.count();
  }
}

TEST(RetryFields, OfConcurrencySayOneSecond) {
  const Fields fields = refusal({refused("team", in_flight(3), 1s, 1s)});
  EXPECT_EQ(value(fields, "Retry-After"), "1");
  EXPECT_EQ(value(fields, "retry-after-ms"), "1000");
}

TEST(RetryFields, SayNotToRetryWhatNeverFits) {
  for (const HeaderStyle style : {kPlain, kOpenAi, kAnthropic}) {
    const Fields fields = refusal(
        {refused("hour", requests_per(1h, 1), 40min, 40min), never("zero", requests_per(60s, 0))},
        style);
    EXPECT_EQ(value(fields, "x-should-retry"), "false");
    EXPECT_EQ(value(fields, "Retry-After"), "(none)");
    EXPECT_EQ(value(fields, "retry-after-ms"), "(none)");
    EXPECT_EQ(value(fields, "RateLimit").substr(0, 22), "\"zero-requests-60s\";r=");
  }
}

TEST(RetryFields, AreOnRefusalsOnly) {
  const Fields fields = admitted({standing("team", requests_per(60s, 60), 0, 12s)});
  EXPECT_EQ(value(fields, "Retry-After"), "(none)");
  EXPECT_EQ(value(fields, "retry-after-ms"), "(none)");
  EXPECT_EQ(value(fields, "x-should-retry"), "(none)");
}

// --- RateLimit-Policy and RateLimit

TEST(DraftFields, ListTheTightestFourFirst) {
  const Fields fields = admitted(
      {standing("a", requests_per(1s, 10), 9, 1s), standing("b", requests_per(60s, 10), 5, 2s),
       standing("c", requests_per(1h, 10), 5, 3s), standing("d", requests_per(60s, 10), 1, 4s),
       standing("e", requests_per(60s, 10), 10, 5s)});
  EXPECT_EQ(value(fields, "RateLimit"),
            "\"d-requests-60s\";r=1;t=4, \"c-requests-3600s\";r=5;t=3, "
            "\"b-requests-60s\";r=5;t=2, \"a-requests-1s\";r=9;t=1");
  EXPECT_EQ(value(fields, "RateLimit-Policy"),
            "\"d-requests-60s\";q=10;qu=\"requests\";w=60, "
            "\"c-requests-3600s\";q=10;qu=\"requests\";w=3600, "
            "\"b-requests-60s\";q=10;qu=\"requests\";w=60, "
            "\"a-requests-1s\";q=10;qu=\"requests\";w=1");
}

TEST(DraftFields, ListTheRefuserFirstThoughFourAreTighter) {
  auto roomy = refused("z", requests_per(60s, 10), 30s, 50s);
  roomy.remaining = 9;  // the cost was 10
  const Fields fields = refusal({standing("a", requests_per(60s, 10), 0, 1s),
                                 standing("b", requests_per(60s, 10), 0, 1s),
                                 standing("c", requests_per(60s, 10), 0, 1s),
                                 standing("d", requests_per(60s, 10), 0, 1s), roomy});
  EXPECT_EQ(value(fields, "RateLimit"),
            "\"z-requests-60s\";r=9;t=30, \"a-requests-60s\";r=0;t=1, "
            "\"b-requests-60s\";r=0;t=1, \"c-requests-60s\";r=0;t=1");
}

TEST(DraftFields, LeaveOutShadowAndSkippedLimits) {
  const auto hidden = {with(standing("s", requests_per(60s, 10), 0, 1s), Verdict::refused, true),
                       with(standing("c", in_flight(10), 0, 1s), Verdict::skipped)};
  EXPECT_THAT(admitted(hidden), IsEmpty());
  std::vector<LimitStatus> limits = hidden;
  limits.push_back(standing("a", requests_per(60s, 10), 9, 1s));
  EXPECT_EQ(value(admitted(limits), "RateLimit"), "\"a-requests-60s\";r=9;t=1");
}

TEST(DraftFields, SayWhenMoreIsThereOnARefusalAndWhenAllIsThereElse) {
  const auto limit = refused("a", bucket(60s, 60, 100), 1s, 100s);
  EXPECT_EQ(value(refusal({limit}), "RateLimit"), "\"a-requests-60s-token_bucket\";r=0;t=1");
  EXPECT_EQ(value(refusal({limit}), "X-RateLimit-Reset"), "100");
}

TEST(DraftFields, SayNoTimeWhereThereIsNone) {
  EXPECT_EQ(value(admitted({standing("a", requests_per(60s, 10), 10, 0s)}), "RateLimit"),
            "\"a-requests-60s\";r=10");
  EXPECT_EQ(value(refusal({never("a", requests_per(60s, 0))}), "RateLimit"),
            "\"a-requests-60s\";r=0");
}

TEST(DraftFields, DescribeConcurrencyWithoutTimes) {
  const Fields fields = refusal({refused("team", in_flight(3), 1s, 1s)});
  EXPECT_EQ(value(fields, "RateLimit-Policy"),
            "\"team-concurrency\";q=3;qu=\"concurrent-requests\"");
  EXPECT_EQ(value(fields, "RateLimit"), "\"team-concurrency\";r=0");
}

TEST(DraftFields, NameEachUnit) {
  const auto policy = [](Unit unit) {
    return value(admitted({standing("a", of(unit, 60s, 10), 9, 1s)}), "RateLimit-Policy");
  };
  EXPECT_EQ(policy(Unit::tokens), "\"a-tokens-60s\";q=10;qu=\"tokens\";w=60");
  EXPECT_EQ(policy(Unit::input_tokens), "\"a-input_tokens-60s\";q=10;qu=\"input-tokens\";w=60");
  EXPECT_EQ(policy(Unit::output_tokens), "\"a-output_tokens-60s\";q=10;qu=\"output-tokens\";w=60");
}

TEST(DraftFields, RoundTheWindowUpToSecondsAndNameItExactly) {
  const auto policy = [](Duration window) {
    return value(admitted({standing("a", requests_per(window, 10), 9, 1us)}), "RateLimit-Policy");
  };
  EXPECT_EQ(policy(1ms), "\"a-requests-1ms\";q=10;qu=\"requests\";w=1");
  EXPECT_EQ(policy(1'500ms), "\"a-requests-1500ms\";q=10;qu=\"requests\";w=2");
  EXPECT_EQ(policy(1'000'001us), "\"a-requests-1000001us\";q=10;qu=\"requests\";w=2");
  EXPECT_EQ(policy(days{366}), "\"a-requests-31622400s\";q=10;qu=\"requests\";w=31622400");
}

TEST(DraftFields, DescribeATokenBucketByItsCapacityAndTheTimeThatFillsIt) {
  const auto policy = [](const Limit& limit) {
    return value(admitted({standing("a", limit, 0, 1us)}), "RateLimit-Policy");
  };
  EXPECT_EQ(policy(bucket(1s, 10, 100)),
            "\"a-requests-1s-token_bucket\";q=100;qu=\"requests\";w=10");
  EXPECT_EQ(policy(bucket(60s, 60, 10)),
            "\"a-requests-60s-token_bucket\";q=10;qu=\"requests\";w=10");
  EXPECT_EQ(policy(bucket(60s, 7, 10)),
            "\"a-requests-60s-token_bucket\";q=10;qu=\"requests\";w=86");  // 85.7
  EXPECT_EQ(policy(bucket(1s, 10, 1)), "\"a-requests-1s-token_bucket\";q=1;qu=\"requests\";w=1");
  EXPECT_EQ(policy(bucket(1s, 10, 0)), "\"a-requests-1s-token_bucket\";q=0;qu=\"requests\";w=1");
  EXPECT_EQ(policy(bucket(9s, 0, 5)), "\"a-requests-9s-token_bucket\";q=5;qu=\"requests\";w=9");
}

TEST(DraftFields, StayWithinTheIntegersOfStructuredFields) {
  const Fields fields =
      admitted({standing("a", requests_per(60s, kMaxQuantity), kMaxQuantity - 1, 1s)});
  EXPECT_EQ(value(fields, "RateLimit-Policy"),
            "\"a-requests-60s\";q=999999999999999;qu=\"requests\";w=60");
  EXPECT_EQ(value(fields, "RateLimit"), "\"a-requests-60s\";r=999999999999999;t=1");
  EXPECT_EQ(value(fields, "X-RateLimit-Limit"), "9007199254740991");
  EXPECT_EQ(value(fields, "X-RateLimit-Remaining"), "9007199254740990");
  EXPECT_EQ(value(admitted({standing("a", bucket(days{366}, 1, 1'000'000'000'000), 0, 1s)}),
                  "RateLimit-Policy"),
            "\"a-requests-31622400s-token_bucket\";q=1000000000000;qu=\"requests\";"
            "w=999999999999999");
}

std::string shown_name(std::string_view name) {
  return value(admitted({standing(name, in_flight(1), 1, 0s)}), "RateLimit");
}

TEST(MemberName, IsAlwaysAValidStructuredString) {
  EXPECT_EQ(shown_name("my team"), "\"my team-concurrency\";r=1");
  EXPECT_EQ(shown_name("a\"b\\c"), "\"a\\\"b\\\\c-concurrency\";r=1");
  EXPECT_EQ(shown_name("\xC3\xA9t\xC3\xA9s"), "\"??t??s-concurrency\";r=1");
  EXPECT_EQ(shown_name("a\r\nx: \x7F\x01y"), "\"a??x: ??y-concurrency\";r=1");
  EXPECT_EQ(shown_name(std::string_view("a\0b", 3)), "\"a?b-concurrency\";r=1");
  EXPECT_EQ(shown_name(""), "\"-concurrency\";r=1");
}

TEST(MemberName, ShowsAtMost64BytesOfThePolicysName) {
  EXPECT_EQ(shown_name(std::string(64, 'a')), "\"" + std::string(64, 'a') + "-concurrency\";r=1");
  EXPECT_EQ(shown_name(std::string(65, 'a')), "\"" + std::string(64, 'a') + "-concurrency\";r=1");
}

TEST(MemberName, TellsTheLimitsOfOnePolicyApart) {
  const Limit window = requests_per(60s, 10);
  const Limit sliding = requests_per(60s, 20, Algorithm::sliding_window);
  const Limit log = requests_per(60s, 30, Algorithm::sliding_log);
  const Limit tokens = tokens_per(60s, 40);
  EXPECT_EQ(value(admitted({standing("a", window, 0, 1s), standing("a", sliding, 0, 1s),
                            standing("a", log, 0, 1s), standing("a", tokens, 0, 1s)}),
                  "RateLimit"),
            "\"a-requests-60s\";r=0;t=1, \"a-requests-60s-sliding_window\";r=0;t=1, "
            "\"a-requests-60s-sliding_log\";r=0;t=1, \"a-tokens-60s\";r=0;t=1");
}

TEST(MemberName, TellsPoliciesOfOneShownNameApart) {
  auto first = standing("\xC3\xA9s", requests_per(60s, 10), 5, 1s);
  auto second = standing("\xC3\xBCs", requests_per(60s, 10), 1, 1s);
  auto third = standing("??s", requests_per(60s, 10), 3, 1s);
  const Fields fields = admitted({first, second, third});
  EXPECT_EQ(value(fields, "RateLimit"),
            "\"??s-requests-60s-2\";r=1;t=1, \"??s-requests-60s-3\";r=3;t=1, "
            "\"??s-requests-60s\";r=5;t=1");
  EXPECT_EQ(value(fields, "RateLimit-Policy"),
            "\"??s-requests-60s-2\";q=10;qu=\"requests\";w=60, "
            "\"??s-requests-60s-3\";q=10;qu=\"requests\";w=60, "
            "\"??s-requests-60s\";q=10;qu=\"requests\";w=60");
}

// --- Styles

TEST(OpenAiFields, AreAboutTheTightestLimitOfEachKind) {
  const Fields fields = admitted(
      {standing("a", requests_per(60s, 60), 59, 6min), standing("b", requests_per(1h, 100), 50, 1h),
       standing("c", tokens_per(60s, 1'000), 900, 1s),
       standing("d", of(Unit::output_tokens, 60s, 500), 100, 12ms),
       standing("e", in_flight(5), 0, 1s)},
      kOpenAi);
  EXPECT_THAT(std::vector(fields.begin() + 2, fields.end()),
              ElementsAre(HeaderField{"x-ratelimit-limit-requests", "100"},
                          HeaderField{"x-ratelimit-remaining-requests", "50"},
                          HeaderField{"x-ratelimit-reset-requests", "1h0m0s"},
                          HeaderField{"x-ratelimit-limit-tokens", "500"},
                          HeaderField{"x-ratelimit-remaining-tokens", "100"},
                          HeaderField{"x-ratelimit-reset-tokens", "12ms"}));
}

TEST(OpenAiFields, AreAboutTheRefuserOnARefusal) {
  auto roomy = refused("a", tokens_per(60s, 1'000), 30s, 30s);
  roomy.remaining = 900;
  const Fields fields = refusal({standing("b", of(Unit::input_tokens, 60s, 500), 1, 6min), roomy,
                                 standing("c", requests_per(60s, 60), 59, 1s)},
                                kOpenAi);
  EXPECT_EQ(value(fields, "x-ratelimit-limit-tokens"), "1000");
  EXPECT_EQ(value(fields, "x-ratelimit-remaining-tokens"), "900");
  EXPECT_EQ(value(fields, "x-ratelimit-reset-tokens"), "30s");
  EXPECT_EQ(value(fields, "x-ratelimit-limit-requests"), "60");
  EXPECT_EQ(value(fields, "Retry-After"), "30");
}

TEST(OpenAiFields, PrintResetsRoundedUpToMilliseconds) {
  struct Case {
    Duration reset;
    const char* text;
  };
  for (const auto& [reset, text] :
       {Case{0s, "0s"}, Case{1us, "1ms"}, Case{12ms, "12ms"}, Case{12'001us, "13ms"},
        Case{999'001us, "1s"}, Case{1s, "1s"}, Case{1'500ms, "1.5s"}, Case{1'050ms, "1.05s"},
        Case{1'001ms, "1.001s"}, Case{59'999'999us, "1m0s"}, Case{6min, "6m0s"},
        Case{90'951ms, "1m30.951s"}, Case{1h, "1h0m0s"}, Case{1h + 1ms, "1h0m0.001s"},
        Case{days{366}, "8784h0m0s"}}) {
    EXPECT_EQ(value(admitted({standing("a", requests_per(60s, 10), 1, reset)}, kOpenAi),
                    "x-ratelimit-reset-requests"),
              text);
  }
}

TEST(AnthropicFields, AreOneSetForEachUnit) {
  const Fields fields =
      admitted({standing("a", of(Unit::output_tokens, 60s, 400), 4, 4s),
                standing("a", of(Unit::input_tokens, 60s, 300), 3, 3s),
                standing("a", tokens_per(60s, 200), 2, 2s),
                standing("a", requests_per(60s, 100), 1, 1s), standing("a", in_flight(5), 0, 1s)},
               kAnthropic);
  EXPECT_THAT(
      std::vector(fields.begin() + 2, fields.end()),
      ElementsAre(HeaderField{"anthropic-ratelimit-requests-limit", "100"},
                  HeaderField{"anthropic-ratelimit-requests-remaining", "1"},
                  HeaderField{"anthropic-ratelimit-requests-reset", "2026-01-02T03:04:06Z"},
                  HeaderField{"anthropic-ratelimit-tokens-limit", "200"},
                  HeaderField{"anthropic-ratelimit-tokens-remaining", "2"},
                  HeaderField{"anthropic-ratelimit-tokens-reset", "2026-01-02T03:04:07Z"},
                  HeaderField{"anthropic-ratelimit-input-tokens-limit", "300"},
                  HeaderField{"anthropic-ratelimit-input-tokens-remaining", "3"},
                  HeaderField{"anthropic-ratelimit-input-tokens-reset", "2026-01-02T03:04:08Z"},
                  HeaderField{"anthropic-ratelimit-output-tokens-limit", "400"},
                  HeaderField{"anthropic-ratelimit-output-tokens-remaining", "4"},
                  HeaderField{"anthropic-ratelimit-output-tokens-reset", "2026-01-02T03:04:09Z"}));
}

TEST(AnthropicFields, NameTheInstantRoundedUpToSecondsAcrossCalendarEnds) {
  const auto reset = [](TimePoint now, Duration span) {
    const Decision decision =
        decided(Outcome::admitted, {standing("a", requests_per(60s, 10), 1, span)});
    return value(rate_limit_headers(decision, kAnthropic, now),
                 "anthropic-ratelimit-requests-reset");
  };
  EXPECT_EQ(reset(kNow, 0s), "2026-01-02T03:04:05Z");
  EXPECT_EQ(reset(kNow, 1us), "2026-01-02T03:04:06Z");
  EXPECT_EQ(reset(kNow + 1us, 0s), "2026-01-02T03:04:06Z");
  EXPECT_EQ(reset(sys_days{year{2026} / 12 / 31} + 24h - 1us, 0s), "2027-01-01T00:00:00Z");
  EXPECT_EQ(reset(sys_days{year{2028} / 2 / 28} + 23h + 59min, 60s), "2028-02-29T00:00:00Z");
  EXPECT_EQ(reset(sys_days{year{2026} / 2 / 28} + 23h + 59min, 60s), "2026-03-01T00:00:00Z");
  EXPECT_EQ(reset(TimePoint{}, 0s), "1970-01-01T00:00:00Z");
}

TEST(PlainFields, AreAboutTheTightestLimitThatHasAWindow) {
  const Fields fields =
      admitted({standing("a", in_flight(1), 0, 1s), standing("b", requests_per(60s, 10), 9, 30s),
                standing("c", requests_per(1h, 10), 4, 40s)});
  EXPECT_EQ(value(fields, "X-RateLimit-Limit"), "10");
  EXPECT_EQ(value(fields, "X-RateLimit-Remaining"), "4");
  EXPECT_EQ(value(fields, "X-RateLimit-Reset"), "40");
}

TEST(PlainFields, AreAboutConcurrencyWhereThatRefusedOrIsAllThereIs) {
  const Fields full =
      refusal({refused("a", in_flight(3), 1s, 1s), standing("b", requests_per(60s, 10), 0, 30s)});
  EXPECT_EQ(value(full, "X-RateLimit-Limit"), "3");
  EXPECT_EQ(value(full, "X-RateLimit-Remaining"), "0");
  EXPECT_EQ(value(full, "X-RateLimit-Reset"), "1");
  const Fields alone = admitted({standing("a", in_flight(3), 2, 0s)});
  EXPECT_EQ(value(alone, "X-RateLimit-Limit"), "3");
  EXPECT_EQ(value(alone, "X-RateLimit-Remaining"), "2");
  EXPECT_EQ(value(alone, "X-RateLimit-Reset"), "0");
}

TEST(PlainFields, CountATokenBucketAgainstItsBurst) {
  const Fields fields = admitted({standing("a", bucket(1s, 10, 100), 73, 2'700ms)});
  EXPECT_EQ(value(fields, "X-RateLimit-Limit"), "100");
  EXPECT_EQ(value(fields, "X-RateLimit-Remaining"), "73");
  EXPECT_EQ(value(fields, "X-RateLimit-Reset"), "3");
}

TEST(StyleFields, HaveNoneOfAKindThatHasNoLimit) {
  EXPECT_THAT(names(admitted({standing("a", in_flight(3), 2, 0s)}, kOpenAi)),
              ElementsAre("RateLimit-Policy", "RateLimit"));
  EXPECT_THAT(names(refusal({refused("a", in_flight(3), 1s, 1s)}, kAnthropic)),
              ElementsAre("RateLimit-Policy", "RateLimit", "Retry-After", "retry-after-ms"));
}

}  // namespace
}  // namespace stint
