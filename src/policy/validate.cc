#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "policy/attribute_name.h"
#include "stint/policy.h"

namespace stint {
namespace {

std::string element(std::string_view list, std::size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

// Puts the path of what contains it before the field of an error.
std::unexpected<Error> within(std::string path, Error error) {
  if (!error.field.empty()) path += "." + error.field;
  error.field = std::move(path);
  return std::unexpected(std::move(error));
}

Result<void> check_name(std::string field, const std::string& name) {
  if (name.empty()) return invalid(std::move(field), "must not be empty");
  if (name == "header:") return invalid(std::move(field), "names no header");
  return {};
}

Result<void> check_leaf(const Condition& leaf) {
  if (auto ok = check_name("dimension", leaf.dimension); !ok) return ok;
  if (leaf.op > Operator::in) return invalid("operator", "is no operator");
  if (leaf.op == Operator::in && leaf.values.empty()) {
    return invalid("value", "needs at least one value");
  }
  if (leaf.op != Operator::in && leaf.values.size() != 1) {
    return invalid("value", "needs exactly one value");
  }
  return {};
}

Result<void> check_condition(const Condition& condition, std::size_t depth, std::size_t& leaves) {
  if (depth > kMaxConditionDepth) {
    return invalid("", "is nested deeper than " + std::to_string(kMaxConditionDepth));
  }
  if (condition.children.empty()) {
    if (++leaves > kMaxConditionLeaves) {
      return invalid("", "is one condition too many: a policy has at most " +
                             std::to_string(kMaxConditionLeaves));
    }
    return check_leaf(condition);
  }
  if (!condition.dimension.empty() || !condition.values.empty()) {
    return invalid("dimension", "belongs to a leaf, and this is a group with children");
  }
  if (condition.logic > Logic::any) return invalid("logic", "is neither all nor any");
  for (std::size_t i = 0; i < condition.children.size(); ++i) {
    auto ok = check_condition(condition.children[i], depth + 1, leaves);
    if (!ok) return within(element("children", i), std::move(ok.error()));
  }
  return {};
}

Result<void> check_group_by(const std::vector<std::string>& group_by) {
  if (group_by.size() > kMaxGroupBy) {
    return invalid("group_by", "has more than " + std::to_string(kMaxGroupBy) + " attributes");
  }
  for (std::size_t i = 0; i < group_by.size(); ++i) {
    if (auto ok = check_name(element("group_by", i), group_by[i]); !ok) return ok;
    const auto same = [&](const std::string& name) { return policy::same_name(name, group_by[i]); };
    if (std::ranges::any_of(std::span(group_by).first(i), same)) {
      return invalid(element("group_by", i), "stands there twice");
    }
  }
  return {};
}

Result<void> check_policy(const Policy& policy) {
  if (policy.id.empty()) return invalid("id", "must not be empty");
  if (policy.id.size() > kMaxPolicyId) {
    return invalid("id", "is longer than " + std::to_string(kMaxPolicyId) + " bytes");
  }
  std::size_t leaves = 0;
  for (std::size_t i = 0; i < policy.conditions.size(); ++i) {
    auto ok = check_condition(policy.conditions[i], 1, leaves);
    if (!ok) return within(element("conditions", i), std::move(ok.error()));
  }
  if (auto ok = check_group_by(policy.group_by); !ok) return ok;
  if (policy.limits.empty()) return invalid("limits", "must not be empty");
  if (policy.limits.size() > kMaxLimits) {
    return invalid("limits", "has more than " + std::to_string(kMaxLimits) + " limits");
  }
  if (policy.mode > Mode::shadow) return invalid("mode", "is no mode");
  if (policy.on_store_error > OnStoreError::deny) {
    return invalid("on_store_error", "is none of local, local_full, allow, deny");
  }
  if (policy.token_admission > TokenAdmission::reserve) {
    return invalid("token_admission", "is neither postpaid nor reserve");
  }
  return validate(std::span<const Limit>(policy.limits));
}

}  // namespace

Result<Operator> parse_operator(std::string_view text) {
  if (text == "==") return Operator::equal;
  if (text == "~=") return Operator::not_equal;
  if (text == "in") return Operator::in;
  // In steps: GCC 12 sees overlapping copies in a sum that begins with one character.
  std::string quoted = "'";
  quoted.append(text).append("'");
  if (text == "~~" || text == "~*" || text == "ipmatch") {
    return invalid("operator", quoted + " is not available yet");
  }
  return invalid("operator", quoted + " is none of ==, ~=, in");
}

Result<void> validate(const std::vector<Policy>& policies) {
  std::set<std::string_view> ids;
  for (std::size_t i = 0; i < policies.size(); ++i) {
    auto ok = check_policy(policies[i]);
    if (!ok) return within(element("policies", i), std::move(ok.error()));
    if (!ids.insert(policies[i].id).second) {
      return invalid(element("policies", i) + ".id", "is the id of another policy");
    }
  }
  return {};
}

}  // namespace stint
