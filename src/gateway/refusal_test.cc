#include "gateway/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace stint::gateway {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

namespace json = boost::json;

constexpr auto kOpenAi = HeaderStyle::openai;
const TimePoint kNow = std::chrono::sys_days{std::chrono::year{2026} / 1 / 2};

LimitStatus standing(std::string_view name, const Limit& limit, std::int64_t remaining,
                     Duration reset) {
  return {.policy_id = name,
          .policy_name = name,
          .limit = limit,
          .remaining = remaining,
          .reset = reset};
}

LimitStatus refused(std::string_view name, const Limit& limit, Duration wait) {
  LimitStatus status = standing(name, limit, 0, wait);
  status.verdict = Verdict::refused;
  status.wait = wait;
  return status;
}

Decision refusal_of(std::vector<LimitStatus> limits) {
  return {.outcome = Outcome::refused, .limits = std::move(limits)};
}

json::object error_of(const OwnAnswer& answer) {
  return json::parse(answer.body).as_object().at("error").as_object();
}

std::string text_of(const json::object& object, std::string_view key) {
  return json::value_to<std::string>(object.at({key.data(), key.size()}));
}

TEST(Refusal, OfRequests) {
  const OwnAnswer answer =
      refuse(refusal_of({refused("team", requests_per(1min, 10), 12'345'678us)}), kOpenAi, kNow);
  EXPECT_EQ(answer.head.status, 429);
  EXPECT_EQ(answer.head.reason, "Too Many Requests");
  EXPECT_EQ(answer.head.fields.get("Content-Type"), "application/json");
  EXPECT_EQ(answer.head.fields.get("Retry-After"), "13");
  EXPECT_EQ(answer.head.fields.get("retry-after-ms"), "12346");
  EXPECT_EQ(answer.head.fields.get("x-ratelimit-remaining-requests"), "0");
  EXPECT_EQ(json::parse(answer.body), json::parse(R"({"error":{
    "message":"request limit exceeded (requests): policy \"team\" allows 10 per 60 s; try again in 12.346 s",
    "type":"rate_limit_exceeded","code":"rate_limit_exceeded",
    "policy":{"id":"team","name":"team"},
    "rate_limit":{"unit":"requests","quota":10,"window_secs":60,"remaining":0,
                  "retry_after_ms":12346}}})"));
}

TEST(Refusal, OfTokens) {
  for (const Unit unit : {Unit::tokens, Unit::input_tokens, Unit::output_tokens}) {
    Limit limit = tokens_per(250ms, 10);
    limit.unit = unit;
    const json::object error =
        error_of(refuse(refusal_of({refused("team", limit, 12ms)}), kOpenAi, kNow));
    EXPECT_THAT(text_of(error, "message"),
                StartsWith("token limit exceeded (" + std::string(to_string(unit)) + ")"));
    EXPECT_THAT(text_of(error, "message"), HasSubstr("10 per 250 ms; try again in 12 ms"));
    EXPECT_EQ(text_of(error, "code"), "token_limit_exceeded");
    EXPECT_EQ(text_of(error, "type"), "rate_limit_exceeded");
    EXPECT_EQ(error.at("rate_limit").at("window_secs"), 0.25);
  }
}

