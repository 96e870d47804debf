#include "config/shape.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "config/request_forms.h"
#include "config/scalar.h"
#include "config/suggest.h"
#include "http/syntax.h"

namespace stint::config {
namespace {

using Set = std::uint32_t;  // of dimensions

constexpr Set bit(Dimension dimension) noexcept {
  return Set{1} << static_cast<unsigned>(dimension);
}
constexpr Set kOfModelRequests =
    bit(Dimension::model) | bit(Dimension::model_name) | bit(Dimension::provider);
constexpr Set kOfPlainRoutes = bit(Dimension::route);
constexpr Set kEarly = bit(Dimension::route) | bit(Dimension::client_ip) | bit(Dimension::method) |
                       bit(Dimension::path) | bit(Dimension::host);

std::vector<std::string_view> dimension_names() {
  std::vector<std::string_view> names;
  names.reserve(kDimensions + 1);
  for (std::size_t i = 0; i < kDimensions; ++i)
    names.push_back(to_string(static_cast<Dimension>(i)));
  return names;
}

Set set_of(std::string_view name) noexcept {
  const auto dimension = parse_dimension(name);
  return dimension ? bit(*dimension) : 0;
}

// The dimensions that a request must have for the condition to hold. A leaf is false where its
// attribute is absent, negated or not; a negated group says nothing of its children's.
Set required_by(const Condition& condition) noexcept {
  if (condition.children.empty()) return set_of(condition.dimension);
  if (condition.negate) return 0;
  const bool all = condition.logic == Logic::all;
  Set required = all ? Set{0} : ~Set{0};
  for (const Condition& child : condition.children) {
    required = all ? required | required_by(child) : required & required_by(child);
  }
  return required;
}

Set required_by(const Policy& policy) noexcept {
  Set required = 0;
  for (const Condition& condition : policy.conditions) required |= required_by(condition);
  // Grouped by what we set, a policy does not apply where it is absent; others share a bucket.
  for (const std::string& name : policy.group_by) {
    const auto dimension = parse_dimension(name);
    if (dimension && *dimension <= Dimension::route) required |= bit(*dimension);
  }
  return required;
}

// That requests can have the attributes, and these values of them.
void check_leaves(const Condition& condition, const std::string& path, int ipv6_prefix,
                  std::vector<Error>& faults) {
  if (condition.children.empty()) {
    if (auto wrong = check_attribute(condition.dimension)) {
      faults.push_back({ErrorCode::invalid_argument, path + ".dimension", std::move(*wrong)});
      return;
    }
    const bool list = condition.op == Operator::in;
    for (std::size_t i = 0; i < condition.values.size(); ++i) {
      auto wrong = check_attribute_value(condition.dimension, condition.values[i], ipv6_prefix);
      if (!wrong) continue;
      const std::string field = path + ".value" + (list ? "[" + std::to_string(i) + "]" : "");
      faults.push_back({ErrorCode::invalid_argument, field, std::move(*wrong)});
    }
    return;
  }
  for (std::size_t i = 0; i < condition.children.size(); ++i) {
    check_leaves(condition.children[i], path + ".children[" + std::to_string(i) + "]", ipv6_prefix,
                 faults);
  }
}

bool only_early(const Condition& condition) noexcept {
  const auto early_name = [](std::string_view name) {
    return name.starts_with("header:") || (set_of(name) & kEarly) != 0;
  };
  return condition.children.empty() ? early_name(condition.dimension)
                                    : std::ranges::all_of(condition.children, only_early);
}

bool counts_tokens(const Limit& limit) noexcept {
  return limit.unit == Unit::tokens || limit.unit == Unit::input_tokens ||
         limit.unit == Unit::output_tokens;
}

}  // namespace

std::optional<std::string> check_attribute(std::string_view name) {
  constexpr std::string_view kHeader = "header:";
  if (parse_dimension(name)) return std::nullopt;
  if (name.starts_with(kHeader)) {
    const std::string_view header = name.substr(kHeader.size());
    if (http::is_token(header)) return std::nullopt;
    return quoted(header) + " is no name of a header";
  }
  auto names = dimension_names();
  const std::string_view near = nearest(name, names);
  if (!near.empty()) {
    return quoted(name) + " is no attribute; did you mean " + std::string(near) + "?";
  }
  names.emplace_back("header:<name>");
  return quoted(name) + " is no attribute" + suggestion(name, names);
}

std::vector<Error> shape_faults(const Policy& policy, int ipv6_prefix) {
  std::vector<Error> faults;
  const auto add = [&](std::string field, std::string message) {
    faults.push_back({ErrorCode::invalid_argument, std::move(field), std::move(message)});
  };
  for (std::size_t i = 0; i < policy.conditions.size(); ++i) {
    check_leaves(policy.conditions[i], "conditions[" + std::to_string(i) + "]", ipv6_prefix,
                 faults);
  }
  for (std::size_t i = 0; i < policy.group_by.size(); ++i) {
    if (auto wrong = check_attribute(policy.group_by[i])) {
      add("group_by[" + std::to_string(i) + "]", std::move(*wrong));
    }
  }
  const Set required = required_by(policy);
  if ((required & kOfPlainRoutes) == 0) return faults;
  if ((required & kOfModelRequests) != 0) {
    add("",
        "can never apply: it needs a route, which plain HTTP requests have, and a model, "
        "model_name "
        "or provider, which they have not");
    return faults;
  }
  for (std::size_t i = 0; i < policy.limits.size(); ++i) {
    if (!counts_tokens(policy.limits[i])) continue;
    add("limits[" + std::to_string(i) + "]",
        "can never apply: it counts tokens, which requests of a plain route have not");
  }
  return faults;
}

bool is_early(const Policy& policy) {
  const auto early_name = [](const std::string& name) {
    return name.starts_with("header:") || (set_of(name) & kEarly) != 0;
  };
  return std::ranges::all_of(policy.conditions, only_early) &&
         std::ranges::all_of(policy.group_by, early_name) &&
         std::ranges::none_of(policy.limits, counts_tokens);
}

}  // namespace stint::config
