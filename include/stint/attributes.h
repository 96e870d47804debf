// What is known of a request: names and values that conditions test and group_by counts by.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace stint {

// The attributes with a name of their own. Any other name is an attribute that the caller brings
// ("header:<name>", compared without regard to case, or a key of a decision call).
enum class Dimension : std::uint8_t {
  // Set by whoever authenticated and routed the request. A policy grouped by one of these does
  // not apply to a request that lacks it.
  api_key,
  team,
  member,
  model,
  model_name,
  provider,
  route,
  // Properties of the request itself. Requests that lack one share the bucket of its absence.
  client_ip,
  method,
  path,
  host,
};
inline constexpr std::size_t kDimensions = 11;

[[nodiscard]] std::string_view to_string(Dimension dimension) noexcept;
[[nodiscard]] std::optional<Dimension> parse_dimension(std::string_view name) noexcept;

// The attributes of one request. Holds views: names and values must outlive the call that the
// attributes are given to, not longer. An empty value is a value, unlike an absent one.
// Thread rule: none; a value of one thread.
class Attributes {
 public:
  Attributes() = default;

  // Sets or replaces. Names are exact; see Dimension for those with a meaning of their own.
  Attributes& set(Dimension dimension, std::string_view value) noexcept {
    known_[static_cast<std::size_t>(dimension)] = value;
    present_ |= 1U << static_cast<unsigned>(dimension);
    return *this;
  }
  Attributes& set(std::string_view name, std::string_view value);

  [[nodiscard]] std::optional<std::string_view> get(Dimension dimension) const noexcept {
    if ((present_ & (1U << static_cast<unsigned>(dimension))) == 0) return std::nullopt;
    return known_[static_cast<std::size_t>(dimension)];
  }
  [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const noexcept;

  // As get(name), for a name that is known to be no Dimension.
  [[nodiscard]] std::optional<std::string_view> get_other(std::string_view name) const noexcept;

 private:
  std::array<std::string_view, kDimensions> known_{};
  std::uint32_t present_ = 0;
  std::vector<std::pair<std::string_view, std::string_view>> others_;
};

}  // namespace stint
