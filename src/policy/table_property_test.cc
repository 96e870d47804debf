// The index of the table against looking at every policy, and compiled conditions against the
// definition, on random policies and requests.
#include <gtest/gtest.h>
// After gtest.h, which it does not include.
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "policy/table.h"

namespace stint::policy {
namespace {

// Few names and values, so that conditions and requests meet: identities, attributes of the
// caller, and one header in two spellings.
constexpr std::array kNames{"team", "model", "host", "plan", "header:x-a", "header:X-A"};
constexpr std::array kValues{"", "a", "b", "c"};

std::string any_name() { return *rc::gen::elementOf(kNames); }
std::string any_value() { return *rc::gen::elementOf(kValues); }

Condition any_leaf() {
  const std::string name = any_name();
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      return Condition::equal(name, any_value());
    case 1:
      return Condition::not_equal(name, any_value());
    default: {
      std::vector<std::string> values{any_value()};
      while (*rc::gen::arbitrary<bool>() && values.size() < 4) values.push_back(any_value());
      return Condition::in(name, values);
    }
  }
}

Condition any_condition(int depth) {
  Condition condition;
  // Mostly leaves: the 16 that a policy may have are soon spent.
  if (depth == 1 || *rc::gen::inRange(0, 3) > 0) {
    condition = any_leaf();
  } else {
    std::vector<Condition> children;
    const int count = *rc::gen::inRange(1, 3);
    children.reserve(2);
    for (int i = 0; i < count; ++i) children.push_back(any_condition(depth - 1));
    condition =
        *rc::gen::arbitrary<bool>() ? Condition::all_of(children) : Condition::any_of(children);
  }
  return *rc::gen::inRange(0, 4) == 0 ? condition.negated() : condition;
}

Policy any_policy(std::size_t number) {
  Policy policy;
  policy.id = "p" + std::to_string(number);
  const int conditions = *rc::gen::inRange(0, 4);
  for (int i = 0; i < conditions; ++i) policy.conditions.push_back(any_condition(3));
  const int groups = *rc::gen::inRange(0, 3);
  for (int i = 0; i < groups; ++i) {
    const std::string name = any_name();
    const auto same = [&](const std::string& other) { return same_name(other, name); };
    if (std::ranges::none_of(policy.group_by, same)) policy.group_by.push_back(name);
  }
  policy.limits = {in_flight(1)};
  return policy;
}

std::vector<Policy> any_policies() {
  std::vector<Policy> policies;
  const int count = *rc::gen::inRange(0, 24);
  policies.reserve(24);
  for (int i = 0; i < count; ++i) policies.push_back(any_policy(policies.size()));
  return policies;
}

Attributes any_attributes() {
  Attributes attributes;
  for (const char* name : kNames) {
    if (*rc::gen::arbitrary<bool>()) attributes.set(name, *rc::gen::elementOf(kValues));
  }
  return attributes;
}

// The definition, word by word.
bool by_definition(const Condition& condition, const Attributes& attributes) {
  if (condition.children.empty()) {
    const auto value = attributes.get(condition.dimension);
    if (!value) return false;
    bool listed = false;
    for (const std::string& one : condition.values) listed = listed || one == *value;
    return (condition.op == Operator::not_equal ? !listed : listed) != condition.negate;
  }
  std::size_t held = 0;
  for (const Condition& child : condition.children) held += by_definition(child, attributes);
  const std::size_t wanted = condition.logic == Logic::all ? condition.children.size() : 1;
  return (held >= wanted) != condition.negate;
}

bool by_definition(const Policy& policy, const Attributes& attributes) {
  for (const Condition& condition : policy.conditions) {
    if (!by_definition(condition, attributes)) return false;
  }
  for (const std::string& name : policy.group_by) {
    const auto known = parse_dimension(name);
    if (known && *known <= Dimension::route && !attributes.get(name)) return false;
  }
  return true;
}

// Runs a property with a seed that is the same in every run.
template <class Property>
void check_always(std::uint64_t seed, Property&& property) {
  rc::detail::TestParams params;
  params.seed = seed;
  params.maxSuccess = 5000;
  const auto result = rc::detail::checkTestable(std::forward<Property>(property),
                                                rc::detail::TestMetadata{}, params);
  std::ostringstream told;
  rc::detail::printResultMessage(result, told);
  EXPECT_TRUE(result.template is<rc::detail::SuccessResult>())
      << "seed " << seed << ": " << told.str();
}

TEST(TableProperty, MatchesThePoliciesThatApplyInTheirOrder) {
  std::size_t matches = 0;
  check_always(1, [&] {
    const std::vector<Policy> policies = any_policies();
    const auto table = Table::create(policies).value();
    for (int request = 0; request < 4; ++request) {
      const Attributes attributes = any_attributes();
      std::vector<std::string> expected;
      for (const Policy& policy : policies) {
        if (by_definition(policy, attributes)) expected.push_back(policy.id);
      }
      std::vector<std::string> found;
      for (const CompiledPolicy* policy : table->match(attributes)) found.push_back(policy->id);
      RC_ASSERT(found == expected);
      matches += found.size();
    }
  });
  EXPECT_GT(matches, 5000U);  // else the random requests meet too little
}

TEST(TableProperty, TwoRequestsShareABucketIfTheyAgreeInGroupByAndOnlyThen) {
  std::size_t shared = 0;
  check_always(2, [&] {
    Policy policy = any_policy(0);
    policy.conditions.clear();
    const auto table = Table::create({policy}).value();
    const CompiledPolicy& compiled = table->policies()[0];
    const Attributes one = any_attributes();
    const Attributes two = any_attributes();
    if (!compiled.applies(one) || !compiled.applies(two)) return;
    bool agree = true;
    for (const std::string& name : policy.group_by) agree = agree && one.get(name) == two.get(name);
    std::string out;
    const auto first = compiled.write_key(out, one);
    const auto second = compiled.write_key(out, two);
    const bool same = out.substr(first.key_begin, first.key_size) ==
                      out.substr(second.key_begin, second.key_size);
    RC_ASSERT(same == agree);
    shared += same && !policy.group_by.empty();
  });
  EXPECT_GT(shared, 100U);
}

}  // namespace
}  // namespace stint::policy
