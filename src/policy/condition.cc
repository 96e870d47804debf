#include "policy/condition.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace stint {

Condition Condition::equal(std::string dimension, std::string value) {
  Condition leaf;
  leaf.dimension = std::move(dimension);
  leaf.values.push_back(std::move(value));
  return leaf;
}

Condition Condition::not_equal(std::string dimension, std::string value) {
  Condition leaf = equal(std::move(dimension), std::move(value));
  leaf.op = Operator::not_equal;
  return leaf;
}

Condition Condition::in(std::string dimension, std::vector<std::string> values) {
  Condition leaf;
  leaf.dimension = std::move(dimension);
  leaf.op = Operator::in;
  leaf.values = std::move(values);
  return leaf;
}

Condition Condition::all_of(std::vector<Condition> children) {
  Condition group;
  group.children = std::move(children);
  return group;
}

Condition Condition::any_of(std::vector<Condition> children) {
  Condition group = all_of(std::move(children));
  group.logic = Logic::any;
  return group;
}

Condition Condition::negated() const {
  Condition other = *this;
  other.negate = !negate;
  return other;
}

}  // namespace stint

namespace stint::policy {

CompiledCondition::CompiledCondition(const Condition& condition)
    : negate_(condition.negate),
      attribute_(condition.dimension),
      op_(condition.op),
      values_(condition.values),
      logic_(condition.logic) {
  std::ranges::sort(values_);
  for (const Condition& child : condition.children) children_.emplace_back(child);
}

bool CompiledCondition::holds(const Attributes& attributes) const noexcept {
  return children_.empty() ? leaf_holds(attributes) : group_holds(attributes) != negate_;
}

bool CompiledCondition::selective() const noexcept {
  return children_.empty() && !negate_ && (op_ == Operator::equal || op_ == Operator::in);
}

bool CompiledCondition::leaf_holds(const Attributes& attributes) const noexcept {
  const auto value = attribute_.in(attributes);
  if (!value) return false;  // negated or not
  const bool listed = std::ranges::binary_search(values_, *value, std::less<>{});
  return (op_ == Operator::not_equal ? !listed : listed) != negate_;
}

bool CompiledCondition::group_holds(const Attributes& attributes) const noexcept {
  const auto holds = [&](const CompiledCondition& child) { return child.holds(attributes); };
  return logic_ == Logic::all ? std::ranges::all_of(children_, holds)
                              : std::ranges::any_of(children_, holds);
}

}  // namespace stint::policy
