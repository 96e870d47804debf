// A limit: one number to keep within. Values only; how they are enforced is in the library.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stint/error.h"
#include "stint/time.h"

namespace stint {

// What a limit counts.
enum class Unit : std::uint8_t { requests, tokens, input_tokens, output_tokens, concurrency };

// How a limit counts.
enum class Algorithm : std::uint8_t {
  // At most `quota` per window aligned to the wall clock (a day starts at midnight UTC).
  fixed_window,
  // Two aligned windows; the previous one is weighted by the part of it that a window ending now
  // still covers, rounded up. The weighted count never exceeds `quota`.
  sliding_window,
  // Exact: at most `quota` in any span of one window. Requests only, quota at most 10,000.
  sliding_log,
  // Starts full with `burst` (default: `quota`), refilled at `quota` per window; may owe.
  token_bucket,
  // Requests in flight. The only algorithm of Unit::concurrency, and of no other unit.
  concurrency,
};

// The largest quota, burst and cost: 2^53 - 1, the largest integer that every store can count to.
inline constexpr std::int64_t kMaxQuantity = (std::int64_t{1} << 53) - 1;
// The bounds of a window. A window is a whole number of microseconds.
inline constexpr Duration kMinWindow = std::chrono::milliseconds{1};
inline constexpr Duration kMaxWindow = std::chrono::days{366};
// The largest quota of a sliding log, which keeps one entry for each admitted request.
inline constexpr std::int64_t kMaxSlidingLogQuota = 10'000;

// One limit. A plain value: nothing is checked until a policy that holds it is built, or
// `validate` is called.
struct Limit {
  Unit unit = Unit::requests;
  // Units per window; concurrency: leases at one time. 0 refuses everything (`never_fits`).
  // 0 to kMaxQuantity.
  std::int64_t quota = 0;
  // kMinWindow to kMaxWindow; zero for concurrency, which has none.
  Duration window{0};
  Algorithm algorithm = Algorithm::fixed_window;
  // Token bucket only: its capacity. Absent: `quota`. 0 refuses everything.
  std::optional<std::int64_t> burst{};

  // What the limit can hold at most: the burst of a token bucket, else the quota.
  [[nodiscard]] constexpr std::int64_t capacity() const noexcept {
    return algorithm == Algorithm::token_bucket ? burst.value_or(quota) : quota;
  }

  friend bool operator==(const Limit&, const Limit&) = default;
};

// Shorthands. Windowed limits default to fixed windows.
[[nodiscard]] Limit requests_per(Duration window, std::int64_t quota,
                                 Algorithm algorithm = Algorithm::fixed_window);
[[nodiscard]] Limit tokens_per(Duration window, std::int64_t quota,
                               Algorithm algorithm = Algorithm::fixed_window);
[[nodiscard]] Limit in_flight(std::int64_t quota);

// The short form of a configuration: requests and tokens per second, minute, hour and day.
struct ShortLimits {
  std::optional<std::int64_t> rps{};
  std::optional<std::int64_t> rpm{};
  std::optional<std::int64_t> rph{};
  std::optional<std::int64_t> rpd{};
  std::optional<std::int64_t> tps{};
  std::optional<std::int64_t> tpm{};
  std::optional<std::int64_t> tph{};
  std::optional<std::int64_t> tpd{};
  std::optional<std::int64_t> concurrency{};
};

// One entry of the list form of a configuration, as text and numbers before they are checked:
// {unit, quota, per, algorithm, burst}, or {unit, capacity, refill_rate} for a token bucket.
struct LimitEntry {
  std::string unit{};                      // "requests", "tokens", ...; required
  std::optional<std::int64_t> quota{};     // required unless capacity and refill_rate are given
  std::string per{};                       // a duration such as "10s", "5m", "1h", "1d"
  std::string algorithm{};                 // empty: fixed_window; concurrency for that unit
  std::optional<std::int64_t> burst{};     // token_bucket with quota and per
  std::optional<std::int64_t> capacity{};  // token_bucket: same as burst, with refill_rate
  std::string refill_rate{};               // units per second, a decimal such as "0.5" or "20"
};

// Whether the limit can be enforced exactly (to within 1 % of its rate; see docs/algorithms.md).
// The error's field is relative to the limit: "quota", "window", "burst", "algorithm".
[[nodiscard]] Result<void> validate(const Limit& limit);

// As `validate`, for the limits of one policy: each must be valid, and no two may share unit,
// window and algorithm, which name a limit inside its bucket. Field: "limits[3].quota".
[[nodiscard]] Result<void> validate(std::span<const Limit> limits);

// The limits of the short form, in the order of its fields. Empty fields give no limit.
[[nodiscard]] Result<std::vector<Limit>> expand(const ShortLimits& limits);

// The limit of one entry of the list form; validated.
[[nodiscard]] Result<Limit> parse(const LimitEntry& entry);

// "250ms", "10s", "5m", "1h", "1d": one whole number and one unit; more than zero.
[[nodiscard]] Result<Duration> parse_duration(std::string_view text);
[[nodiscard]] Result<Unit> parse_unit(std::string_view text);
[[nodiscard]] Result<Algorithm> parse_algorithm(std::string_view text);
[[nodiscard]] std::string_view to_string(Unit unit) noexcept;
[[nodiscard]] std::string_view to_string(Algorithm algorithm) noexcept;

}  // namespace stint
