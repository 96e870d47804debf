// Conditions made ready for matching.
#pragma once

#include <string>
#include <vector>

#include "policy/attribute_name.h"
#include "stint/policy.h"

namespace stint::policy {

// Immutable. Thread rule: any thread.
class CompiledCondition {
 public:
  // Must be valid (policy/validate.h).
  explicit CompiledCondition(const Condition& condition);

  [[nodiscard]] bool holds(const Attributes& attributes) const noexcept;

  // True if it is a leaf that holds only where the attribute has one of `values()`: what an index
  // can be made of.
  [[nodiscard]] bool selective() const noexcept;
  [[nodiscard]] const AttributeName& attribute() const noexcept { return attribute_; }
  [[nodiscard]] const std::vector<std::string>& values() const noexcept { return values_; }

 private:
  [[nodiscard]] bool leaf_holds(const Attributes& attributes) const noexcept;
  [[nodiscard]] bool group_holds(const Attributes& attributes) const noexcept;

  bool negate_;
  AttributeName attribute_;
  Operator op_;
  std::vector<std::string> values_;  // sorted
  Logic logic_;
  std::vector<CompiledCondition> children_;
};

}  // namespace stint::policy
