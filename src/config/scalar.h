// Types read from texts, strictly: what one reader of YAML takes for a number and another for a
// text is refused with a word on how to write it.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "config/node.h"
#include "stint/time.h"

namespace stint::config {

template <class T>
using Scalar = std::expected<T, std::string>;  // or what is wrong with it

[[nodiscard]] Scalar<std::string> read_text(const Node& node);
// "0", "42", "-1".
[[nodiscard]] Scalar<std::int64_t> read_integer(const Node& node);
// "0.5", "20", as it is written.
[[nodiscard]] Scalar<std::string> read_decimal(const Node& node);
// "true", "false".
[[nodiscard]] Scalar<bool> read_boolean(const Node& node);
// "250ms", "10s", "5m", "1h", "1d".
[[nodiscard]] Scalar<Duration> read_duration(const Node& node);

// The value in quotes, cut where it is long, for messages.
[[nodiscard]] std::string quoted(std::string_view value);

}  // namespace stint::config
