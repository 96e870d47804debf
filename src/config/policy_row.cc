// rate_limit_policies: the classic and the general form.
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "config/limits_reader.h"
#include "config/names.h"
#include "config/rows.h"
#include "config/shape.h"

namespace stint::config {
namespace {

constexpr std::array<std::string_view, 2> kLogicNames{"and", "or"};
constexpr std::array<std::string_view, 5> kScopes{"api_key", "model", "team", "member",
                                                  "team_member"};
constexpr std::array<std::string_view, 4> kWindowNames{"second", "minute", "hour", "day"};
constexpr std::array<Duration, 4> kWindows{std::chrono::seconds{1}, std::chrono::minutes{1},
                                           std::chrono::hours{1}, std::chrono::days{1}};

// A text, or for `in` a list of texts.
void read_values(MapReader& reader, Operator op, std::vector<std::string>& out) {
  const Node* value = reader.node("value", KnownKey::Kind::either);
  if (value == nullptr || value->kind == Node::Kind::broken) return;
  if (op == Operator::in) {
    reader.texts("value", out);
    return;
  }
  if (value->kind == Node::Kind::list) {
    reader.fault("value", "must be one text; a list goes with the operator in");
    return;
  }
  std::string text;
  if (reader.text("value", text)) out.push_back(std::move(text));
}

Condition read_condition(MapReader& reader, std::size_t depth) {
  Condition condition;
  const bool group = reader.given("children") || reader.given("logic");
  std::string op;
  reader.text("dimension", condition.dimension);
  reader.text("operator", op);
  if (!op.empty()) {
    const auto parsed = parse_operator(op);
    if (parsed) condition.op = *parsed;
    if (!parsed) reader.fault("operator", parsed.error().message);
  }
  read_values(reader, condition.op, condition.values);
  reader.boolean("negate", condition.negate);
  reader.choice("logic", condition.logic, kLogicNames);
  // Where keys are only noted, one level stands for all.
  if (reader.context().known == nullptr || depth == 1) {
    reader.maps("children", [&](MapReader& child) {
      condition.children.push_back(read_condition(child, depth + 1));
    });
  }
  reader.finish();
  if (!group) {
    reader.require("dimension");
    reader.require("operator");
    reader.require("value");
    return condition;
  }
  for (const char* name : {"dimension", "operator", "value"}) {
    if (reader.given(name)) reader.fault(name, "belongs to a leaf, and this is a group");
  }
  reader.require("logic");
  if (reader.require("children") && condition.children.empty()) {
    reader.fault("children", "holds no condition");
  }
  return condition;
}

void read_general(MapReader& reader, PolicyRow& out) {
  reader.maps("conditions",
              [&](MapReader& item) { out.policy.conditions.push_back(read_condition(item, 1)); });
  reader.texts("group_by", out.policy.group_by);
  Limits limits;
  read_limits(reader, "limits", limits);
  out.policy.limits = std::move(limits.limits);
  out.limit_places = std::move(limits.places);
}

struct Classic {
  std::optional<std::size_t> scope{};  // none: not given, or unknown
  std::string ref{};
  std::size_t window = 0;
  std::optional<std::int64_t> max_requests{};
  std::optional<std::int64_t> max_tokens{};
};

Classic read_classic(MapReader& reader) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  Classic classic;
  std::size_t scope = 0;
  if (reader.choice("scope", scope, kScopes)) classic.scope = scope;
  reader.text("scope_ref", classic.ref);
  reader.choice("window", classic.window, kWindowNames);
  reader.integer("max_requests", classic.max_requests, kLeast, kMost);
  reader.integer("max_tokens", classic.max_tokens, kLeast, kMost);
  return classic;
}

// One bucket for what scope_ref names; team_member: one for each member of that team.
void turn_general(MapReader& reader, const Classic& classic, PolicyRow& out) {
  reader.require("scope");
  reader.require("scope_ref");
  reader.require("window");
  if (reader.given("scope_ref") && classic.ref.empty()) {
    reader.fault("scope_ref", "must not be empty");
  }
  if (classic.scope) {
    const std::string_view scope = kScopes[*classic.scope];
    const bool members = scope == "team_member";
    out.policy.conditions.push_back(
        Condition::equal(members ? "team" : std::string(scope), classic.ref));
    if (members) out.policy.group_by = {"member"};
  }

  const auto add = [&](const char* name, std::optional<std::int64_t> quota, Unit unit) {
    if (!quota) return;
    const Limit limit{.unit = unit, .quota = *quota, .window = kWindows[classic.window]};
    if (const auto good = validate(limit); !good) {
      reader.fault(name, good.error().message);
      return;
    }
    out.policy.limits.push_back(limit);
    out.limit_places.push_back(reader.place_of(name));
  };
  add("max_requests", classic.max_requests, Unit::requests);
  add("max_tokens", classic.max_tokens, Unit::tokens);
  if (!reader.given("max_requests") && !reader.given("max_tokens")) {
    reader.fault("", "has no limit: give max_requests or max_tokens");
  }
}

constexpr std::array<const char*, 5> kClassicKeys{"scope", "scope_ref", "window", "max_requests",
                                                  "max_tokens"};
constexpr std::array<const char*, 3> kGeneralKeys{"conditions", "group_by", "limits"};

// True if the row is of the classic form. Mixed forms are told.
bool is_classic(MapReader& reader) {
  const char* classic = nullptr;
  for (const char* name : kClassicKeys) {
    if (classic == nullptr && reader.given(name)) classic = name;
  }
  if (classic == nullptr) return false;
  for (const char* name : kGeneralKeys) {
    if (!reader.given(name)) continue;
    reader.fault(name, "does not go with " + std::string(classic) +
                           ": a policy has a scope, or conditions, group_by and limits");
  }
  return true;
}

void read_schedules(MapReader& reader) {
  const std::size_t faults = reader.context().faults.size();
  reader.maps("schedules", [](MapReader& item) {
    std::string text;
    std::vector<std::string> texts;
    item.text("timezone", text);
    item.texts("days_of_week", texts);
    item.texts("dates", texts);
    item.text("start_time", text);
    item.text("end_time", text);
    item.finish();
  });
  if (reader.context().faults.size() == faults) reader.unavailable("schedules");
}

}  // namespace

