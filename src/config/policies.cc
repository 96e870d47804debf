#include "config/policies.h"

#include <optional>
#include <string>
#include <utility>

namespace stint::config {
namespace {

Policy inline_policy(const char* collection, const std::string& id, const std::string& name,
                     const Limits& limits) {
  const std::string prefix = std::string(collection) + "/";
  return {.id = prefix + id,
          .name = prefix + (name.empty() ? id : name),
          .conditions = {},
          .group_by = {},
          .limits = limits.limits};
}

}  // namespace

std::vector<Policy> make_policies(const Resources& resources, OnStoreError on_store_error,
                                  std::vector<Place>& places) {
  std::vector<Policy> policies;
  const auto add = [&](Policy policy, const Place& place,
                       std::optional<OnStoreError> own_rule = std::nullopt) {
    policy.on_store_error = own_rule.value_or(on_store_error);
    policies.push_back(std::move(policy));
    places.push_back(place);
  };
  for (const Model& model : resources.models) {
    if (model.rate_limit.empty()) continue;
    // All callers together, and all aliases of a wildcard row: `model` is the row's name.
    Policy policy = inline_policy("models", model.id, model.display_name, model.rate_limit);
    policy.conditions.push_back(Condition::equal("model", model.display_name));
    add(std::move(policy), model.place);
  }
  for (const ApiKey& key : resources.api_keys) {
    if (key.rate_limit.empty()) continue;
    Policy policy = inline_policy("api_keys", key.id, key.display_name, key.rate_limit);
    policy.conditions.push_back(Condition::equal("api_key", key.id));
    add(std::move(policy), key.place);
  }
  for (const Route& route : resources.routes) {
    if (route.rate_limit.empty()) continue;
    // Each caller by itself, unless the route says otherwise.
    Policy policy = inline_policy("routes", route.id, route.name, route.rate_limit);
    policy.conditions.push_back(Condition::equal("route", route.name));
    const char* caller = route.auth == Auth::api_key ? "api_key" : "client_ip";
    policy.group_by = route.group_by.value_or(std::vector<std::string>{caller});
    add(std::move(policy), route.place);
  }
  for (const PolicyRow& row : resources.rate_limit_policies) {
    add(row.policy, row.place, row.on_store_error);
  }
  return policies;
}

}  // namespace stint::config
