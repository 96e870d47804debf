// The policies that each form of a limit becomes, to the letter.
#include <gmock/gmock.h>

#include <string>
#include <string_view>
#include <vector>

#include "config/identity.h"
#include "config/snapshot.h"

namespace stint::config {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string text_of(const Condition& condition) {
  std::string text = condition.negate ? "not " : "";
  if (condition.children.empty()) {
    const char* op = condition.op == Operator::equal       ? "=="
                     : condition.op == Operator::not_equal ? "~="
                                                           : " in ";
    text += condition.dimension + op;
    for (const std::string& value : condition.values) {
      text += value + (&value == &condition.values.back() ? "" : ",");
    }
    return text;
  }
  text += condition.logic == Logic::all ? "all(" : "any(";
  for (const Condition& child : condition.children) {
    text += text_of(child) + (&child == &condition.children.back() ? "" : " ");
  }
  return text + ")";
}

std::string text_of(const Limit& limit) {
  std::string text = std::to_string(limit.quota) + " " + std::string(to_string(limit.unit));
  if (limit.window != Duration::zero())
    text += "/" + std::to_string(limit.window / Duration{1'000'000}) + "s";
  if (limit.algorithm != Algorithm::fixed_window && limit.unit != Unit::concurrency) {
    text += " " + std::string(to_string(limit.algorithm));
  }
  if (limit.burst) text += " burst " + std::to_string(*limit.burst);
  return text;
}

// "id (name) | conditions | by attributes | limits", and what is not the default.
std::string text_of(const Policy& policy) {
  std::string text = policy.id + " (" + policy.name + ") |";
  for (const Condition& condition : policy.conditions) text += " " + text_of(condition);
  text += " | by";
  for (const std::string& name : policy.group_by) text += " " + name;
  text += " |";
  for (const Limit& limit : policy.limits) text += " " + text_of(limit);
  if (policy.mode == Mode::shadow) text += " | shadow";
  if (policy.token_admission == TokenAdmission::reserve) text += " | reserve";
  return text;
}

struct Split {
  std::vector<std::string> early;
  std::vector<std::string> late;
};

Split split(const std::string& text) {
  const auto loaded = load_snapshot("r.yaml", "_format_version: \"1\"\n" + text, {}, 1);
  for (const Fault& fault : loaded.faults) ADD_FAILURE() << to_string(fault);
  Split result;
  if (!loaded.value) return result;
  for (const Policy& policy : (*loaded.value)->early()) result.early.push_back(text_of(policy));
  for (const Policy& policy : (*loaded.value)->late()) result.late.push_back(text_of(policy));
  return result;
}

std::vector<std::string> late(const std::string& text) {
  Split policies = split(text);
  EXPECT_THAT(policies.early, IsEmpty());
  return policies.late;
}

TEST(Policies, OfAKeyCountThatKey) {
  EXPECT_THAT(
      late("api_keys:\n"
           "  - {id: k1, display_name: demo, key: a, rate_limit: {rpm: 10, concurrency: 2}}\n"
           "  - {id: k2, key: b, rate_limit: {tpd: 5}}\n"
           "  - {id: k3, key: c}\n"),
      ElementsAre("api_keys/k1 (api_keys/demo) | api_key==k1 | by | 10 requests/60s 2 "
                  "concurrency",
                  "api_keys/k2 (api_keys/k2) | api_key==k2 | by | 5 tokens/86400s"));
}

TEST(Policies, OfAModelCountAllItsCallersAndAliases) {
  EXPECT_THAT(
      late("provider_keys: [{display_name: p}]\n"
           "models:\n"
           "  - {id: m1, display_name: gpt, provider_key: p, rate_limit: {tps: 1, tph: 2}}\n"
           "  - {id: m2, display_name: openai/*, provider_key: p, rate_limit: {rps: 1, rph: 3}}\n"),
      ElementsAre("models/m1 (models/gpt) | model==gpt | by | 1 tokens/1s 2 tokens/3600s",
                  "models/m2 (models/openai/*) | model==openai/* | by | 1 requests/1s 3 "
                  "requests/3600s"));
}

TEST(Policies, OfARouteCountEachCallerUnlessToldOtherwise) {
  const Split policies = split(
      "routes:\n"
      "  - {id: r1, name: a, match: {path: /a}, upstream: \"http://u\", rate_limit: {rpm: 1}}\n"
      "  - {id: r2, name: b, match: {path: /b}, upstream: \"http://u\", rate_limit: {rpm: 1}, "
      "auth: "
      "api_key}\n"
      "  - {id: r3, name: c, match: {path: /c}, upstream: \"http://u\", rate_limit: {rpm: 1}, "
      "group_by: []}\n"
      "  - {id: r4, name: d, match: {path: /d}, upstream: \"http://u\", rate_limit: {rpm: 1}, "
      "group_by: [header:X-Tenant, method]}\n"
      "  - {id: r5, name: e, match: {path: /e}, upstream: \"http://u\", rate_limit: {rpm: 1}, "
      "auth: "
      "api_key, group_by: [team]}\n");
  EXPECT_THAT(policies.early,
              ElementsAre("routes/r1 (routes/a) | route==a | by client_ip | 1 requests/60s",
                          "routes/r3 (routes/c) | route==c | by | 1 requests/60s",
                          "routes/r4 (routes/d) | route==d | by header:X-Tenant method | 1 "
                          "requests/60s"));
  EXPECT_THAT(policies.late,
              ElementsAre("routes/r2 (routes/b) | route==b | by api_key | 1 requests/60s",
                          "routes/r5 (routes/e) | route==e | by team | 1 requests/60s"));
}

TEST(Policies, OfClassicScopes) {
  const std::string rest = ", window: minute, max_requests: 5, max_tokens: 9}\n";
  EXPECT_THAT(late("api_keys: [{id: k1, display_name: demo, key: a, team_id: red, user_id: u}]\n"
                   "provider_keys: [{display_name: p}]\n"
                   "models: [{id: m1, display_name: gpt, provider_key: p}]\n"
                   "rate_limit_policies:\n"
                   "  - {id: p1, name: a, scope: api_key, scope_ref: demo" +
                   rest + "  - {id: p2, name: b, scope: api_key, scope_ref: k1" + rest +
                   "  - {id: p3, name: c, scope: model, scope_ref: gpt" + rest +
                   "  - {id: p4, name: d, scope: model, scope_ref: m1" + rest +
                   "  - {id: p5, name: e, scope: team, scope_ref: red" + rest +
                   "  - {id: p6, name: f, scope: member, scope_ref: u" + rest +
                   "  - {id: p7, name: g, scope: team_member, scope_ref: red, mode: shadow, "
                   "token_admission: reserve" +
                   rest),
              ElementsAre("p1 (a) | api_key==k1 | by | 5 requests/60s 9 tokens/60s",
                          "p2 (b) | api_key==k1 | by | 5 requests/60s 9 tokens/60s",
                          "p3 (c) | model==gpt | by | 5 requests/60s 9 tokens/60s",
                          "p4 (d) | model==gpt | by | 5 requests/60s 9 tokens/60s",
                          "p5 (e) | team==red | by | 5 requests/60s 9 tokens/60s",
                          "p6 (f) | member==u | by | 5 requests/60s 9 tokens/60s",
                          "p7 (g) | team==red | by member | 5 requests/60s 9 tokens/60s | shadow | "
                          "reserve"));
}

TEST(Policies, OfClassicWindows) {
  const std::string begin = "scope: team, scope_ref: t, max_requests: 0, window: ";
  EXPECT_THAT(
      late("rate_limit_policies:\n"
           "  - {id: p1, name: a, " +
           begin +
           "second}\n"
           "  - {id: p2, name: b, " +
           begin +
           "minute}\n"
           "  - {id: p3, name: c, " +
           begin +
           "hour}\n"
           "  - {id: p4, name: d, " +
           begin + "day}\n"),
      ElementsAre("p1 (a) | team==t | by | 0 requests/1s", "p2 (b) | team==t | by | 0 requests/60s",
                  "p3 (c) | team==t | by | 0 requests/3600s",
                  "p4 (d) | team==t | by | 0 requests/86400s"));
}

TEST(Policies, OfTheGeneralForm) {
  EXPECT_THAT(
      late(R"(
rate_limit_policies:
  - id: p1
    name: a
    conditions:
      - {dimension: team, operator: "==", value: red}
      - {dimension: model, operator: in, value: [a, b], negate: true}
      - logic: or
        negate: true
        children:
          - {dimension: path, operator: ~=, value: /x}
          - {logic: and, children: [{dimension: "header:X-A", operator: ==, value: "1"}]}
    group_by: [api_key, model]
    limits:
      - {unit: requests, quota: 10, per: 250ms, algorithm: sliding_window}
      - {unit: requests, quota: 10, per: 1m, algorithm: sliding_log}
      - {unit: tokens, quota: 10, per: 10s, algorithm: token_bucket, burst: 20}
      - {unit: input_tokens, capacity: 100, refill_rate: 0.5}
      - {unit: output_tokens, quota: 7, per: 1d}
      - {unit: concurrency, quota: 3}
    mode: shadow
    on_store_error: deny
    token_admission: reserve
)"),
      ElementsAre("p1 (a) | team==red not model in a,b not any(path~=/x all(header:X-A==1)) | by "
                  "api_key model | 10 requests/0s sliding_window 10 requests/60s sliding_log 10 "
                  "tokens/10s token_bucket burst 20 5 input_tokens/10s token_bucket burst 100 7 "
                  "output_tokens/86400s 3 concurrency | shadow | reserve"));
}

TEST(Policies, TakeTheOutageRuleOfTheBootstrapWhereTheyDoNotSay) {
  const std::string text = R"(_format_version: "1"
provider_keys: [{display_name: p, provider: x, adapter: openai, secret: s, api_base: "http://h/v1"}]
models: [{display_name: m, model_name: m, provider_key: p, rate_limit: {rpm: 1}}]
api_keys: [{display_name: k, key: a, rate_limit: {rpm: 1}}]
routes: [{name: r, match: {path: /}, upstream: "http://h", rate_limit: {rpm: 1}}]
rate_limit_policies:
  - {name: silent, limits: {rpm: 1}}
  - {name: says, limits: {rpm: 1}, on_store_error: local_full}
  - {name: classic, scope: team, scope_ref: t, window: day, max_requests: 1, on_store_error: allow}
)";
  const auto rules = [&](OnStoreError on_store_error) {
    std::vector<std::string> found;
    const auto loaded = load_snapshot("r.yaml", text, {}, 1, on_store_error);
    for (const Fault& fault : loaded.faults) ADD_FAILURE() << to_string(fault);
    if (!loaded.value) return found;
    for (const auto* policies : {&(*loaded.value)->early(), &(*loaded.value)->late()}) {
      for (const Policy& policy : *policies) {
        found.push_back(policy.name + " " + std::string(to_string(policy.on_store_error)));
      }
    }
    return found;
  };
  EXPECT_THAT(rules(OnStoreError::deny),
              ElementsAre("routes/r deny", "silent deny", "says local_full", "models/m deny",
                          "api_keys/k deny", "classic allow"));
  EXPECT_THAT(rules(OnStoreError::local),
              ElementsAre("routes/r local", "silent local", "says local_full", "models/m local",
                          "api_keys/k local", "classic allow"));
}

