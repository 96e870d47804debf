#include "admin/json.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "base/utf8.h"

namespace stint::admin {

json::string text(std::string_view value) {
  json::string out;
  while (!value.empty()) {
    const std::size_t length = base::utf8_character(value);
    const std::string_view piece = length == 0 ? base::kReplacement : value.substr(0, length);
    out.append(piece.begin(), piece.end());
    value.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

json::array texts(std::span<const std::string> values) {
  json::array out;
  for (const std::string& value : values) out.emplace_back(text(value));
  return out;
}

json::value text_or_null(std::string_view value) {
  return value.empty() ? json::value() : json::value(text(value));
}

json::value seconds(Duration span) {
  constexpr std::int64_t kSecond = 1'000'000;
  if (span.count() == 0) return nullptr;
  if (span.count() % kSecond == 0) return span.count() / kSecond;
  return static_cast<double>(span.count()) / static_cast<double>(kSecond);
}

std::int64_t milliseconds_up(Duration span) {
  return std::chrono::ceil<std::chrono::milliseconds>(span).count();
}

std::string rfc3339(TimePoint at) {
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(std::chrono::floor<std::chrono::seconds>(at - day));
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%04d-%02u-%02uT%02d:%02d:%02dZ", int{date.year()},
                unsigned{date.month()}, unsigned{date.day()},
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()));
  return out.data();
}

json::object limit(const Limit& limit) {
  json::object out;
  out["unit"] = text(to_string(limit.unit));
  out["algorithm"] = text(to_string(limit.algorithm));
  out["quota"] = limit.quota;
  out["window_secs"] = seconds(limit.window);
  if (limit.algorithm == Algorithm::token_bucket) out["burst"] = limit.capacity();
  return out;
}

json::array limits(std::span<const Limit> limits) {
  json::array out;
  for (const Limit& one : limits) out.push_back(limit(one));
  return out;
}

json::array faults(std::span<const config::Fault> faults) {
  json::array out;
  for (const config::Fault& fault : faults) {
    json::object one;
    one["file"] = text_or_null(fault.file);
    one["line"] = fault.line > 0 ? json::value(fault.line) : json::value();
    one["column"] = fault.line > 0 ? json::value(fault.column) : json::value();
    one["key"] = text_or_null(fault.key);
    one["message"] = text(fault.message);
    out.push_back(std::move(one));
  }
  return out;
}

json::array unreached(std::span<const Unreached> places) {
  json::array out;
  for (const Unreached& place : places) {
    json::object one;
    one["shard"] = text(place.where);
    one["why"] = text(place.why);
    out.push_back(std::move(one));
  }
  return out;
}

json::object error(std::string_view code, std::string_view message) {
  json::object inner;
  inner["code"] = text(code);
  inner["message"] = text(message);
  json::object out;
  out["error"] = std::move(inner);
  return out;
}

}  // namespace stint::admin
