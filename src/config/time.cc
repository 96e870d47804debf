// Points in time as text.
#include <chrono>
#include <cstddef>

#include "config/rows.h"

namespace stint::config {
namespace {

// Takes `digits` digits off the front.
std::optional<int> take(std::string_view& text, std::size_t digits) {
  int value = 0;
  if (text.size() < digits) return std::nullopt;
  const char* end = text.data() + digits;
  for (const char* c = text.data(); c != end; ++c) {
    if (*c < '0' || *c > '9') return std::nullopt;
    value = value * 10 + (*c - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool skip(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// "12:34".
std::optional<std::chrono::minutes> take_hour_and_minute(std::string_view& text) {
  const auto hour = take(text, 2);
  if (!hour || *hour > 23 || !skip(text, ":")) return std::nullopt;
  const auto minute = take(text, 2);
  if (!minute || *minute > 59) return std::nullopt;
  return std::chrono::hours(*hour) + std::chrono::minutes(*minute);
}

}  // namespace

std::optional<TimePoint> parse_time(std::string_view text) {
  const auto year = take(text, 4);
  if (!year || !skip(text, "-")) return std::nullopt;
  const auto month = take(text, 2);
  if (!month || !skip(text, "-")) return std::nullopt;
  const auto day = take(text, 2);
  if (!day || !skip(text, "Tt")) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;

  const auto minutes = take_hour_and_minute(text);
  if (!minutes || !skip(text, ":")) return std::nullopt;
  const auto second = take(text, 2);  // 60 in a leap second: the first of the next minute
  if (!second || *second > 60) return std::nullopt;
  Duration fraction{0};
  if (skip(text, ".")) {
    Duration unit = std::chrono::milliseconds{100};
    std::size_t digits = 0;
    while (const auto digit = take(text, 1)) {
      fraction += *digit * unit;
      unit /= 10;
      ++digits;
    }
    if (digits == 0) return std::nullopt;
  }

  std::chrono::minutes offset{0};
  if (!skip(text, "Zz")) {
    const bool west = text.starts_with('-');
    if (!skip(text, "+-")) return std::nullopt;
    const auto distance = take_hour_and_minute(text);
    if (!distance) return std::nullopt;
    offset = west ? -*distance : *distance;
  }
  if (!text.empty()) return std::nullopt;
  return std::chrono::sys_days(date) + *minutes + std::chrono::seconds(*second) + fraction - offset;
}

}  // namespace stint::config
