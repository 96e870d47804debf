#include "limit/limit_set.h"

#include <algorithm>
#include <string>

namespace stint {

Result<void> validate(const Limit& limit) {
  if (auto spec = limit::compile(limit); !spec) return std::unexpected(std::move(spec.error()));
  return {};
}

Result<void> validate(std::span<const Limit> limits) {
  if (auto set = limit::LimitSet::create(limits); !set) {
    return std::unexpected(std::move(set.error()));
  }
  return {};
}

}  // namespace stint

namespace stint::limit {
namespace {

std::string element(std::size_t index) { return "limits[" + std::to_string(index) + "]"; }

}  // namespace

Result<LimitSetPtr> LimitSet::create(std::span<const Limit> limits) {
  std::vector<Spec> specs;
  specs.reserve(limits.size());
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto spec = compile(limits[i]);
    if (!spec) {
      spec.error().field = element(i) + "." + spec.error().field;
      return std::unexpected(std::move(spec.error()));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (specs[j].name == spec->name) {
        return invalid(element(i), "has the unit, window and algorithm of " + element(j));
      }
    }
    specs.push_back(*spec);
  }
  return LimitSetPtr(new LimitSet(std::move(specs)));
}

std::optional<std::size_t> LimitSet::find(const LimitName& name) const noexcept {
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].name == name) return i;
  }
  return std::nullopt;
}

bool LimitSet::same_names(const LimitSet& other) const noexcept {
  return std::ranges::equal(specs_, other.specs_, {}, &Spec::name, &Spec::name);
}

}  // namespace stint::limit