TEST(Policies, AreEarlyIfTheyNeedNothingOfTheCaller) {
  const Split policies = split(R"(
rate_limit_policies:
  - {id: p1, name: ip, group_by: [client_ip], limits: {rps: 1}}
  - {id: p2, name: all, limits: {concurrency: 1}}
  - id: p3
    name: nested
    group_by: [host, method, path, "header:x", route]
    conditions: [{logic: or, children: [{dimension: method, operator: ==, value: POST}]}]
    limits: {rps: 1}
  - {id: p4, name: tokens, group_by: [client_ip], limits: {rps: 1, tps: 1}}
  - {id: p5, name: key, group_by: [client_ip, api_key], limits: {rps: 1}}
  - id: p6
    name: deep
    group_by: [client_ip]
    conditions:
      - logic: or
        children:
          - {dimension: method, operator: ==, value: POST}
          - {dimension: model, operator: ==, value: gpt}
    limits: {rps: 1}
)");
  EXPECT_THAT(
      policies.early,
      ElementsAre("p1 (ip) | | by client_ip | 1 requests/1s", "p2 (all) | | by | 1 concurrency",
                  "p3 (nested) | any(method==POST) | by host method path header:x route | 1 "
                  "requests/1s"));
  EXPECT_THAT(
      policies.late,
      ElementsAre("p4 (tokens) | | by client_ip | 1 requests/1s 1 tokens/1s",
                  "p5 (key) | | by client_ip api_key | 1 requests/1s",
                  "p6 (deep) | any(method==POST model==gpt) | by client_ip | 1 requests/1s"));
}

