#include "http/answer_head.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

#include "http/syntax.h"

namespace stint::http {
namespace {

// Bytes of the lines that are the server's own, about.
constexpr std::size_t kOwnLines = 160;

bool is_the_servers(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 4> kNames = {"Connection", "Content-Length", "Keep-Alive",
                                                      "Transfer-Encoding"};
  return std::ranges::any_of(kNames, [name](std::string_view own) { return iequal(name, own); });
}

void append_number(std::string& out, std::uint64_t number) {
  std::array<char, 20> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  out.append(digits.data(), end);
}

void append_two(std::string& out, unsigned number) {
  out += static_cast<char>('0' + number / 10 % 10);
  out += static_cast<char>('0' + number % 10);
}

}  // namespace

void append_head(std::string& out, const ResponseHead& head, const AnswerFraming& framing,
                 std::string_view date) {
  std::size_t bytes = kOwnLines + head.lines.size();
  for (const Field& field : head.fields.all()) bytes += field.name.size() + field.value.size() + 4;
  out.reserve(out.size() + bytes);
  out += "HTTP/1.1 ";
  append_number(out, static_cast<unsigned>(head.status));
  out += ' ';
  const bool own_reason = !head.reason.empty() && is_field_value(head.reason);
  out += own_reason ? std::string_view(head.reason) : reason_phrase(head.status);
  out += "\r\n";
  bool dated = false;
  for (const Field& field : head.fields.all()) {
    if (is_the_servers(field.name) || !is_token(field.name) || !is_field_value(field.value)) {
      continue;
    }
    dated = dated || iequal(field.name, "Date");
    out.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  out += head.lines;
  if (!dated) out.append("Date: ").append(date).append("\r\n");
  if (framing.chunked) out += "Transfer-Encoding: chunked\r\n";
  if (framing.length) {
    out += "Content-Length: ";
    append_number(out, *framing.length);
    out += "\r\n";
  }
  if (!framing.connection.empty()) {
    out.append("Connection: ").append(framing.connection).append("\r\n");
  }
  out += "\r\n";
}

std::string http_date(TimePoint time) {
  constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed",
                                                     "Thu", "Fri", "Sat"};
  constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto days = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(days);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - days));
  std::string out;
  out.reserve(29);
  out.append(kDays[std::chrono::weekday(days).c_encoding()]).append(", ");
  append_two(out, static_cast<unsigned>(date.day()));
  out.append(" ").append(kMonths[static_cast<unsigned>(date.month()) - 1]).append(" ");
  const auto year = static_cast<unsigned>(static_cast<int>(date.year()));
  append_two(out, year / 100);
  append_two(out, year % 100);
  out += ' ';
  append_two(out, static_cast<unsigned>(clock.hours().count()));
  out += ':';
  append_two(out, static_cast<unsigned>(clock.minutes().count()));
  out += ':';
  append_two(out, static_cast<unsigned>(clock.seconds().count()));
  out += " GMT";
  return out;
}

std::string error_body(const Refusal& refusal) {
  const std::string_view type = refusal.status == 500 ? "api_error" : "invalid_request_error";
  std::string out = R"({"error":{"message":")";
  out.append(refusal.message).append(R"(","type":")").append(type);
  out.append(R"(","code":")").append(refusal.code).append(R"("}})");
  return out;
}

}  // namespace stint::http
