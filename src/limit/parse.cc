// The text forms of limits: names, durations, the short form and the list form.
#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <utility>

#include "stint/limit.h"

namespace stint {
namespace {

constexpr std::array<std::string_view, 5> kUnits{"requests", "tokens", "input_tokens",
                                                 "output_tokens", "concurrency"};
constexpr std::array<std::string_view, 5> kAlgorithms{"fixed_window", "sliding_window",
                                                      "sliding_log", "token_bucket", "concurrency"};

constexpr Duration kSecond = std::chrono::seconds{1};
constexpr Duration kMinute = std::chrono::minutes{1};
constexpr Duration kHour = std::chrono::hours{1};
constexpr Duration kDay = std::chrono::days{1};

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

// All of `text` as a decimal number without sign; nothing if it is none or too large.
std::optional<std::int64_t> parse_digits(std::string_view text) {
  std::int64_t value = 0;
  if (text.empty() || text[0] == '-' || text[0] == '+') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Refill {
  std::int64_t quota = 0;
  Duration window{0};
};

// "0.25" per second is 25 per 100 s: a whole quota over a window of 10^digits seconds.
Result<Refill> parse_refill_rate(std::string_view text) {
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  std::string_view fraction = point == std::string_view::npos ? "" : text.substr(point + 1);
  const bool dangling = point != std::string_view::npos && fraction.empty();
  while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
  const auto digits = parse_digits(std::string(whole) + std::string(fraction));
  const bool signs = text.find_first_not_of("0123456789.") != std::string_view::npos;
  if (whole.empty() || dangling || signs || !digits || (whole.size() > 1 && whole[0] == '0')) {
    return invalid("refill_rate", quoted(text) + " is no decimal number of units per second");
  }
  if (fraction.size() > 6) {
    return invalid("refill_rate", "has more than 6 decimals; give quota and per instead");
  }
  Refill refill{*digits, kSecond};
  for (std::size_t i = 0; i < fraction.size(); ++i) refill.window *= 10;
  return refill;
}

Result<Limit> token_bucket_by_rate(const LimitEntry& entry, Unit unit) {
  if (!entry.capacity) return invalid("capacity", "is needed beside refill_rate");
  if (entry.refill_rate.empty()) return invalid("refill_rate", "is needed beside capacity");
  if (entry.quota) return invalid("quota", "goes with per, not with capacity and refill_rate");
  if (!entry.per.empty()) return invalid("per", "goes with quota, not with refill_rate");
  if (entry.burst) return invalid("burst", "is called capacity beside refill_rate");
  auto refill = parse_refill_rate(entry.refill_rate);
  if (!refill) return std::unexpected(std::move(refill.error()));
  return Limit{.unit = unit,
               .quota = refill->quota,
               .window = refill->window,
               .algorithm = Algorithm::token_bucket,
               .burst = entry.capacity};
}

Result<Limit> limit_by_quota(const LimitEntry& entry, Unit unit, Algorithm algorithm) {
  if (!entry.quota) return invalid("quota", "is missing");
  Limit limit{.unit = unit, .quota = *entry.quota, .algorithm = algorithm, .burst = entry.burst};
  if (unit == Unit::concurrency) {
    if (!entry.per.empty()) return invalid("per", "a concurrency limit has no window");
    return limit;
  }
  if (entry.per.empty()) return invalid("per", "is missing");
  auto window = parse_duration(entry.per);
  if (!window) {
    window.error().field = "per";
    return std::unexpected(std::move(window.error()));
  }
  limit.window = *window;
  return limit;
}

}  // namespace

std::string_view to_string(Unit unit) noexcept {
  const auto index = static_cast<std::size_t>(unit);
  return index < kUnits.size() ? kUnits[index] : "unknown";
}

std::string_view to_string(Algorithm algorithm) noexcept {
  const auto index = static_cast<std::size_t>(algorithm);
  return index < kAlgorithms.size() ? kAlgorithms[index] : "unknown";
}

Result<Unit> parse_unit(std::string_view text) {
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    if (kUnits[i] == text) return static_cast<Unit>(i);
  }
  return invalid("unit", quoted(text) +
                             " is none of requests, tokens, input_tokens, output_tokens, "
                             "concurrency");
}

Result<Algorithm> parse_algorithm(std::string_view text) {
  for (std::size_t i = 0; i < kAlgorithms.size(); ++i) {
    if (kAlgorithms[i] == text) return static_cast<Algorithm>(i);
  }
  return invalid("algorithm", quoted(text) +
                                  " is none of fixed_window, sliding_window, sliding_log, "
                                  "token_bucket, concurrency");
}

Result<Duration> parse_duration(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Duration>, 5> kSuffixes{
      {{"ms", std::chrono::milliseconds{1}},
       {"s", kSecond},
       {"m", kMinute},
       {"h", kHour},
       {"d", kDay}}};
  for (const auto& [suffix, one] : kSuffixes) {
    if (!text.ends_with(suffix)) continue;
    const std::string_view digits = text.substr(0, text.size() - suffix.size());
    const auto count = parse_digits(digits);
    if (!count || digits[0] == '0') continue;
    if (*count > std::numeric_limits<std::int64_t>::max() / one.count()) {
      return invalid("", quoted(text) + " is too long");
    }
    return *count * one;
  }
  return invalid("", quoted(text) + " is no duration such as 250ms, 10s, 5m, 1h or 1d");
}

Limit requests_per(Duration window, std::int64_t quota, Algorithm algorithm) {
  return {.unit = Unit::requests,
          .quota = quota,
          .window = window,
          .algorithm = algorithm,
          .burst = std::nullopt};
}

Limit tokens_per(Duration window, std::int64_t quota, Algorithm algorithm) {
  return {.unit = Unit::tokens,
          .quota = quota,
          .window = window,
          .algorithm = algorithm,
          .burst = std::nullopt};
}

Limit in_flight(std::int64_t quota) {
  return {.unit = Unit::concurrency,
          .quota = quota,
          .window = Duration::zero(),
          .algorithm = Algorithm::concurrency,
          .burst = std::nullopt};
}

Result<std::vector<Limit>> expand(const ShortLimits& limits) {
  struct Field {
    const char* name;
    std::optional<std::int64_t> quota;
    Limit limit;
  };
  const std::array<Field, 9> fields{{{"rps", limits.rps, requests_per(kSecond, 0)},
                                     {"rpm", limits.rpm, requests_per(kMinute, 0)},
                                     {"rph", limits.rph, requests_per(kHour, 0)},
                                     {"rpd", limits.rpd, requests_per(kDay, 0)},
                                     {"tps", limits.tps, tokens_per(kSecond, 0)},
                                     {"tpm", limits.tpm, tokens_per(kMinute, 0)},
                                     {"tph", limits.tph, tokens_per(kHour, 0)},
                                     {"tpd", limits.tpd, tokens_per(kDay, 0)},
                                     {"concurrency", limits.concurrency, in_flight(0)}}};
  std::vector<Limit> result;
  for (const Field& field : fields) {
    if (!field.quota) continue;
    Limit limit = field.limit;
    limit.quota = *field.quota;
    if (auto ok = validate(limit); !ok) {
      ok.error().field = field.name;
      return std::unexpected(std::move(ok.error()));
    }
    result.push_back(limit);
  }
  return result;
}

Result<Limit> parse(const LimitEntry& entry) {
  auto unit = parse_unit(entry.unit);
  if (!unit) return std::unexpected(std::move(unit.error()));
  const bool by_rate = entry.capacity.has_value() || !entry.refill_rate.empty();
  Result<Algorithm> algorithm = *unit == Unit::concurrency ? Algorithm::concurrency
                                : by_rate                  ? Algorithm::token_bucket
                                                           : Algorithm::fixed_window;
  if (!entry.algorithm.empty()) algorithm = parse_algorithm(entry.algorithm);
  if (!algorithm) return std::unexpected(std::move(algorithm.error()));
  if (by_rate && *algorithm != Algorithm::token_bucket) {
    return invalid("algorithm", "capacity and refill_rate belong to a token_bucket");
  }
  auto limit =
      by_rate ? token_bucket_by_rate(entry, *unit) : limit_by_quota(entry, *unit, *algorithm);
  if (!limit) return limit;
  if (auto ok = validate(*limit); !ok) {
    std::string& field = ok.error().field;
    if (field == "window") field = by_rate ? "refill_rate" : "per";
    if (by_rate && field == "quota") field = "refill_rate";
    if (by_rate && field == "burst") field = "capacity";
    return std::unexpected(std::move(ok.error()));
  }
  return limit;
}

}  // namespace stint
