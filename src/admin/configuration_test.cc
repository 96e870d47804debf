#include "admin/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "admin/admin_testing.h"

namespace stint::admin {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kBootstrap = R"(
proxy: {addr: 127.0.0.1:3000}
admin: {enabled: true, admin_keys: [hush-one, hush-two]}
resources_file: resources.yaml
ratelimit:
  backend: redis
  redis:
    urls: ["a=redis://me:hush@h1", "redis://h2"]
    previous: {shards: [{name: a, url: "redis://:hush@h1"}]}
    password: hush
)";

constexpr const char* kResources = R"(_format_version: "1"
provider_keys:
  - {id: pk, display_name: up, provider: openai, secret: hush-secret}
models:
  - {id: m1, display_name: gpt, provider_key: up, rate_limit: {tpm: 1000}, timeout: 90s}
api_keys:
  - {id: alice, display_name: Alice, key: hush-key, allowed_models: ["*"], team_id: red,
     expires_at: "2030-01-31T23:59:59Z", rate_limit: {rpm: 5, concurrency: 2}}
routes:
  - {id: r1, name: pay, match: {path_prefix: /pay, methods: [POST]}, upstream: "http://127.0.0.1:9"}
rate_limit_policies:
  - id: p1
    name: free
    conditions:
      - {logic: or, children: [{dimension: team, operator: in, value: [red, blue]},
                               {dimension: "header:x-plan", operator: "~=", value: gold, negate: true}]}
    group_by: [team]
    limits: [{unit: tokens, quota: 100, per: 500ms, algorithm: sliding_window}]
    mode: shadow
    on_store_error: deny
    token_admission: reserve
)";

const json::object& find(const json::array& all, std::string_view member, std::string_view value) {
  for (const json::value& one : all) {
    if (one.at(json::string_view(member.data(), member.size())).as_string() ==
        json::string_view(value.data(), value.size())) {
      return one.as_object();
    }
  }
  throw std::out_of_range(std::string(value));
}

TEST(AdminConfiguration, HidesEverySecret) {
  const TextProgram program(kBootstrap, kResources);
  const std::string shown = json::serialize(configuration(program)) +
                            json::serialize(policies(program)) + json::serialize(errors(program));
  EXPECT_THAT(shown, Not(HasSubstr("hush")));
  EXPECT_THAT(shown, Not(HasSubstr(config::to_hex(config::hash_key("hush-key")))));
  const json::object all = configuration(program);
  const json::array& settings = all.at("settings").as_array();
  for (const char* key : {"admin.admin_keys", "ratelimit.redis.password", "ratelimit.redis.urls",
                          "ratelimit.redis.previous.shards[0].url"}) {
    EXPECT_EQ(find(settings, "key", key).at("value").as_string(), "***") << key;
  }
  EXPECT_EQ(all.at("resources").at("provider_keys").at(0).at("secret").as_string(), "***");
}

TEST(AdminConfiguration, SaysWhereEverySettingComesFrom) {
  const TextProgram program(kBootstrap, kResources);
  const json::object all = configuration(program);
  const json::array& settings = all.at("settings").as_array();
  const json::object& addr = find(settings, "key", "proxy.addr");
  EXPECT_EQ(addr.at("value").as_string(), "127.0.0.1:3000");
  EXPECT_EQ(addr.at("source").as_string(), "stint.yaml:2:15");
  EXPECT_EQ(find(settings, "key", "admin.addr").at("source").as_string(), "default");
  EXPECT_EQ(all.at("generation").as_uint64(), 3U);
}

