// The table of policies: everything that limits, and which of it applies to a request.
#pragma once

#include <boost/container/small_vector.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "limit/bucket_key.h"
#include "limit/limit_set.h"
#include "policy/condition.h"
#include "stint/policy.h"

namespace stint::policy {

// A policy made ready for matching.
struct CompiledPolicy {
  std::string id;
  std::string escaped_id;
  std::string name;
  std::vector<CompiledCondition> conditions;
  struct GroupBy {
    AttributeName attribute;
    std::string escaped_name;
  };
  std::vector<GroupBy> group_by;
  limit::LimitSetPtr limits;
  Mode mode{};
  TokenAdmission token_admission{};
  OnStoreError on_store_error{};

  // Whether the request meets the conditions and has a bucket here.
  [[nodiscard]] bool applies(const Attributes& attributes) const noexcept;
  // Writes the key of the request's bucket; only if the policy applies.
  [[nodiscard]] limit::KeySpan write_key(std::string& out, const Attributes& attributes) const;
};

// Immutable. Thread rule: any thread.
class Table {
 public:
  using Matches = boost::container::small_vector<const CompiledPolicy*, 8>;

  // Errors: as stint::validate(policies).
  [[nodiscard]] static Result<std::shared_ptr<const Table>> create(
      const std::vector<Policy>& policies);

  // The policies that apply, in the order in which they were given. Takes time in proportion to
  // the policies that could apply: those that ask for a value of an attribute (`==`, `in`) are
  // found by that value, all others are looked at one by one.
  [[nodiscard]] Matches match(const Attributes& attributes) const;

  [[nodiscard]] const std::vector<CompiledPolicy>& policies() const noexcept { return policies_; }

 private:
  struct TextHash {
    using is_transparent = void;
    [[nodiscard]] std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };
  // The policies that ask for a value of one attribute, by the value.
  struct Index {
    AttributeName attribute;
    boost::unordered_flat_map<std::string, std::vector<std::uint32_t>, TextHash, std::equal_to<>>
        by_value;
  };

  Table() = default;
  void add_to_index(std::uint32_t number);

  std::vector<CompiledPolicy> policies_;
  std::vector<Index> indexes_;
  std::vector<std::uint32_t> unindexed_;
};

}  // namespace stint::policy