PolicyDraft read_policy(MapReader reader) {
  PolicyRow row;
  const std::size_t faults = reader.context().faults.size();
  reader.text("name", row.policy.name, check_name);
  row.policy.id = read_id(reader, "rate_limit_policies", row.policy.name);
  if (row.policy.id == "all") {
    reader.fault("id", "is reserved: in metrics the policy 'all' is the sum of the others");
  }
  const Classic classic = read_classic(reader);
  read_general(reader, row);
  reader.choice("mode", row.policy.mode, kModeNames);
  OnStoreError rule{};
  if (reader.choice("on_store_error", rule, kOnStoreErrorNames)) row.on_store_error = rule;
  reader.choice("token_admission", row.policy.token_admission, kTokenAdmissionNames);
  read_schedules(reader);
  reader.finish();
  reader.require("name");
  row.place = reader.place();

  const bool is_classic_form = is_classic(reader);
  if (is_classic_form) {
    turn_general(reader, classic, row);
  } else {
    reader.require("limits");
  }
  if (reader.context().known == nullptr && reader.context().faults.size() == faults) {
    if (const auto good = validate(std::vector{row.policy}); !good) {
      constexpr std::string_view kPrefix = "policies[0].";
      const std::string_view field = good.error().field;
      report(reader, field.starts_with(kPrefix) ? field.substr(kPrefix.size()) : "",
             good.error().message, row.limit_places);
    }
    for (const Error& error : shape_faults(row.policy, reader.context().ipv6_prefix)) {
      report(reader, error.field, error.message, row.limit_places);
    }
  }
  return {std::move(row), std::move(reader), is_classic_form};
}

}  // namespace stint::config
