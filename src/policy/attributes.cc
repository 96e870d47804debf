#include "stint/attributes.h"

#include "policy/attribute_name.h"

namespace stint {
namespace {

constexpr std::array<std::string_view, kDimensions> kNames{
    "api_key", "team",      "member", "model", "model_name", "provider",
    "route",   "client_ip", "method", "path",  "host"};

}  // namespace

std::string_view to_string(Dimension dimension) noexcept {
  const auto index = static_cast<std::size_t>(dimension);
  return index < kNames.size() ? kNames[index] : "unknown";
}

std::optional<Dimension> parse_dimension(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Dimension>(i);
  }
  return std::nullopt;
}

Attributes& Attributes::set(std::string_view name, std::string_view value) {
  if (const auto dimension = parse_dimension(name)) return set(*dimension, value);
  for (auto& [other, old] : others_) {
    if (policy::same_name(other, name)) {
      old = value;
      return *this;
    }
  }
  others_.emplace_back(name, value);
  return *this;
}

std::optional<std::string_view> Attributes::get(std::string_view name) const noexcept {
  if (const auto dimension = parse_dimension(name)) return get(*dimension);
  return get_other(name);
}

std::optional<std::string_view> Attributes::get_other(std::string_view name) const noexcept {
  for (const auto& [other, value] : others_) {
    if (policy::same_name(other, name)) return value;
  }
  return std::nullopt;
}

}  // namespace stint
