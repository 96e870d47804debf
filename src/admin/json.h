// The forms that answers of the admin API share.
#pragma once

#include <boost/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/fault.h"
#include "stint/bucket_info.h"
#include "stint/limit.h"
#include "stint/time.h"

namespace stint::admin {

namespace json = boost::json;

// Bytes that are not UTF-8 are replaced: an answer is always valid.
[[nodiscard]] json::string text(std::string_view value);
[[nodiscard]] json::array texts(std::span<const std::string> values);
// Null where it is empty.
[[nodiscard]] json::value text_or_null(std::string_view value);

// Whole seconds as an integer, others as a decimal; null for none.
[[nodiscard]] json::value seconds(Duration span);
[[nodiscard]] std::int64_t milliseconds_up(Duration span);
// "2026-01-02T03:04:05Z"
[[nodiscard]] std::string rfc3339(TimePoint at);

[[nodiscard]] json::object limit(const Limit& limit);
[[nodiscard]] json::array limits(std::span<const Limit> limits);
[[nodiscard]] json::array faults(std::span<const config::Fault> faults);
[[nodiscard]] json::array unreached(std::span<const Unreached> places);
// {"error":{"code":"...","message":"..."}}
[[nodiscard]] json::object error(std::string_view code, std::string_view message);

}  // namespace stint::admin
