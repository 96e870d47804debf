// Broken resources files: what is said first about each, to the letter.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "config/snapshot.h"

namespace stint::config {
namespace {

// `text` follows the line of the version, which is line 1.
struct Broken {
  const char* name;
  const char* text;
  const char* fault;
};

std::ostream& operator<<(std::ostream& out, const Broken& broken) { return out << broken.text; }

std::string file_of(const Broken& broken) {
  const std::string text = broken.text;
  const bool has_keys = text.find("provider_keys:") != std::string::npos;
  return "_format_version: \"1\"\n" + text +
         (has_keys ? ""
                   : "provider_keys: [{display_name: p}, {display_name: b}, {display_name: x}]\n");
}

class BrokenResources : public testing::TestWithParam<Broken> {};

TEST_P(BrokenResources, IsRefusedWithItsPlaceAndReason) {
  const auto loaded =
      load_snapshot("r.yaml", file_of(GetParam()), {{"EMPTY", ""}, {"BYTES", "a\xFFz"}}, 1);
  EXPECT_FALSE(loaded.value.has_value());
  ASSERT_FALSE(loaded.faults.empty());
  EXPECT_EQ(to_string(loaded.faults[0]), GetParam().fault);
}

constexpr Broken kRows[] = {
    {"UnknownCollection", "model: []\n", "r.yaml:2:1: model: unknown key; did you mean models?"},
    {"CollectionThatIsAMap", "models: {gpt: {}}\n",
     "r.yaml:2:9: models: must be a list: a line '- ' for each"},
    {"CollectionWithoutRows", "models:\n",
     "r.yaml:2:1: models: has no value: it must be a list, such as []"},
    {"RowThatIsAText", "models: [gpt]\n", "r.yaml:2:10: models[0]: must be a map of keys"},
    {"UnknownKeyInRow", "models:\n  - display_name: a\n    provider_key: b\n    rate_limits: {}\n",
     "r.yaml:5:5: models[0].rate_limits: unknown key; did you mean rate_limit?"},
    {"RepeatedKeyInRow", "api_keys:\n  - {key: a, key: b}\n",
     "r.yaml:3:14: api_keys[0].key: stands there twice, first in line 3"},
    {"MissingName", "models:\n  - provider_key: x\n",
     "r.yaml:3:5: models[0].display_name: is missing"},
    {"EmptyName", "routes:\n  - {name: \"\", match: {path: /}, upstream: \"http://u\"}\n",
     "r.yaml:3:12: routes[0].name: must be 1 to 128 bytes without control characters"},
    {"SameNames", "provider_keys:\n  - display_name: a\n  - display_name: a\n",
     "r.yaml:4:19: provider_keys[1].display_name: is the name of provider_keys[0], too"},
    {"SameIds", "provider_keys:\n  - {id: x, display_name: a}\n  - {id: x, display_name: b}\n",
     "r.yaml:4:10: provider_keys[1].id: is the id of provider_keys[0], too"},
    {"SameKeys", "api_keys:\n  - {key: secret-1}\n  - {display_name: b, key: secret-1}\n",
     "r.yaml:4:5: api_keys[1]: has the key of api_keys[0], too"},
    {"IdWithSlash", "models:\n  - {id: a/b, display_name: m, provider_key: p}\n",
     "r.yaml:3:10: models[0].id: must be 1 to 48 visible ASCII characters without '/'"},
    {"Adapter", "provider_keys:\n  - {display_name: a, adapter: mistral}\n",
     "r.yaml:3:32: provider_keys[0].adapter: 'mistral' is none of openai, anthropic"},
    {"ApiBaseMissing", "provider_keys:\n  - {display_name: a, provider: mistral}\n",
     "r.yaml:3:5: provider_keys[0].api_base: is missing: where provider 'mistral' is"},
    {"ApiBaseNoUrl", "provider_keys:\n  - {display_name: a, api_base: api.openai.com}\n",
     "r.yaml:3:33: provider_keys[0].api_base: must be a URL such as https://api.example.com or "
     "http://127.0.0.1:8080/base"},
    {"TwoSecrets", "provider_keys:\n  - {display_name: a, secret: s, api_key: t}\n",
     "r.yaml:3:43: provider_keys[0].api_key: says the same as secret; keep one of them"},
    {"NoProviderKey", "models:\n  - display_name: a\n",
     "r.yaml:3:5: models[0].provider_key: is missing"},
    {"TwoProviderKeys", "models:\n  - {display_name: a, provider_key: p, provider_key_id: q}\n",
     "r.yaml:3:37: models[0].provider_key: stands beside provider_key_id; keep one of them"},
    {"StarInTheMiddle", "models:\n  - {display_name: gpt-*, provider_key: p}\n",
     "r.yaml:3:20: models[0].display_name: may have one '*', at its end after a '/': openai/*"},
    {"StarUpstreamOnly", "models:\n  - {display_name: gpt, model_name: g*, provider_key: p}\n",
     "r.yaml:3:37: models[0].model_name: may have one '*', and only where display_name ends in /*"},
    {"Timeout", "models:\n  - {display_name: a, provider_key: p, timeout: 30}\n",
     "r.yaml:3:49: models[0].timeout: '30' must be a duration such as 250ms, 10s, 5m, 1h or 1d: it "
     "has no unit"},
    {"Routing", "models:\n  - {display_name: a, provider_key: p, routing: {strategy: weighted}}\n",
     "r.yaml:3:49: models[0].routing: not available yet"},
    {"RoutingUnknown", "models:\n  - {display_name: a, provider_key: p, routing: {strategie: x}}\n",
     "r.yaml:3:50: models[0].routing.strategie: unknown key; did you mean strategy?"},
    {"Cooldown", "models:\n  - {display_name: a, provider_key: p, cooldown: 30s}\n",
     "r.yaml:3:50: models[0].cooldown: not available yet"},
    {"NoKey", "api_keys:\n  - display_name: a\n",
     "r.yaml:3:5: api_keys[0]: has no key: give key_hash, key or key_env"},
    {"TwoKeys", "api_keys:\n  - {key: a, key_env: B}\n",
     "r.yaml:3:23: api_keys[0].key_env: stands beside key; keep one of them"},
    {"HashTooShort", "api_keys:\n  - key_hash: abcdef\n",
     "r.yaml:3:15: api_keys[0].key_hash: must be a SHA-256 in 64 hexadecimal digits"},
    {"KeyIsANumber", "api_keys:\n  - key: 12345\n",
     "r.yaml:3:10: api_keys[0].key: must be a text: put it in quotes"},
    {"KeyVariableUnset", "api_keys:\n  - key_env: NOWHERE\n",
     "r.yaml:3:14: api_keys[0].key_env: the variable 'NOWHERE' is not set"},
    {"KeyVariableEmpty", "api_keys:\n  - key_env: EMPTY\n",
     "r.yaml:3:14: api_keys[0].key_env: must not be empty"},
    {"Expiry", "api_keys:\n  - {key: a, expires_at: 2030-02-30T00:00:00Z}\n",
     "r.yaml:3:26: api_keys[0].expires_at: '2030-02-30T00:00:00Z' is no time such as "
     "2030-01-31T23:59:59Z (RFC 3339)"},
    {"Disabled", "api_keys:\n  - {key: a, disabled: yes}\n",
     "r.yaml:3:24: api_keys[0].disabled: 'yes' must be true or false"},
    {"Upstream", "routes:\n  - {name: a, match: {path: /}, upstream: \"u:80\"}\n",
     "r.yaml:3:43: routes[0].upstream: must be a URL such as https://api.example.com or "
     "http://127.0.0.1:8080/base"},
    {"UpstreamWithQuery", "routes:\n  - {name: a, match: {path: /}, upstream: \"http://u/?x\"}\n",
     "r.yaml:3:43: routes[0].upstream: must not have a query or fragment"},
    {"UpstreamWithDots", "routes:\n  - {name: a, match: {path: /}, upstream: \"http://u/../b\"}\n",
     "r.yaml:3:43: routes[0].upstream: has a path that no request can have: 'http://u/../b'"},
    {"MatchEmpty", "routes:\n  - {name: a, match: {}, upstream: \"http://u\"}\n",
     "r.yaml:3:22: routes[0].match: matches nothing in particular: give host, path, path_prefix or "
     "methods"},
    {"MatchTwice",
     "routes:\n  - {name: a, match: {path: /a, path_prefix: /}, upstream: \"http://u\"}\n",
     "r.yaml:3:46: routes[0].match.path_prefix: stands beside path; keep one of them"},
    {"MatchPath", "routes:\n  - {name: a, match: {path: \"a\"}, upstream: \"http://u\"}\n",
     "r.yaml:3:29: routes[0].match.path: must begin with '/'"},
    {"MatchPathForm", "routes:\n  - {name: a, match: {path: /a/../b}, upstream: \"http://u\"}\n",
     "r.yaml:3:29: routes[0].match.path: must be in normal form, as paths are compared: write "
     "'/b'"},
    {"MatchPathOfNoRequest", "routes:\n  - {name: a, match: {path: /..}, upstream: \"http://u\"}\n",
     "r.yaml:3:29: routes[0].match.path: '/..' is the path of no request: such paths are refused "
     "with 400"},
    {"MatchPrefixEscapes",
     "routes:\n  - {name: a, match: {path_prefix: /caf%c3%a9}, upstream: \"http://u\"}\n",
     "r.yaml:3:36: routes[0].match.path_prefix: must be in normal form, as paths are compared: "
     "write '/caf%C3%A9'"},
    {"MatchPrefixNotEscaped",
     "routes:\n  - {name: a, match: {path_prefix: /café}, upstream: \"http://u\"}\n",
     "r.yaml:3:36: routes[0].match.path_prefix: must be in normal form, as paths are compared: "
     "write '/caf%C3%A9'"},
    {"MatchPathEscapedForNothing",
     "routes:\n  - {name: a, match: {path: /%7euser}, upstream: \"http://u\"}\n",
     "r.yaml:3:29: routes[0].match.path: must be in normal form, as paths are compared: write "
     "'/~user'"},
    {"MatchHostWithDot",
     "routes:\n  - {name: a, match: {host: api.example.com.}, upstream: \"http://u\"}\n",
     "r.yaml:3:29: routes[0].match.host: must be a host in lower case without port, such as "
     "api.example.com or *.example.com"},
    {"SameMatch",
     "routes:\n  - {name: a, match: {path: /a}, upstream: \"http://u\"}\n"
     "  - {name: b, match: {path: /a}, upstream: \"http://v\"}\n",
     "r.yaml:4:22: routes[1].match: is never reached: routes[0] in line 3 has the same match"},
    {"SameMatchOfSomeMethods",
     "routes:\n  - {name: a, match: {path: /a, methods: [GET, POST]}, upstream: \"http://u\"}\n"
     "  - {name: b, match: {path: /a, methods: [POST]}, upstream: \"http://v\"}\n",
     "r.yaml:4:22: routes[1].match: is never reached: routes[0] in line 3 has the same match"},
    {"OwnPath", "routes:\n  - {name: a, match: {path: /livez}, upstream: \"http://u\"}\n",
     "r.yaml:3:29: routes[0].match.path: is never reached: the gateway answers /livez itself"},
    {"OwnEndpoint",
     "routes:\n  - {name: a, match: {host: h, path: /v1/chat/completions}, upstream: "
     "\"http://u\"}\n",
     "r.yaml:3:38: routes[0].match.path: is never reached: the gateway answers "
     "/v1/chat/completions itself"},
    {"ProviderKeyUnknown",
     "provider_keys: [{display_name: openai}]\nmodels: [{display_name: m, provider_key: opnai}]\n",
     "r.yaml:3:42: models[0].provider_key: there is no provider key 'opnai'; did you mean openai?"},
    {"ProviderKeyIdUnknown", "models: [{display_name: m, provider_key_id: gone}]\n",
     "r.yaml:2:45: models[0].provider_key_id: there is no provider key 'gone'"},
    {"StarWithoutQuotes", "api_keys:\n  - {key: a, allowed_models: [*]}\n",
     "r.yaml:3:32: api_keys[0]: a text that begins with * needs quotes: \"*\""},
    {"KeyVariableOfBytes", "api_keys:\n  - key_env: BYTES\n",
     "r.yaml:3:14: api_keys[0].key_env: the variable 'BYTES' is no text in UTF-8, or has a control "
     "character"},
    {"SecretOfBytes", "provider_keys:\n  - {display_name: a, secret: \"${BYTES}\"}\n",
     "r.yaml:3:31: provider_keys[0].secret: the variable BYTES is no text in UTF-8, or has a "
     "control character"},
    {"MatchMethod",
     "routes:\n  - {name: a, match: {path: /, methods: [get]}, upstream: \"http://u\"}\n",
     "r.yaml:3:42: routes[0].match.methods[0]: 'get' is no method such as GET; methods are written "
     "in capitals"},
    {"MatchHost",
     "routes:\n  - {name: a, match: {host: \"Api.example.com:80\"}, upstream: \"http://u\"}\n",
     "r.yaml:3:29: routes[0].match.host: must be a host in lower case without port, such as "
     "api.example.com or *.example.com"},
    {"StripNothing",
     "routes:\n  - {name: a, match: {path: /}, upstream: \"http://u\", strip_prefix: true}\n",
     "r.yaml:3:69: routes[0].strip_prefix: needs match.path_prefix, or the prefix in place of "
     "true"},
    {"StripOther",
     "routes:\n  - {name: a, match: {path_prefix: /ab}, upstream: \"http://u\", strip_prefix: "
     "/a}\n",
     "r.yaml:3:78: routes[0].strip_prefix: must be how match.path_prefix or match.path begins"},
    {"GroupWithoutLimit",
     "routes:\n  - {name: a, match: {path: /}, upstream: \"http://u\", group_by: [client_ip]}\n",
     "r.yaml:3:65: routes[0].group_by: has no effect without rate_limit"},
};
INSTANTIATE_TEST_SUITE_P(Rows, BrokenResources, testing::ValuesIn(kRows),
                         [](const auto& test) { return test.param.name; });

// A policy, with its first key in line 3 and column 5.
#define POLICY "rate_limit_policies:\n  - name: p\n    "
constexpr Broken kLimits[] = {
    {"NegativeShort", "api_keys:\n  - {key: a, rate_limit: {rpm: -1}}\n",
     "r.yaml:3:32: api_keys[0].rate_limit.rpm: must not be negative"},
    {"TextShort", "api_keys:\n  - {key: a, rate_limit: {rpm: \"10\"}}\n",
     "r.yaml:3:32: api_keys[0].rate_limit.rpm: '10' must be a whole number: in quotes it is text; "
     "remove them"},
    {"UnknownShort", "api_keys:\n  - {key: a, rate_limit: {limt: 5}}\n",
     "r.yaml:3:27: api_keys[0].rate_limit.limt: unknown key; known are rps, rpm, rph, rpd, tps, "
     "tpm, tph, tpd, concurrency"},
    {"NoLimit", "api_keys:\n  - {key: a, rate_limit: {}}\n",
     "r.yaml:3:26: api_keys[0].rate_limit: holds no limit"},
    {"NoLimitInList", "api_keys:\n  - {key: a, rate_limit: []}\n",
     "r.yaml:3:26: api_keys[0].rate_limit: holds no limit"},
    {"LimitIsANumber", "api_keys:\n  - {key: a, rate_limit: 5}\n",
     "r.yaml:3:26: api_keys[0].rate_limit: must be a map such as {rpm: 60}, or a list of limits"},
    {"TooLarge", "api_keys:\n  - {key: a, rate_limit: {rpd: 9007199254740992}}\n",
     "r.yaml:3:32: api_keys[0].rate_limit.rpd: must be at most 9007199254740991 (2^53 - 1)"},
    {"Uncountable",
     "api_keys:\n  - key: a\n    rate_limit: [{unit: requests, quota: 9007199254740991, per: 1d, "
     "algorithm: sliding_window}]\n",
     "r.yaml:4:42: api_keys[0].rate_limit[0].quota: is too large for its window: it cannot be "
     "counted to within 1 %"},
    {"ListUnit", POLICY "limits: [{unit: request, quota: 1, per: 1s}]\n",
     "r.yaml:4:21: rate_limit_policies[0].limits[0].unit: 'request' is none of requests, tokens, "
     "input_tokens, output_tokens, concurrency"},
    {"ListQuotaMissing", POLICY "limits: [{unit: requests, per: 1s}]\n",
     "r.yaml:4:14: rate_limit_policies[0].limits[0].quota: is missing"},
    {"ListQuotaNegative", POLICY "limits: [{unit: requests, quota: -5, per: 1s}]\n",
     "r.yaml:4:38: rate_limit_policies[0].limits[0].quota: must not be negative"},
    {"ListPerWithoutUnit", POLICY "limits: [{unit: requests, quota: 5, per: 60}]\n",
     "r.yaml:4:46: rate_limit_policies[0].limits[0].per: '60' must be a duration such as 250ms, "
     "10s, 5m, 1h or 1d: it has no unit"},
    {"ListPerZero", POLICY "limits: [{unit: requests, quota: 5, per: 0s}]\n",
     "r.yaml:4:46: rate_limit_policies[0].limits[0].per: '0s' is no duration such as 250ms, 10s, "
     "5m, 1h or 1d"},
    {"ListPerTooLong", POLICY "limits: [{unit: requests, quota: 5, per: 400d}]\n",
     "r.yaml:4:46: rate_limit_policies[0].limits[0].per: must be between 1 ms and 366 days"},
    {"ListAlgorithm", POLICY "limits: [{unit: requests, quota: 5, per: 1s, algorithm: leaky}]\n",
     "r.yaml:4:61: rate_limit_policies[0].limits[0].algorithm: 'leaky' is none of fixed_window, "
     "sliding_window, sliding_log, token_bucket"},
    {"ListAlgorithmOfTokens",
     POLICY "limits: [{unit: tokens, quota: 5, per: 1s, algorithm: leaky}]\n",
     "r.yaml:4:59: rate_limit_policies[0].limits[0].algorithm: 'leaky' is none of fixed_window, "
     "sliding_window, token_bucket"},
    {"ListAlgorithmOfSlots", POLICY "limits: [{unit: concurrency, quota: 5, algorithm: leaky}]\n",
     "r.yaml:4:55: rate_limit_policies[0].limits[0].algorithm: 'leaky' is none of concurrency"},
    {"RefillZero", POLICY "limits: [{unit: requests, capacity: 2, refill_rate: 0}]\n",
     "r.yaml:4:57: rate_limit_policies[0].limits[0].refill_rate: must be above 0: a bucket that is "
     "never refilled refuses everything; write quota: 0 and per to mean that"},
    {"BurstOfQuotaZero",
     POLICY "limits: [{unit: requests, quota: 0, per: 1s, burst: 2, algorithm: token_bucket}]\n",
     "r.yaml:4:38: rate_limit_policies[0].limits[0].quota: must be above 0: a bucket that is never "
     "refilled refuses everything, whatever its burst; leave burst out to mean that"},
    {"ListRefillInQuotes", POLICY "limits: [{unit: requests, capacity: 5, refill_rate: \"0.5\"}]\n",
     "r.yaml:4:57: rate_limit_policies[0].limits[0].refill_rate: '0.5' must be a decimal number "
     "such as 20 or 0.5: in quotes it is text; remove them"},
    {"ListBurst", POLICY "limits: [{unit: requests, quota: 5, per: 1s, burst: 6}]\n",
     "r.yaml:4:57: rate_limit_policies[0].limits[0].burst: belongs to a token_bucket only"},
    {"TwoAlike",
     POLICY "limits: [{unit: requests, quota: 5, per: 60s}, {unit: requests, quota: 9, per: 1m}]\n",
     "r.yaml:4:52: rate_limit_policies[0].limits[1]: has the unit, window and algorithm of "
     "limits[0]"},
    {"TokensOnRoute",
     "routes:\n  - {name: a, match: {path: /}, upstream: \"http://u\", rate_limit: {rpm: 1, tpm: "
     "5}}\n",
     "r.yaml:3:81: routes[0].rate_limit.tpm: can never apply: it counts tokens, which requests of "
     "a plain route have not"},
    {"GroupByModelOnRoute",
     "routes:\n  - {name: a, match: {path: /}, upstream: \"http://u\", rate_limit: {rpm: 1}, "
     "group_by: [model]}\n",
     "r.yaml:3:88: routes[0].group_by[0]: can never apply: requests of a plain route have no "
     "model"},
    {"GroupByKeyWithoutAuth",
     "routes:\n  - {name: a, match: {path: /}, upstream: \"http://u\", rate_limit: {rpm: 1}, "
     "group_by: [api_key]}\n",
     "r.yaml:3:88: routes[0].group_by[0]: can never apply: requests have no api_key without auth: "
     "api_key"},
    {"GroupByUnknown",
     "routes:\n  - {name: a, match: {path: /}, upstream: \"http://u\", rate_limit: {rpm: 1}, "
     "group_by: [ip]}\n",
     "r.yaml:3:88: routes[0].group_by[0]: 'ip' is no attribute; known are api_key, team, member, "
     "model, model_name, provider, route, client_ip, method, path, host, header:<name>"},
};
INSTANTIATE_TEST_SUITE_P(Limits, BrokenResources, testing::ValuesIn(kLimits),
                         [](const auto& test) { return test.param.name; });

constexpr Broken kPolicies[] = {
    {"NoLimits", POLICY "group_by: [team]\n",
     "r.yaml:3:5: rate_limit_policies[0].limits: is missing"},
    {"IdAll", POLICY "id: all\n    limits: {rpm: 1}\n",
     "r.yaml:4:9: rate_limit_policies[0].id: is reserved: in metrics the policy 'all' is the sum "
     "of the others"},
    {"HeaderOfNoName", POLICY "limits: {rpm: 1}\n    group_by: [\"header:a b\"]\n",
     "r.yaml:5:16: rate_limit_policies[0].group_by[0]: 'a b' is no name of a header"},
    {"NoName", "rate_limit_policies:\n  - limits: {rpm: 1}\n",
     "r.yaml:3:5: rate_limit_policies[0].name: is missing"},
    {"SameNames",
     "rate_limit_policies:\n  - {name: a, limits: {rpm: 1}}\n  - {name: a, limits: {rpm: 2}}\n",
     "r.yaml:4:12: rate_limit_policies[1].name: is the name of rate_limit_policies[0], too"},
    {"ScopeWithoutRef", POLICY "scope: team\n    window: minute\n    max_requests: 5\n",
     "r.yaml:3:5: rate_limit_policies[0].scope_ref: is missing"},
    {"ScopeWithoutLimit", POLICY "scope: team\n    scope_ref: t\n    window: minute\n",
     "r.yaml:3:5: rate_limit_policies[0]: has no limit: give max_requests or max_tokens"},
    {"ScopeUnknown", POLICY "{scope: user}\n",
     "r.yaml:4:5: rate_limit_policies[0].name: is no YAML: end of map not found; is the "
     "indentation right?"},
    {"ScopeNone",
     "rate_limit_policies:\n  - {name: p, scope: user, scope_ref: u, window: minute, max_requests: "
     "1}\n",
     "r.yaml:3:22: rate_limit_policies[0].scope: 'user' is none of api_key, model, team, member, "
     "team_member"},
    {"WindowNone",
     "rate_limit_policies:\n  - {name: p, scope: team, scope_ref: u, window: week, max_requests: "
     "1}\n",
     "r.yaml:3:50: rate_limit_policies[0].window: 'week' is none of second, minute, hour, day"},
    {"ClassicNegative",
     "rate_limit_policies:\n  - {name: p, scope: team, scope_ref: u, window: day, max_requests: "
     "-1}\n",
     "r.yaml:3:69: rate_limit_policies[0].max_requests: must not be negative"},
    {"BothForms",
     POLICY
     "scope: team\n    scope_ref: t\n    window: day\n    max_requests: 1\n    limits: {rpm: "
     "1}\n",
     "r.yaml:8:13: rate_limit_policies[0].limits: does not go with scope: a policy has a scope, or "
     "conditions, group_by and limits"},
    {"Schedules", POLICY "limits: {rpm: 1}\n    schedules: [{timezone: UTC}]\n",
     "r.yaml:5:16: rate_limit_policies[0].schedules: not available yet"},
    {"SchedulesUnknown", POLICY "limits: {rpm: 1}\n    schedules: [{zone: UTC}]\n",
     "r.yaml:5:18: rate_limit_policies[0].schedules[0].zone: unknown key; known are timezone, "
     "days_of_week, dates, start_time, end_time"},
    {"Mode", POLICY "limits: {rpm: 1}\n    mode: dry\n",
     "r.yaml:5:11: rate_limit_policies[0].mode: 'dry' is none of enforce, shadow"},
    {"OnStoreError", POLICY "limits: {rpm: 1}\n    on_store_error: fail_open\n",
     "r.yaml:5:21: rate_limit_policies[0].on_store_error: 'fail_open' is none of local, "
     "local_full, allow, deny"},
    {"TokenAdmission", POLICY "limits: {rpm: 1}\n    token_admission: prepaid\n",
     "r.yaml:5:22: rate_limit_policies[0].token_admission: 'prepaid' is none of postpaid, reserve"},
    {"GroupByUnknown", POLICY "limits: {rpm: 1}\n    group_by: [teams]\n",
     "r.yaml:5:16: rate_limit_policies[0].group_by[0]: 'teams' is no attribute; did you mean "
     "team?"},
    {"GroupByTwice", POLICY "limits: {rpm: 1}\n    group_by: [team, team]\n",
     "r.yaml:5:22: rate_limit_policies[0].group_by[1]: stands there twice"},
    {"DimensionUnknown",
     POLICY "limits: {rpm: 1}\n    conditions: [{dimension: tenant, operator: ==, value: x}]\n",
     "r.yaml:5:30: rate_limit_policies[0].conditions[0].dimension: 'tenant' is no attribute; known "
     "are api_key, team, member, model, model_name, provider, route, client_ip, method, path, "
     "host, header:<name>"},
    {"OperatorUnknown",
     POLICY "limits: {rpm: 1}\n    conditions: [{dimension: team, operator: is, value: x}]\n",
     "r.yaml:5:46: rate_limit_policies[0].conditions[0].operator: 'is' is none of ==, ~=, in"},
    {"OperatorNotYet",
     POLICY "limits: {rpm: 1}\n    conditions: [{dimension: path, operator: ~~, value: \"^/a\"}]\n",
     "r.yaml:5:46: rate_limit_policies[0].conditions[0].operator: '~~' is not available yet"},
    {"OperatorMissing", POLICY "limits: {rpm: 1}\n    conditions: [{dimension: team, value: x}]\n",
     "r.yaml:5:18: rate_limit_policies[0].conditions[0].operator: is missing"},
    {"ValueList",
     POLICY "limits: {rpm: 1}\n    conditions: [{dimension: team, operator: ==, value: [x]}]\n",
     "r.yaml:5:57: rate_limit_policies[0].conditions[0].value: must be one text; a list goes with "
     "the operator in"},
    {"ValueEmptyList",
     POLICY "limits: {rpm: 1}\n    conditions: [{dimension: team, operator: in, value: []}]\n",
     "r.yaml:5:57: rate_limit_policies[0].conditions[0].value: needs at least one value"},
    {"ValueNumber",
     POLICY "limits: {rpm: 1}\n    conditions: [{dimension: team, operator: ==, value: 7}]\n",
     "r.yaml:5:57: rate_limit_policies[0].conditions[0].value: '7' must be a text: put the number "
     "in quotes"},
    {"GroupWithLeafKeys",
     POLICY "limits: {rpm: 1}\n    conditions: [{logic: or, dimension: team, children: []}]\n",
     "r.yaml:5:41: rate_limit_policies[0].conditions[0].dimension: belongs to a leaf, and this is "
     "a "
     "group"},
    {"GroupWithoutChildren",
     POLICY "limits: {rpm: 1}\n    conditions: [{logic: or, children: []}]\n",
     "r.yaml:5:40: rate_limit_policies[0].conditions[0].children: holds no condition"},
    {"TooDeep",
     POLICY "limits: {rpm: 1}\n    conditions:\n"
            "      - {logic: and, children: [{logic: and, children: [{logic: and, children: "
            "[{dimension: team, operator: ==, value: x}]}]}]}\n",
     "r.yaml:6:81: rate_limit_policies[0].conditions[0].children[0].children[0].children[0]: is "
     "nested deeper than 3"},
    {"ModelAndRoute", POLICY "limits: {rpm: 1}\n    group_by: [route, model]\n",
     "r.yaml:3:5: rate_limit_policies[0]: can never apply: it needs a route, which plain HTTP "
     "requests have, and a model, model_name or provider, which they have not"},
    {"TokensOfRoute",
     POLICY "limits: [{unit: requests, quota: 1, per: 1s}, {unit: tokens, quota: 1, per: 1s}]\n"
            "    conditions: [{dimension: route, operator: ==, value: r}]\n",
     "r.yaml:4:51: rate_limit_policies[0].limits[1]: can never apply: it counts tokens, which "
     "requests of a plain route have not"},
};
#undef POLICY

// Values that no request has: a condition on one would never hold, and say nothing.
struct Value {
  const char* name;
  const char* dimension;
  const char* value;
  const char* fault;  // empty: good
  int ipv6_prefix = 64;
};

std::ostream& operator<<(std::ostream& out, const Value& value) { return out << value.value; }

class ConditionValue : public testing::TestWithParam<Value> {};

TEST_P(ConditionValue, IsComparedInTheFormThatRequestsHave) {
  const auto [name, dimension, value, fault, ipv6_prefix] = GetParam();
  for (const bool list : {false, true}) {
    const std::string text =
        "_format_version: \"1\"\nrate_limit_policies:\n  - name: p\n"
        "    limits: {rpm: 1}\n    conditions:\n      - dimension: \"" +
        std::string(dimension) + "\"\n        operator: \"" + (list ? "in" : "==") +
        "\"\n        value: " + (list ? "[\"" : "\"") + value + (list ? "\"]" : "\"") + "\n";
    const auto loaded = load_snapshot("r.yaml", text, {}, 1, OnStoreError::local, ipv6_prefix);
    EXPECT_EQ(loaded.value.has_value(), *fault == '\0');
    if (*fault == '\0') continue;
    ASSERT_EQ(loaded.faults.size(), 1U);
    EXPECT_EQ(loaded.faults[0].message, fault);
    EXPECT_EQ(loaded.faults[0].key,
              std::string("rate_limit_policies[0].conditions[0].value") + (list ? "[0]" : ""));
    EXPECT_EQ(loaded.faults[0].line, 8);
  }
}

#define NORMAL "must be in normal form, as paths are compared: write "
#define HOST "must be a host in lower case without port, such as api.example.com"
#define NETWORK                                                                                  \
  " is a network, and a client's address is none: networks need the operator ipmatch, which is " \
  "not available yet"
#define BY_64 "is compared by its first 64 bits (proxy.real_ip.ipv6_prefix): write "
constexpr Value kValues[] = {
    {"Path", "path", "/a/b%2Fc", ""},
    {"PathSlashes", "path", "//a", NORMAL "'/a'"},
    {"PathDots", "path", "/a/../b", NORMAL "'/b'"},
    {"PathEscape", "path", "/%7eu", NORMAL "'/~u'"},
    {"PathDigits", "path", "/caf%c3%a9", NORMAL "'/caf%C3%A9'"},
    {"PathSpace", "path", "/a b", NORMAL "'/a%20b'"},
    {"PathWithoutSlash", "path", "a", "must begin with '/'"},
    {"PathQuery", "path", "/a?b", "must not have a query"},
    {"Host", "host", "api.example.com", ""},
    {"HostOfNone", "host", "", ""},
    {"HostOfSix", "host", "[::1]", ""},
    {"HostCapitals", "host", "API.example.com", HOST},
    {"HostPort", "host", "api.example.com:80", HOST},
    {"HostStar", "host", "*.example.com", HOST},
    {"HostDot", "host", "api.example.com.", HOST},
    {"Method", "method", "GET", ""},
    {"MethodSmall", "method", "get",
     "'get' is no method such as GET; methods are written in capitals"},
    {"ClientIp", "client_ip", "10.0.0.1", ""},
    {"ClientIpNetwork", "client_ip", "10.0.0.0/8", "'10.0.0.0/8'" NETWORK},
    {"ClientIpShort", "client_ip", "1.2.3",
     "'1.2.3' is no address such as 203.0.113.7 or 2001:db8::/64"},
    {"ClientIpMapped", "client_ip", "::ffff:1.2.3.4", "is compared as IPv4: write '1.2.3.4'"},
    {"ClientIpMappedNetwork", "client_ip", "::ffff:1.2.3.0/120", "'::ffff:1.2.3.0/120'" NETWORK},
    {"ClientIpSix", "client_ip", "2001:db8::/64", ""},
    {"ClientIpSixAlone", "client_ip", "2001:db8::1", BY_64 "'2001:db8::/64'"},
    {"ClientIpSixCapitals", "client_ip", "2001:DB8::/64", BY_64 "'2001:db8::/64'"},
    {"ClientIpSixLong", "client_ip", "2001:db8:0:1::7/128", BY_64 "'2001:db8:0:1::/64'"},
    {"ClientIpSixShort", "client_ip", "2001:db8::/32",
     "'2001:db8::/32' is more than one client: IPv6 clients are told apart by their first 64 bits "
     "(proxy.real_ip.ipv6_prefix)"},
    {"ClientIpSixOfAll", "client_ip", "2001:db8::1", "", 128},
    {"ClientIpSixOf48", "client_ip", "2001:db8:1::/48", "", 48},
    {"ClientIpSixUnknown", "client_ip", "2001:db8:1::/48", "", 0},
    {"ClientIpWord", "client_ip", "localhost",
     "'localhost' is no address such as 203.0.113.7 or 2001:db8::/64"},
    {"Header", "header:X-A", "any thing?", ""},
};
#undef NORMAL
#undef HOST
#undef NETWORK
#undef BY_64
INSTANTIATE_TEST_SUITE_P(Values, ConditionValue, testing::ValuesIn(kValues),
                         [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(Policies, BrokenResources, testing::ValuesIn(kPolicies),
                         [](const auto& test) { return test.param.name; });

constexpr Broken kSubstitutions[] = {
    {"Unset", "provider_keys:\n  - {display_name: a, secret: \"${OPENAI_KEY}\"}\n",
     "r.yaml:3:31: provider_keys[0].secret: the variable OPENAI_KEY is not set; ${OPENAI_KEY:-x} "
     "would give it a default"},
    {"InBraces", "api_keys:\n  - {key: a, rate_limit: {rpm: ${RPM}}}\n",
     "r.yaml:3:33: api_keys[0].rate_limit.rpm: is no YAML: end of map flow not found; a ${} inside "
     "of { } or [ ] ends it: write one key a line instead"},
    {"NotClosed", "provider_keys:\n  - {display_name: a, secret: \"${OPENAI_KEY\"}\n",
     "r.yaml:3:31: provider_keys[0].secret: has a '${' without a '}'; write $$ for a dollar"},
    {"NoName", "provider_keys:\n  - {display_name: a, secret: \"${}\"}\n",
     "r.yaml:3:31: provider_keys[0].secret: ${} names no variable; write $$ for a dollar"},
    {"WrongType", "api_keys:\n  - {key: a, rate_limit: {rpm: \"${EMPTY:-5}\"}}\n",
     "r.yaml:3:32: api_keys[0].rate_limit.rpm: '5' must be a whole number: in quotes it is text; "
     "remove them"},
};
INSTANTIATE_TEST_SUITE_P(Substitutions, BrokenResources, testing::ValuesIn(kSubstitutions),
                         [](const auto& test) { return test.param.name; });

std::string first_fault(const std::string& text) {
  const auto loaded = load_snapshot("r.yaml", text, {}, 1);
  return loaded.faults.empty() ? "" : to_string(loaded.faults[0]);
}

TEST(BrokenResourcesFile, NeedsItsVersion) {
  EXPECT_EQ(first_fault("models: []\n"),
            "r.yaml:1:1: _format_version: is missing: write _format_version: \"1\"");
  EXPECT_EQ(first_fault("_format_version: 1\n"),
            "r.yaml:1:18: _format_version: must be \"1\", in quotes");
  EXPECT_EQ(first_fault("_format_version: \"2\"\n"),
            "r.yaml:1:18: _format_version: must be \"1\", in quotes");
}

TEST(BrokenResourcesFile, NeverRepeatsASecret) {
  const std::string text =
      "_format_version: \"1\"\n"
      "provider_keys: [{display_name: a, secret: 4711, api_key: [hush]}]\n"
      "api_keys: [{key: 4711}, {key: [hush], key_hash: hush}, {key: \"hush\"}, {key: \"hush\"}]\n";
  const auto loaded = load_snapshot("r.yaml", text, {}, 1);
  EXPECT_GE(loaded.faults.size(), 5U);
  for (const Fault& fault : loaded.faults) {
    EXPECT_THAT(to_string(fault), testing::Not(testing::HasSubstr("4711")));
    EXPECT_THAT(to_string(fault), testing::Not(testing::HasSubstr("hush")));
  }
}

TEST(BrokenResourcesFile, IsToldEveryFaultInItsOrder) {
  const auto loaded = load_snapshot("r.yaml",
                                    "_format_version: \"1\"\n"
                                    "models:\n"
                                    "  - display_name: a\n"
                                    "    rate_limit: {rpm: -1, rpd: x, tpm: 5, tps: -5}\n"
                                    "routes:\n"
                                    "  - {name: r, upstream: u}\n",
                                    {}, 1);
  std::vector<std::string> texts;
  texts.reserve(loaded.faults.size());
  for (const Fault& fault : loaded.faults) texts.push_back(to_string(fault));
  EXPECT_THAT(texts, testing::ElementsAre(
                         "r.yaml:3:5: models[0].provider_key: is missing",
                         "r.yaml:4:23: models[0].rate_limit.rpm: must not be negative",
                         "r.yaml:4:32: models[0].rate_limit.rpd: 'x' must be a whole number",
                         "r.yaml:4:48: models[0].rate_limit.tps: must not be negative",
                         "r.yaml:6:5: routes[0].match: is missing",
                         "r.yaml:6:25: routes[0].upstream: must be a URL such as "
                         "https://api.example.com or http://127.0.0.1:8080/base"));
}

}  // namespace
}  // namespace stint::config
