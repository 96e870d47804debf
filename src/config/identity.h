// What tells resources apart: ids and hashes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/resources.h"

namespace stint::config {

// The id of a row that has none of its own: UUID version 5 (RFC 9562, section 5.5) of
// "<collection>/<name>" in the name space of URLs.
[[nodiscard]] std::string derived_id(std::string_view collection, std::string_view name);

// What is wrong with an explicit id; nothing if it is good.
[[nodiscard]] std::optional<std::string> check_id(std::string_view id);

// 64 hexadecimal digits.
[[nodiscard]] std::optional<KeyHash> parse_key_hash(std::string_view hex);

}  // namespace stint::config
