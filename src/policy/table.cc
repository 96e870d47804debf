#include "policy/table.h"

#include <algorithm>
#include <utility>

namespace stint::policy {
namespace {

CompiledPolicy compile(const Policy& policy, limit::LimitSetPtr limits) {
  CompiledPolicy compiled;
  compiled.id = policy.id;
  limit::append_escaped(compiled.escaped_id, policy.id);
  compiled.name = policy.name.empty() ? policy.id : policy.name;
  for (const Condition& condition : policy.conditions) compiled.conditions.emplace_back(condition);
  for (const std::string& name : policy.group_by) {
    CompiledPolicy::GroupBy group{AttributeName(name), {}};
    limit::append_escaped(group.escaped_name, group.attribute.text());
    compiled.group_by.push_back(std::move(group));
  }
  compiled.limits = std::move(limits);
  compiled.mode = policy.mode;
  compiled.token_admission = policy.token_admission;
  compiled.on_store_error = policy.on_store_error;
  return compiled;
}

}  // namespace

bool CompiledPolicy::applies(const Attributes& attributes) const noexcept {
  for (const CompiledCondition& condition : conditions) {
    if (!condition.holds(attributes)) return false;
  }
  for (const GroupBy& group : group_by) {
    if (group.attribute.identity() && !group.attribute.in(attributes)) return false;
  }
  return true;
}

limit::KeySpan CompiledPolicy::write_key(std::string& out, const Attributes& attributes) const {
  limit::BucketKeyWriter writer(out, escaped_id);
  for (const GroupBy& group : group_by) {
    writer.add(group.escaped_name, group.attribute.in(attributes));
  }
  return writer.finish();
}

Result<std::shared_ptr<const Table>> Table::create(const std::vector<Policy>& policies) {
  if (auto ok = validate(policies); !ok) return std::unexpected(std::move(ok.error()));
  std::shared_ptr<Table> table(new Table);
  table->policies_.reserve(policies.size());
  for (const Policy& policy : policies) {
    auto limits = limit::LimitSet::create(policy.limits);
    if (!limits) return std::unexpected(std::move(limits.error()));
    table->policies_.push_back(compile(policy, std::move(*limits)));
    table->add_to_index(static_cast<std::uint32_t>(table->policies_.size() - 1));
  }
  return table;
}

void Table::add_to_index(std::uint32_t number) {
  // One selective condition is enough: the others are tested when the policy is found by it.
  const auto& conditions = policies_[number].conditions;
  const auto selective = std::ranges::find_if(conditions, &CompiledCondition::selective);
  if (selective == conditions.end()) {
    unindexed_.push_back(number);
    return;
  }
  auto index = std::ranges::find(indexes_, selective->attribute(), &Index::attribute);
  if (index == indexes_.end()) {
    indexes_.push_back({selective->attribute(), {}});
    index = indexes_.end() - 1;
  }
  for (const std::string& value : selective->values()) {
    std::vector<std::uint32_t>& numbers = index->by_value[value];
    if (numbers.empty() || numbers.back() != number) numbers.push_back(number);
  }
}

Table::Matches Table::match(const Attributes& attributes) const {
  boost::container::small_vector<std::uint32_t, 16> found(unindexed_.begin(), unindexed_.end());
  for (const Index& index : indexes_) {
    const auto value = index.attribute.in(attributes);
    if (!value) continue;
    const auto numbers = index.by_value.find(*value);
    if (numbers == index.by_value.end()) continue;
    found.insert(found.end(), numbers->second.begin(), numbers->second.end());
  }
  std::ranges::sort(found);
  Matches matches;
  for (const std::uint32_t number : found) {
    if (policies_[number].applies(attributes)) matches.push_back(&policies_[number]);
  }
  return matches;
}

}  // namespace stint::policy
