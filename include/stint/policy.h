// A policy: conditions on attributes, what to count by, and limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stint/attributes.h"
#include "stint/error.h"
#include "stint/limit.h"
#include "stint/outage.h"

namespace stint {

enum class Operator : std::uint8_t {
  equal,      // ==  the attribute is the value
  not_equal,  // ~=  the attribute is there and is not the value
  in,         // in  the attribute is one of the values
};

// "==", "~=", "in"; "~~", "~*" and "ipmatch" are refused as not available yet.
[[nodiscard]] Result<Operator> parse_operator(std::string_view text);

enum class Logic : std::uint8_t { all, any };

// A leaf tests one attribute; a group joins children. A leaf on an attribute that the request
// lacks is false, negated or not; a group is judged by its children alone.
struct Condition {
  bool negate = false;

  // Leaf: used when `children` is empty.
  std::string dimension{};  // "team", "header:x-tenant", any name
  Operator op = Operator::equal;
  std::vector<std::string> values{};  // exactly one, or for `in` at least one

  // Group.
  Logic logic = Logic::all;
  std::vector<Condition> children{};

  [[nodiscard]] static Condition equal(std::string dimension, std::string value);
  [[nodiscard]] static Condition not_equal(std::string dimension, std::string value);
  [[nodiscard]] static Condition in(std::string dimension, std::vector<std::string> values);
  [[nodiscard]] static Condition all_of(std::vector<Condition> children);
  [[nodiscard]] static Condition any_of(std::vector<Condition> children);
  [[nodiscard]] Condition negated() const;
};

// A condition nests at most this deep (a leaf is 1), and a policy has at most so many leaves.
inline constexpr std::size_t kMaxConditionDepth = 3;
inline constexpr std::size_t kMaxConditionLeaves = 16;
// The most limits of one policy, attributes of one group_by, and bytes of a policy's id.
inline constexpr std::size_t kMaxLimits = 16;
inline constexpr std::size_t kMaxGroupBy = 8;
inline constexpr std::size_t kMaxPolicyId = 64;

enum class Mode : std::uint8_t {
  enforce,
  // Counts as if it were enforced and never refuses: charged when the request was admitted and
  // this policy would have admitted it too.
  shadow,
};

// How token limits decide before the real use of tokens is known (docs/algorithms.md).
enum class TokenAdmission : std::uint8_t {
  // Admits while anything is left; charges the use that is to be expected.
  postpaid,
  // Admits only what surely fits: charges the estimate of the input and the cap of the output.
  reserve,
};

struct Policy {
  std::string id{};    // 1 to 64 bytes, unique; names the policy's buckets
  std::string name{};  // for people: headers and bodies show it; empty: the id
  // All must hold. Empty: every request.
  std::vector<Condition> conditions{};
  // One bucket for each combination of these attributes' values. Empty: one bucket for all.
  std::vector<std::string> group_by{};
  std::vector<Limit> limits{};  // at least one
  Mode mode = Mode::enforce;
  TokenAdmission token_admission = TokenAdmission::postpaid;
  // What holds while the counters cannot be reached.
  OnStoreError on_store_error = OnStoreError::local;
};

// Whether the policies can be put into force together: the first fault found, its field as a
// path such as "policies[3].limits[0].quota".
[[nodiscard]] Result<void> validate(const std::vector<Policy>& policies);

}  // namespace stint