TEST(Policies, MayApplyWhereAConditionOnlyExcludesPlainRoutes) {
  // A negated group, and one of several alternatives, need nothing to be there.
  EXPECT_THAT(
      late(
          "rate_limit_policies:\n"
          "  - id: p1\n"
          "    name: a\n"
          "    group_by: [model]\n"
          "    conditions: [{logic: and, negate: true, children: [{dimension: route, operator: ==, "
          "value: r}]}]\n"
          "    limits: {tpm: 1}\n"
          "  - id: p2\n"
          "    name: b\n"
          "    conditions: [{logic: or, children: [{dimension: route, operator: ==, value: r}, "
          "{dimension: team, operator: ==, value: t}]}]\n"
          "    limits: {tpm: 1}\n"),
      ElementsAre("p1 (a) | not all(route==r) | by model | 1 tokens/60s",
                  "p2 (b) | any(route==r team==t) | by | 1 tokens/60s"));
}

TEST(Policies, KeepTheRuleForOutagesOfTheirOwn) {
  const auto loaded =
      parse_resources("r.yaml",
                      "_format_version: \"1\"\n"
                      "rate_limit_policies:\n"
                      "  - {name: a, limits: {rps: 1}, on_store_error: local_full}\n"
                      "  - {name: b, limits: {rps: 1}}\n",
                      {});
  ASSERT_TRUE(loaded.value);
  EXPECT_EQ(loaded.value->rate_limit_policies[0].on_store_error, OnStoreError::local_full);
  EXPECT_EQ(loaded.value->rate_limit_policies[1].on_store_error, std::nullopt);
}

TEST(Policies, KeepTheirIdsFromLoadToLoad) {
  // Counters are found by them after a reload.
  const std::string text = "api_keys: [{key: a, rate_limit: {rpm: 10}}]\n";
  EXPECT_EQ(late(text), late("# a comment\n" + text));
  EXPECT_EQ(late(text)[0].substr(0, 45),
            "api_keys/" + derived_id("api_keys", to_hex(hash_key("a"))));
}

}  // namespace
}  // namespace stint::config