TEST(AdminConfiguration, ShowsTheRowsOfTheResources) {
  const TextProgram program(kBootstrap, kResources);
  const json::object all = configuration(program);
  const json::object& rows = all.at("resources").as_object();
  EXPECT_EQ(json::serialize(rows.at("models")),
            R"([{"id":"m1","display_name":"gpt","provider":"openai","model_name":"gpt",)"
            R"("provider_key_id":"pk","max_output_tokens":null,"timeout_secs":90,"rate_limit":)"
            R"([{"unit":"tokens","algorithm":"fixed_window","quota":1000,"window_secs":60}]}])");
  EXPECT_EQ(json::serialize(rows.at("api_keys")),
            R"([{"id":"alice","display_name":"Alice","allowed_models":["*"],"team_id":"red",)"
            R"("user_id":null,"disabled":false,"expires_at":"2030-01-31T23:59:59Z","rate_limit":)"
            R"([{"unit":"requests","algorithm":"fixed_window","quota":5,"window_secs":60},)"
            R"({"unit":"concurrency","algorithm":"concurrency","quota":2,"window_secs":null}]}])");
  EXPECT_EQ(json::serialize(rows.at("routes")),
            R"([{"id":"r1","name":"pay","match":{"host":null,"path":null,"path_prefix":"/pay",)"
            R"("methods":["POST"]},"upstream":"http://127.0.0.1:9","auth":"none",)"
            R"("strip_prefix":null,"rate_limit":[],"group_by":null}])");
}

TEST(AdminConfiguration, ShowsThePoliciesInForce) {
  const TextProgram program(kBootstrap, kResources);
  const json::object all = policies(program);
  const json::array& shown = all.at("policies").as_array();
  EXPECT_EQ(
      json::serialize(find(shown, "id", "p1")),
      R"({"id":"p1","name":"free","when":"after_auth","conditions":[{"logic":"or","children":)"
      R"([{"dimension":"team","operator":"in","value":["red","blue"]},)"
      R"({"dimension":"header:x-plan","operator":"~=","value":"gold","negate":true}]}],)"
      R"("group_by":["team"],"limits":[{"unit":"tokens","algorithm":"sliding_window",)"
      R"("quota":100,"window_secs":5E-1}],"mode":"shadow","token_admission":"reserve",)"
      R"("on_store_error":"deny"})");
  // The limits of rows are policies, too.
  EXPECT_EQ(find(shown, "id", "api_keys/alice").at("limits").as_array().size(), 2U);
  EXPECT_EQ(find(shown, "id", "models/m1").at("mode").as_string(), "enforce");
}

TEST(AdminConfiguration, BeforeTheFirstResourcesThereIsNothingToShow) {
  const TextProgram program("resources_file: r\n", "");
  EXPECT_EQ(json::serialize(policies(program)), R"({"generation":0,"policies":[]})");
  EXPECT_EQ(configuration(program).at("generation").as_uint64(), 0U);
  EXPECT_FALSE(errors(program).at("resources").at("in_force").as_bool());
}

TEST(AdminConfiguration, SaysWhatWasWrongWithWhatWasReadLast) {
  TextProgram program(kBootstrap, kResources);
  program.last.resources_file = "resources.yaml";
  EXPECT_EQ(json::serialize(errors(program)),
            R"({"resources":{"file":"resources.yaml","generation":3,"in_force":true,"faults":[],)"
            R"("warnings":[]},"bootstrap":{"in_force":true,"faults":[],"warnings":[],)"
            R"("needs_restart":[]}})");
  program.last.resources_faults = {{"resources.yaml", 4, 7, "models[0].rpm", "must not be"}};
  program.last.bootstrap_warnings = {{"environment variable STINT_X__Y", 0, 0, "", "names no key"}};
  program.last.needs_restart = {"proxy.addr"};
  EXPECT_EQ(json::serialize(errors(program)),
            R"({"resources":{"file":"resources.yaml","generation":3,"in_force":false,"faults":)"
            R"([{"file":"resources.yaml","line":4,"column":7,"key":"models[0].rpm",)"
            R"("message":"must not be"}],"warnings":[]},"bootstrap":{"in_force":false,"faults":[],)"
            R"("warnings":[{"file":"environment variable STINT_X__Y","line":null,"column":null,)"
            R"("key":null,"message":"names no key"}],"needs_restart":["proxy.addr"]}})");
}

}  // namespace
}  // namespace stint::admin
