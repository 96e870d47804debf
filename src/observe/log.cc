#include "observe/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>

#include "base/utf8.h"

namespace stint::observe {
namespace {

constexpr std::array<std::pair<std::string_view, LogLevel>, 6> kLevels{{
    {"trace", LogLevel::trace},
    {"debug", LogLevel::debug},
    {"info", LogLevel::info},
    {"warn", LogLevel::warn},
    {"error", LogLevel::error},
    {"off", LogLevel::off},
}};

std::string_view name_of(LogLevel level) { return kLevels[static_cast<std::size_t>(level)].first; }

// C0, DEL and C1: what could end a line or steer a terminal.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

void append_code(std::string& out, unsigned code) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += "\\u00";
  out += kHex[code >> 4];
  out += kHex[code & 0xF];
}

// As inside a JSON string; without `quotes` only what could forge a line is escaped.
void append_escaped(std::string& out, std::string_view text, bool quotes) {
  while (!text.empty()) {
    const std::size_t length = base::utf8_character(text);
    const std::string_view character = text.substr(0, length);
    if (length == 0) {
      out += base::kReplacement;
    } else if (character == "\n") {
      out += "\\n";
    } else if (is_control(character)) {
      append_code(out, static_cast<unsigned char>(character.back()));
    } else {
      if (quotes && (character == "\"" || character == "\\")) out += '\\';
      out += character;
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  append_escaped(out, text, true);
  out += '"';
}

bool needs_quotes(std::string_view text) {
  for (const char c : text) {
    const bool plain = c > ' ' && c < '\x7F' && c != '"' && c != '=' && c != '\\';
    if (!plain) return true;
  }
  return text.empty();
}

void append_number(std::string& out, double number, LogFormat format) {
  if (!std::isfinite(number) && format == LogFormat::json) {
    out += "null";
    return;
  }
  std::array<char, 32> text;
  out.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr);
}

void append_value(std::string& out, const LogField& field, LogFormat format) {
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>) {
          out += value ? "true" : "false";
        } else if constexpr (std::is_same_v<T, double>) {
          append_number(out, value, format);
        } else if constexpr (std::is_same_v<T, std::int64_t>) {
          out += std::to_string(value);
        } else if (format == LogFormat::json || needs_quotes(value)) {
          append_quoted(out, value);
        } else {
          out += value;
        }
      },
      field.value);
}

void append_field(std::string& out, const LogField& field, LogFormat format) {
  if (format == LogFormat::json) {
    out += ",\"";
    out += field.name;
    out += "\":";
  } else {
    out += ' ';
    out += field.name;
    out += '=';
  }
  append_value(out, field, format);
}

// What follows the time in a line.
std::string line_start(LogLevel level, std::string_view message, const LogOptions& options) {
  std::string out;
  if (options.format == LogFormat::json) {
    out += '"';
    out += name_of(level);
    out += '"';
    if (!options.service_name.empty()) {
      append_field(out, {"service", std::string_view(options.service_name)}, options.format);
    }
    append_field(out, {"message", message}, options.format);
    return out;
  }
  out += name_of(level);
  out.append(6 - out.size(), ' ');
  append_escaped(out, message, false);
  return out;
}

std::int64_t signed_count(std::uint64_t count) { return static_cast<std::int64_t>(count); }

}  // namespace

std::optional<LogLevel> parse_log_level(std::string_view text) noexcept {
  for (const auto& [name, level] : kLevels) {
    if (name == text) return level;
  }
  return std::nullopt;
}

struct Log::Impl {
  Impl(LogOptions given, std::shared_ptr<spdlog::sinks::sink> sink)
      : options(std::move(given)), level(options.level), logger("stint", std::move(sink)) {
    // spdlog reads the clock, orders threads and writes; the text of a line is ours.
    const std::string time = "%Y-%m-%dT%H:%M:%S.%eZ";
    const std::string pattern = options.format == LogFormat::json
                                    ? R"({"time":")" + time + R"(","level":%v})"
                                    : time + " %v";
    logger.set_formatter(
        std::make_unique<spdlog::pattern_formatter>(pattern, spdlog::pattern_time_type::utc, "\n"));
    logger.set_level(spdlog::level::trace);  // ours decides
    logger.flush_on(spdlog::level::trace);
  }

  void put(const std::string& line) {
    logger.log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
  }

  const LogOptions options;
  std::atomic<LogLevel> level;
  spdlog::logger logger;
};

Log::Log(LogOptions options)
    : Log(std::move(options), std::make_shared<spdlog::sinks::stderr_sink_mt>()) {}

Log::Log(LogOptions options, std::shared_ptr<spdlog::sinks::sink> sink)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(sink))) {}

Log::~Log() = default;

void Log::write(LogLevel level, std::string_view message,
                std::initializer_list<LogField> fields) const {
  if (!enabled(level)) return;
  std::string line = line_start(level, message, impl_->options);
  for (const LogField& field : fields) append_field(line, field, impl_->options.format);
  impl_->put(line);
}

void Log::debug(std::string_view message, std::initializer_list<LogField> fields) const {
  write(LogLevel::debug, message, fields);
}

void Log::info(std::string_view message, std::initializer_list<LogField> fields) const {
  write(LogLevel::info, message, fields);
}

void Log::warn(std::string_view message, std::initializer_list<LogField> fields) const {
  write(LogLevel::warn, message, fields);
}

void Log::error(std::string_view message, std::initializer_list<LogField> fields) const {
  write(LogLevel::error, message, fields);
}

void Log::access(const AccessRecord& record) const {
  if (!access_log()) return;
  const LogFormat format = impl_->options.format;
  std::string line = line_start(LogLevel::info, "request", impl_->options);
  const auto add = [&](std::string_view name, auto value) {
    append_field(line, {name, value}, format);
  };
  const auto add_text = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) add(name, value);
  };
  add_text("method", record.method);
  add_text("route", record.route);
  add_text("path", record.path.substr(0, kLoggedPathBytes));
  add("status", std::int64_t{record.status});
  add("duration_ms", static_cast<double>(record.duration.count()) / 1'000);
  add("bytes_in", signed_count(record.bytes_in));
  add("bytes_out", signed_count(record.bytes_out));
  if (record.input_tokens > 0 || record.output_tokens > 0) {
    add("input_tokens", record.input_tokens);
    add("output_tokens", record.output_tokens);
    if (record.estimated) add("estimated", true);
  }
  add_text("refused_by", record.refused_by);
  add_text("client", record.client);
  add_text("api_key", record.api_key);
  add_text("model", record.model);
  add_text("request_id", record.request_id);
  impl_->put(line);
}

bool Log::access_log() const noexcept {
  return impl_->options.access_log && impl_->level.load(std::memory_order_relaxed) != LogLevel::off;
}

void Log::set_level(LogLevel level) noexcept {
  impl_->level.store(level, std::memory_order_relaxed);
}

bool Log::enabled(LogLevel level) const noexcept {
  return level != LogLevel::off && level >= impl_->level.load(std::memory_order_relaxed);
}

std::optional<std::uint64_t> OncePer::admit(Duration now) noexcept {
  Duration::rep next = next_.load(std::memory_order_relaxed);
  // Of threads that come at once one wins; the others are kept back.
  if (now.count() < next ||
      !next_.compare_exchange_strong(next, (now + interval_).count(), std::memory_order_relaxed)) {
    held_.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
  }
  return held_.exchange(0, std::memory_order_relaxed);
}

}  // namespace stint::observe
