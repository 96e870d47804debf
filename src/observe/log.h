// Log lines: what happened, for people or machines, and one line per request.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "stint/time.h"

namespace spdlog::sinks {
class sink;  // NOLINT(readability-identifier-naming)
}

namespace stint::observe {

enum class LogLevel : std::uint8_t { trace, debug, info, warn, error, off };
[[nodiscard]] std::optional<LogLevel> parse_log_level(std::string_view text) noexcept;

enum class LogFormat : std::uint8_t {
  text,  // 2026-01-02T03:04:05.678Z info  message key=value key="a value"
  json,  // {"time":"2026-01-02T03:04:05.678Z","level":"info","message":"...","key":"value"}
};

// Something that belongs to a line; its name is ours, its value may be anybody's.
struct LogField {
  std::string_view name;
  std::variant<std::string_view, std::int64_t, double, bool> value;
};

inline constexpr std::size_t kLoggedPathBytes = 256;

// One request that was answered. Of one that was refused before it could be read only status,
// client and duration are known.
struct AccessRecord {
  std::string_view method{};
  std::string_view route{};  // as configured: an endpoint or the name of a route
  std::string_view path{};   // without query; only its first kLoggedPathBytes are written
  int status = 0;
  Duration duration{0};
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  bool estimated = false;         // the tokens are
  std::string_view refused_by{};  // the policy that refused; empty: none
  std::string_view request_id{};
  std::string_view client{};   // address
  std::string_view api_key{};  // its id, never the key; empty: none
  std::string_view model{};    // as configured; empty: none
};

struct LogOptions {
  LogLevel level = LogLevel::info;
  LogFormat format = LogFormat::text;
  bool access_log = true;      // false: `access` writes nothing
  std::string service_name{};  // a field of each JSON line; empty: none
};

// Writes each line at once (nothing is queued), to the standard error output or to a sink.
// Text from requests cannot forge lines: control characters are escaped in both formats, and
// what is not UTF-8 is replaced.
// Thread rule: any thread.
class Log {
 public:
  explicit Log(LogOptions options);  // to the standard error output
  Log(LogOptions options, std::shared_ptr<spdlog::sinks::sink> sink);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void write(LogLevel level, std::string_view message,
             std::initializer_list<LogField> fields = {}) const;
  void debug(std::string_view message, std::initializer_list<LogField> fields = {}) const;
  void info(std::string_view message, std::initializer_list<LogField> fields = {}) const;
  void warn(std::string_view message, std::initializer_list<LogField> fields = {}) const;
  void error(std::string_view message, std::initializer_list<LogField> fields = {}) const;

  // Whatever the level is (but off), unless access_log is off.
  void access(const AccessRecord& record) const;
  [[nodiscard]] bool access_log() const noexcept;

  void set_level(LogLevel level) noexcept;  // at any time, such as on a reload
  [[nodiscard]] bool enabled(LogLevel level) const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Lets one line through per interval, and counts the others: one object for each kind of line.
// Thread rule: any thread.
class OncePer {
 public:
  explicit OncePer(Duration interval) noexcept : interval_(interval) {}

  // `now`: of a steady clock. Absent: keep still. Otherwise write; the value is how many were
  // kept back since the last line.
  [[nodiscard]] std::optional<std::uint64_t> admit(Duration now) noexcept;

 private:
  const Duration interval_;
  std::atomic<Duration::rep> next_{INT64_MIN};  // admitted from then on
  std::atomic<std::uint64_t> held_{0};
};

}  // namespace stint::observe