TEST(Refusal, OfConcurrency) {
  const OwnAnswer answer = refuse(refusal_of({refused("key", in_flight(5), 1s)}), kOpenAi, kNow);
  const json::object error = error_of(answer);
  EXPECT_EQ(text_of(error, "code"), "concurrency_limit_exceeded");
  EXPECT_EQ(
      text_of(error, "message"),
      "concurrency limit exceeded (concurrency): policy \"key\" allows 5 at a time; try again "
      "when another request has ended");
  EXPECT_EQ(error.at("rate_limit").at("window_secs"), nullptr);
  EXPECT_EQ(error.at("rate_limit").at("retry_after_ms"), 1'000);
  EXPECT_EQ(answer.head.fields.get("Retry-After"), "1");
}

TEST(Refusal, ThatNeverFits) {
  LimitStatus status = standing("team", tokens_per(1min, 10), 10, 0s);
  status.verdict = Verdict::never_fits;
  const OwnAnswer answer = refuse(refusal_of({status}), kOpenAi, kNow);
  EXPECT_EQ(answer.head.status, 429);
  EXPECT_EQ(answer.head.fields.get("Retry-After"), std::nullopt);
  EXPECT_EQ(answer.head.fields.get("retry-after-ms"), std::nullopt);
  EXPECT_EQ(answer.head.fields.get("x-should-retry"), "false");
  const json::object error = error_of(answer);
  EXPECT_EQ(text_of(error, "code"), "never_fits");
  EXPECT_EQ(error.at("rate_limit").at("retry_after_ms"), nullptr);
  EXPECT_EQ(error.at("rate_limit").at("remaining"), 10);
  EXPECT_THAT(text_of(error, "message"), HasSubstr("waiting does not help"));

  status.limit.quota = 0;
  status.remaining = 0;
  EXPECT_THAT(text_of(error_of(refuse(refusal_of({status}), kOpenAi, kNow)), "message"),
              HasSubstr("no request is admitted"));
}

// C05: the limit that refused, not one that passed; of several the longest wait; in any order.
TEST(Refusal, DescribesTheLimitThatRefused) {
  const LimitStatus passed = standing("a", requests_per(60s, 60), 56, 12s);
  const LimitStatus budget = refused("b", tokens_per(1h, 1'000), 50min);
  const LimitStatus shorter = refused("c", requests_per(1s, 1), 1s);
  for (const auto& limits :
       {std::vector{passed, budget, shorter}, std::vector{shorter, budget, passed}}) {
    const OwnAnswer answer = refuse(refusal_of(limits), kOpenAi, kNow);
    EXPECT_EQ(answer.head.fields.get("Retry-After"), "3000");
    EXPECT_EQ(answer.head.fields.get("x-ratelimit-limit-tokens"), "1000");
    EXPECT_EQ(answer.head.fields.get("x-ratelimit-remaining-tokens"), "0");
    const json::object error = error_of(answer);
    EXPECT_EQ(text_of(error.at("policy").as_object(), "id"), "b");
    EXPECT_EQ(error.at("rate_limit").at("quota"), 1'000);
    EXPECT_EQ(error.at("rate_limit").at("window_secs"), 3'600);
  }
}

TEST(Refusal, OfABucketNamesItsBurst) {
  Limit limit = requests_per(1s, 5, Algorithm::token_bucket);
  limit.burst = 20;
  EXPECT_THAT(
      text_of(error_of(refuse(refusal_of({refused("p", limit, 1s)}), kOpenAi, kNow)), "message"),
      HasSubstr("allows 5 per 1 s and at most 20 at once; try again in 1 s"));
}

TEST(Refusal, OfMessagesHasAnthropicsEnvelope) {
  const OwnAnswer answer = refuse(refusal_of({refused("team", requests_per(1min, 10), 2s)}),
                                  HeaderStyle::anthropic, kNow);
  const json::object body = json::parse(answer.body).as_object();
  EXPECT_EQ(text_of(body, "type"), "error");
  EXPECT_EQ(text_of(body.at("error").as_object(), "type"), "rate_limit_error");
  EXPECT_EQ(text_of(body.at("error").as_object(), "code"), "rate_limit_exceeded");
  EXPECT_EQ(answer.head.fields.get("anthropic-ratelimit-requests-remaining"), "0");
}

TEST(Refusal, PlainRoutesHavePlainFields) {
  const OwnAnswer answer =
      refuse(refusal_of({refused("r", requests_per(1min, 10), 2s)}), HeaderStyle::plain, kNow);
  EXPECT_EQ(answer.head.fields.get("X-RateLimit-Limit"), "10");
  EXPECT_EQ(text_of(error_of(answer), "code"), "rate_limit_exceeded");
}

TEST(Refusal, NamesAreSafeInTheBody) {
  const std::string name = "a\"b\\c\n\xFF" + std::string(500, 'x');
  const OwnAnswer answer =
      refuse(refusal_of({refused(name, requests_per(1min, 10), 2s)}), kOpenAi, kNow);
  const json::object error = error_of(answer);  // it parses
  EXPECT_LT(text_of(error, "message").size(), 300U);
  EXPECT_THAT(text_of(error, "message"), HasSubstr("a\"b\\c??xxx"));
  EXPECT_THAT(text_of(error.at("policy").as_object(), "name"), StartsWith("a\"b\\c\n\uFFFDxxx"));
}

TEST(Refusal, UndecidedIs503) {
  const OwnAnswer answer = refuse({.outcome = Outcome::undecided}, kOpenAi, kNow);
  EXPECT_EQ(answer.head.status, 503);
  EXPECT_EQ(answer.head.fields.get("Retry-After"), "1");
  EXPECT_EQ(text_of(error_of(answer), "code"), "limits_unavailable");
  EXPECT_EQ(text_of(error_of(answer), "type"), "server_error");
  EXPECT_EQ(json::parse(refuse({}, HeaderStyle::anthropic, kNow).body).at("error").at("type"),
            "overloaded_error");
}

TEST(RateLimitFields, ReplaceAllOfTheUpstream) {
  http::Fields fields;
  fields.add("X-RateLimit-Limit-Requests", "1");
  fields.add("x-ratelimit-remaining-tokens", "2");
  fields.add("anthropic-ratelimit-requests-limit", "3");
  fields.add("RateLimit", "4");
  fields.add("RateLimit-Policy", "5");
  fields.add("Retry-After", "6");
  fields.add("X-Rate", "7");
  const http::Fields before = fields;

  set_rate_limit_fields(fields, {.outcome = Outcome::admitted}, kOpenAi, kNow);
  EXPECT_EQ(fields.all().size(), before.all().size());

  set_rate_limit_fields(
      fields,
      {.outcome = Outcome::admitted, .limits = {standing("p", requests_per(1min, 10), 9, 1s)}},
      kOpenAi, kNow);
  EXPECT_EQ(fields.get("x-ratelimit-limit-requests"), "10");
  EXPECT_EQ(fields.count("x-ratelimit-limit-requests"), 1U);
  EXPECT_EQ(fields.count("x-ratelimit-remaining-tokens"), 0U);
  EXPECT_EQ(fields.count("anthropic-ratelimit-requests-limit"), 0U);
  EXPECT_EQ(fields.count("ratelimit"), 1U);
  EXPECT_EQ(fields.count("ratelimit-policy"), 1U);
  EXPECT_EQ(fields.get("retry-after"), "6");
  EXPECT_EQ(fields.get("x-rate"), "7");
}

TEST(RateLimitFields, WrittenOutTheyAreTheSame) {
  const Decision decision = {.outcome = Outcome::admitted,
                             .limits = {standing("p", requests_per(1min, 10), 9, 1s),
                                        standing("q", tokens_per(24h, 1'000'000), 5, 1h)}};
  http::ResponseHead head;
  head.fields.add("RateLimit", "4");
  head.fields.add("X-Rate", "7");
  set_rate_limit_lines(head, decision, kOpenAi, kNow);
  EXPECT_EQ(head.fields.all().size(), 1U);

  http::Fields fields;
  set_rate_limit_fields(fields, decision, kOpenAi, kNow);
  std::string lines;
  for (const http::Field& field : fields.all()) lines += field.name + ": " + field.value + "\r\n";
  EXPECT_EQ(head.lines, lines);
  EXPECT_THAT(lines, HasSubstr("RateLimit-Policy: "));

  http::ResponseHead unlimited;
  set_rate_limit_lines(unlimited, {.outcome = Outcome::admitted}, kOpenAi, kNow);
  EXPECT_EQ(unlimited.lines, "");
}

TEST(Errors, StatusAndCode) {
  const std::vector<std::pair<GatewayError, int>> statuses = {
      {GatewayError::bad_request, 400},        {GatewayError::missing_key, 401},
      {GatewayError::unknown_key, 401},        {GatewayError::forbidden_model, 403},
      {GatewayError::unknown_model, 404},      {GatewayError::unknown_path, 404},
      {GatewayError::wrong_method, 405},       {GatewayError::body_too_large, 413},
      {GatewayError::internal, 500},           {GatewayError::upstream_failed, 502},
      {GatewayError::upstream_malformed, 502}, {GatewayError::not_ready, 503},
      {GatewayError::upstream_timeout, 504}};
  std::set<std::string_view> codes;
  for (const auto& [error, status] : statuses) {
    const OwnAnswer answer = error_answer(error, "about");
    EXPECT_EQ(answer.head.status, status);
    EXPECT_EQ(status_of(error), status);
    EXPECT_FALSE(answer.head.reason.empty());
    EXPECT_EQ(text_of(error_of(answer), "code"), code_of(error));
    EXPECT_EQ(text_of(error_of(answer), "type"),
              status < 500 ? "invalid_request_error" : "server_error");
    EXPECT_FALSE(text_of(error_of(answer), "message").empty());
    EXPECT_EQ(error_of(answer).at("param"), nullptr);
    codes.insert(code_of(error));
    const json::value anthropic = json::parse(error_answer(error, {}, HeaderStyle::anthropic).body);
    EXPECT_EQ(anthropic.at("type"), "error");
  }
  EXPECT_EQ(codes.size(), statuses.size());
  EXPECT_EQ(error_answer(GatewayError::missing_key).head.fields.get("WWW-Authenticate"), "Bearer");
}

TEST(Errors, NameWhatTheyAreAbout) {
  EXPECT_EQ(text_of(error_of(error_answer(GatewayError::unknown_model, "gpt-9")), "message"),
            "There is no model `gpt-9`. GET /v1/models lists those that there are.");
  const std::string long_name(10'000, 'x');
  EXPECT_LT(error_answer(GatewayError::unknown_model, long_name).body.size(), 400U);
  // Cut between characters.
  std::string wide = "x";
  for (int i = 0; i < 100; ++i) wide += "\u26a1";
  EXPECT_THAT(text_of(error_of(error_answer(GatewayError::unknown_model, wide)), "message"),
              HasSubstr("\u26a1...`"));
}

TEST(Errors, OfABodyNameTheMember) {
  const OwnAnswer answer = error_answer(RequestFault{"`n` is wrong.", "n"});
  EXPECT_EQ(answer.head.status, 400);
  EXPECT_EQ(text_of(error_of(answer), "message"), "`n` is wrong.");
  EXPECT_EQ(text_of(error_of(answer), "param"), "n");
}

TEST(Errors, AsTheEndOfAStream) {
  const std::string event = error_event(GatewayError::upstream_failed, true);
  EXPECT_THAT(event, StartsWith("data: {"));
  EXPECT_THAT(event, testing::EndsWith("}\n\n"));
  EXPECT_EQ(error_event(GatewayError::upstream_failed, false), "\n\n" + event);
  EXPECT_EQ(json::parse(event.substr(6)).at("error").at("code"), "upstream_failed");
  EXPECT_THAT(error_event(GatewayError::upstream_timeout, true, HeaderStyle::anthropic),
              StartsWith("event: error\ndata: {\"type\":\"error\""));
}

}  // namespace
}  // namespace stint::gateway
