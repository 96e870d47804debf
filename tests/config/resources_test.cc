// Good resources files: what the rows hold.
#include "config/resources.h"

#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <vector>

#include "config/identity.h"
#include "config/rows.h"
#include "config/snapshot.h"

namespace stint::config {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> texts_of(const std::vector<Fault>& faults) {
  std::vector<std::string> texts;
  texts.reserve(faults.size());
  for (const Fault& fault : faults) texts.push_back(to_string(fault));
  return texts;
}

Resources good(const std::string& text, const Environment& environment = {}) {
  auto loaded = parse_resources("r.yaml", "_format_version: \"1\"\n" + text, environment);
  EXPECT_THAT(texts_of(loaded.faults), IsEmpty());
  return loaded.value.value_or(Resources{});
}

std::vector<std::string> warnings_of(const std::string& text) {
  const auto loaded = parse_resources("r.yaml", "_format_version: \"1\"\n" + text, {});
  EXPECT_THAT(texts_of(loaded.faults), IsEmpty());
  return texts_of(loaded.warnings);
}

// `echo -n secret | sha256sum`
constexpr const char* kSecretHash =
    "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

TEST(Resources, MayBeNone) {
  const Resources none = good("");
  EXPECT_THAT(none.models, IsEmpty());
  EXPECT_THAT(good("models: []\nroutes: []\n").routes, IsEmpty());
}

TEST(Resources, HaveIdsThatFollowFromCollectionAndName) {
  // uuidgen --sha1 --namespace @url --name models/gpt
  EXPECT_EQ(derived_id("models", "gpt"), "463e219f-3738-59d5-88e1-d47d4229fe8a");
  const Resources rows = good(
      "provider_keys: [{display_name: p}]\n"
      "models:\n"
      "  - {display_name: gpt, provider_key: p}\n"
      "  - {display_name: own, provider_key: p, id: my-id}\n"
      "api_keys: [{key: secret}, {key: other, display_name: o}]\n");
  EXPECT_EQ(rows.models[0].id, derived_id("models", "gpt"));
  EXPECT_EQ(rows.models[1].id, "my-id");
  EXPECT_EQ(rows.api_keys[0].id, derived_id("api_keys", kSecretHash));
  EXPECT_EQ(rows.api_keys[1].id, derived_id("api_keys", "o"));
  EXPECT_EQ(rows.models[0].provider_key_id, derived_id("provider_keys", "p"));
}

TEST(ProviderKeys, KnowWhereTheirProviderIs) {
  const Resources rows = good(
      "provider_keys:\n"
      "  - {display_name: a, secret: s}\n"
      "  - {display_name: b, provider: anthropic, api_key: k}\n"
      "  - {display_name: c, provider: mistral, api_base: \"http://m:1/\"}\n"
      "  - {display_name: d, provider: google, api_base: \"https://g/v1beta/openai/\"}\n"
      "  - {display_name: e, adapter: anthropic, api_base: \"https://e/anthropic\"}\n");
  EXPECT_EQ(rows.provider_keys[0].api_base, "https://api.openai.com/v1");
  EXPECT_EQ(rows.provider_keys[0].provider, "openai");
  EXPECT_EQ(rows.provider_keys[0].secret, "s");
  EXPECT_EQ(rows.provider_keys[1].api_base, "https://api.anthropic.com/v1");
  EXPECT_EQ(rows.provider_keys[1].adapter, Adapter::anthropic);
  EXPECT_EQ(rows.provider_keys[1].secret, "k");
  EXPECT_EQ(rows.provider_keys[2].api_base, "http://m:1/v1");
  EXPECT_EQ(rows.provider_keys[3].api_base, "https://g/v1beta/openai");
  EXPECT_EQ(rows.provider_keys[4].api_base, "https://e/anthropic/v1");
}

TEST(Models, NameWhatTheUpstreamIsAskedFor) {
  const Resources rows = good(
      "provider_keys: [{display_name: p, id: pk}]\n"
      "models:\n"
      "  - {display_name: a, provider_key: p}\n"
      "  - {display_name: b, model_name: gpt-4o, provider_key_id: pk, provider: mine}\n"
      "  - {display_name: openai/*, provider_key: p, timeout: 90s, max_output_tokens: 4096}\n"
      "  - {display_name: alias/*, model_name: one, provider_key: p}\n"
      "  - {display_name: ft/*, model_name: \"ft:*:org\", provider_key: p}\n");
  EXPECT_EQ(upstream_model(rows.models[0], "a"), "a");
  EXPECT_EQ(upstream_model(rows.models[1], "b"), "gpt-4o");
  EXPECT_EQ(upstream_model(rows.models[2], "openai/gpt/x"), "gpt/x");
  EXPECT_EQ(upstream_model(rows.models[3], "alias/x"), "one");
  EXPECT_EQ(upstream_model(rows.models[4], "ft/x"), "ft:x:org");
  EXPECT_EQ(rows.models[0].provider, "openai");
  EXPECT_EQ(rows.models[1].provider, "mine");
  EXPECT_EQ(rows.models[1].provider_key_id, "pk");
  EXPECT_EQ(rows.models[2].timeout, std::chrono::seconds{90});
  EXPECT_EQ(rows.models[2].max_output_tokens, 4096);
}

TEST(ApiKeys, AreKeptAsHashesOnly) {
  const Resources rows = good(
      "api_keys:\n"
      "  - key: secret\n"
      "  - {display_name: b, key_hash: "
      "2BB80D537B1DA3E38BD30361AA855686BDE0EACD7162FEF6A25FE97BF527A25C}\n"
      "  - {display_name: c, key_env: KEY}\n"
      "  - {display_name: d, key: \"${KEY}-2\"}\n",
      {{"KEY", "third"}});
  EXPECT_EQ(to_hex(rows.api_keys[0].hash), kSecretHash);
  EXPECT_EQ(rows.api_keys[0].hash, hash_key("secret"));
  EXPECT_EQ(to_hex(rows.api_keys[1].hash).substr(62), "5c");
  EXPECT_EQ(rows.api_keys[2].hash, hash_key("third"));
  EXPECT_EQ(rows.api_keys[3].hash, hash_key("third-2"));
}

TEST(ApiKeys, HoldWhoTheirOwnerIs) {
  const Resources rows = good(
      "api_keys:\n"
      "  - {key: a, team_id: red, user_id: \"7\", disabled: true, expires_at: 2030-01-31T23:59:59Z,"
      " allowed_models: [\"*\"]}\n"
      "  - {key: b}\n");
  const ApiKey& key = rows.api_keys[0];
  EXPECT_EQ(key.team_id, "red");
  EXPECT_EQ(key.user_id, "7");
  EXPECT_TRUE(key.disabled);
  const TimePoint end = TimePoint(std::chrono::seconds{1'896'134'399});
  EXPECT_EQ(key.expires_at, end);
  EXPECT_TRUE(key.expired(end));
  EXPECT_FALSE(key.expired(end - Duration{1}));
  EXPECT_FALSE(rows.api_keys[1].expired(end));
}

TEST(ApiKeys, AllowModelsByGlobs) {
  const auto allows = [](std::vector<std::string> globs, std::string_view model) {
    ApiKey key;
    key.allowed_models = std::move(globs);
    return key.allows(model);
  };
  EXPECT_FALSE(allows({}, "gpt"));
  EXPECT_TRUE(allows({"gpt"}, "gpt"));
  EXPECT_FALSE(allows({"gpt"}, "gpt-4"));
  EXPECT_FALSE(allows({"gpt-4"}, "gpt"));
  EXPECT_TRUE(allows({"a", "gpt*"}, "gpt"));
  EXPECT_TRUE(allows({"*"}, ""));
  EXPECT_TRUE(allows({"openai/*"}, "openai/a/b"));
  EXPECT_TRUE(allows({"*-mini"}, "gpt-mini-mini"));
  EXPECT_FALSE(allows({"*-mini"}, "gpt-mini-x"));
  EXPECT_TRUE(allows({"a*b*c"}, "aXbXbXc"));
  EXPECT_FALSE(allows({"a*b*c"}, "aXcXb"));
  EXPECT_FALSE(allows({"?pt"}, "gpt"));  // only `*` is special
  // Hostile input costs nothing: no pattern takes exponential time.
  EXPECT_FALSE(allows({"*a*a*a*a*a*a*a*a*b"}, std::string(5'000, 'a')));
}

TEST(Times, FollowRfc3339) {
  const auto seconds = [](std::string_view text) {
    const auto time = parse_time(text);
    return time ? std::optional(time->time_since_epoch().count()) : std::nullopt;
  };
  EXPECT_EQ(seconds("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(seconds("1970-01-01t00:00:01.25z"), 1'250'000);
  EXPECT_EQ(seconds("1970-01-01T00:00:00.0000009Z"), 0);
  EXPECT_EQ(seconds("1970-01-01T02:30:00+02:30"), 0);
  EXPECT_EQ(seconds("1969-12-31T23:00:00-01:00"), 0);
  EXPECT_EQ(seconds("2000-02-29T00:00:00Z"), 951'782'400'000'000);
  EXPECT_EQ(seconds("1990-12-31T23:59:60Z"), 662'688'000'000'000);  // a leap second
  for (const char* bad :
       {"", "2030-01-31", "2030-01-31 00:00:00Z", "2030-01-31T00:00:00", "2030-01-31T24:00:00Z",
        "2030-1-31T00:00:00Z", "2030-01-31T00:00Z", "2030-01-31T00:00:00.Z", "1900-02-29T00:00:00Z",
        "2030-01-31T00:00:00Z ", "2030-01-31T00:00:00+0100", "2030-13-01T00:00:00Z"}) {
    EXPECT_EQ(seconds(bad), std::nullopt) << bad;
  }
}

TEST(Routes, HoldWhereRequestsGo) {
  const Resources rows = good(
      "routes:\n"
      "  - name: pay\n"
      "    match: {host: pay.example.com, path_prefix: /v1/pay, methods: [POST, GET]}\n"
      "    upstream: http://10.0.0.1:8080/\n"
      "    auth: api_key\n"
      "    strip_prefix: true\n"
      "  - {name: b, match: {path_prefix: /a/b}, upstream: \"https://u/base\", strip_prefix: /a}\n"
      "  - {name: c, match: {path: /c}, upstream: \"https://u\", strip_prefix: false}\n");
  const Route& pay = rows.routes[0];
  EXPECT_EQ(pay.match.host, "pay.example.com");
  EXPECT_THAT(pay.match.methods, ElementsAre("POST", "GET"));
  EXPECT_EQ(pay.upstream, "http://10.0.0.1:8080");
  EXPECT_EQ(pay.auth, Auth::api_key);
  EXPECT_EQ(pay.strip_prefix, "/v1/pay");
  EXPECT_EQ(rows.routes[1].strip_prefix, "/a");
  EXPECT_EQ(rows.routes[1].upstream, "https://u/base");
  EXPECT_EQ(rows.routes[1].auth, Auth::none);
  EXPECT_EQ(rows.routes[2].strip_prefix, "");
}

TEST(References, ToWhatIsNotThereAreWarnings) {
  EXPECT_THAT(
      warnings_of(
          "provider_keys: [{display_name: openai}]\n"
          "models:\n"
          "  - {display_name: gpt, provider_key: openai}\n"
          "  - {display_name: w/*, provider_key: openai}\n"
          "api_keys:\n"
          "  - {display_name: demo, key: a, team_id: red, allowed_models: [gpt, w/x, xy, g*]}\n"
          "rate_limit_policies:\n"
          "  - {name: a, scope: team, scope_ref: rad, window: day, max_requests: 1}\n"
          "  - {name: b, scope: team_member, scope_ref: red, window: day, max_requests: 1}\n"
          "  - {name: c, scope: model, scope_ref: gtp, window: day, max_requests: 1}\n"
          "  - name: d\n"
          "    limits: {rpm: 1}\n"
          "    conditions: [{dimension: api_key, operator: in, value: [demo, dmo]}]\n"),
      ElementsAre(
          "r.yaml:7:75: api_keys[0].allowed_models[2]: there is no model 'xy'",
          "r.yaml:9:39: rate_limit_policies[0].scope_ref: there is no team 'rad'; did you "
          "mean red?",
          "r.yaml:11:40: rate_limit_policies[2].scope_ref: there is no model 'gtp'; did you "
          "mean gpt?",
          "r.yaml:14:67: rate_limit_policies[3].conditions[0].value[1]: there is no api_key "
          "'dmo'; did you mean demo?"));
}

TEST(Routes, OnThePrefixOfAnEndpointAreWarnedAbout) {
  EXPECT_THAT(
      warnings_of(
          "routes:\n  - {name: a, match: {path_prefix: /v1/models}, upstream: \"http://u\"}\n"
          "  - {name: b, match: {path_prefix: /v1}, upstream: \"http://u\"}\n"),
      ElementsAre("r.yaml:3:36: routes[0].match.path_prefix: only what lies below is reached: the "
                  "gateway answers /v1/models itself"));
}

TEST(Policies, OfAnUnknownScopeAreToldThatAlone) {
  const auto loaded = parse_resources("r.yaml",
                                      "_format_version: \"1\"\n"
                                      "rate_limit_policies:\n"
                                      "  - {name: a, scope: teams, scope_ref: red, window: day, "
                                      "max_requests: 1}\n",
                                      {});
  EXPECT_THAT(texts_of(loaded.faults),
              ElementsAre("r.yaml:3:22: rate_limit_policies[0].scope: 'teams' is none of api_key, "
                          "model, team, member, team_member"));
  EXPECT_THAT(texts_of(loaded.warnings), IsEmpty());
}

TEST(References, KeysThatMayUseNoModelAreWarnedAbout) {
  const std::string models =
      "provider_keys: [{display_name: p}]\n"
      "models:\n"
      "  - {display_name: gpt-4o, provider_key: p}\n"
      "  - {display_name: open/*, provider_key: p}\n"
      "api_keys:\n";
  EXPECT_THAT(
      warnings_of(models +
                  "  - {key: a}\n"
                  "  - {key: b, allowed_models: []}\n"
                  "  - {key: c, allowed_models: [\"*\", gpt-*, \"*4o\", open/*, op*, open/x*, "
                  "open/*x]}\n"
                  "  - {key: d, allowed_models: [gtp-*, \"*x\", open/, ope, o*]}\n"),
      ElementsAre("r.yaml:7:5: api_keys[0]: has no allowed_models, and may use no model; [] "
                  "says that it is meant",
                  "r.yaml:10:31: api_keys[3].allowed_models[0]: there is no model that "
                  "'gtp-*' stands for",
                  "r.yaml:10:44: api_keys[3].allowed_models[2]: there is no model 'open/'; "
                  "did you mean open/*?",
                  "r.yaml:10:51: api_keys[3].allowed_models[3]: there is no model 'ope'"));
  // Of plain routes alone: nobody may use a model.
  EXPECT_THAT(warnings_of("api_keys: [{key: a}]\n"), IsEmpty());
}

TEST(Substitution, HappensAfterParsing) {
  // Nothing in a value is taken for YAML, and comments are left alone.
  const Resources rows = good(
      "# ${UNSET}\n"
      "provider_keys:\n"
      "  - display_name: a\n"
      "    secret: ${EVIL}\n"
      "  - display_name: b\n"
      "    secret: ${NUMBER}\n"
      "api_keys:\n"
      "  - key: x\n"
      "    rate_limit:\n"
      "      rpm: ${NUMBER}\n"
      "    disabled: ${EMPTY:-true}\n"
      "    user_id: $$${NUMBER}${NUMBER:-9}$x${EMPTY}\n",
      {{"EVIL", "s\"\n  - {x: \"${NUMBER}"}, {"NUMBER", "42"}, {"EMPTY", ""}});
  EXPECT_EQ(rows.provider_keys[0].secret, "s\"\n  - {x: \"${NUMBER}");
  EXPECT_EQ(rows.provider_keys[1].secret, "42");
  EXPECT_EQ(rows.api_keys[0].rate_limit.limits[0].quota, 42);
  EXPECT_TRUE(rows.api_keys[0].disabled);
  EXPECT_EQ(rows.api_keys[0].user_id, "$4242$x");
}

}  // namespace
}  // namespace stint::config
