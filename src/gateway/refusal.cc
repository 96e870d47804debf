#include "gateway/refusal.h"

#include <array>
#include <boost/json.hpp>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/saturating.h"
#include "base/utf8.h"

namespace stint::gateway {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxShown = 128;

// Text of others inside a message: one line, valid UTF-8, not long.
std::string shown(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = base::utf8_character(text);
    if (out.size() + length > kMaxShown) return out + "...";
    const bool printable = length > 1 || (length == 1 && text[0] >= ' ' && text[0] != '\x7F');
    if (printable) {
      out += text.substr(0, length);
    } else {
      out += '?';
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

// As `shown`, for text that is a value of its own and is given in full.
std::string clean(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = base::utf8_character(text);
    out += length == 0 ? base::kReplacement : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

// What an error says, in the words of either API.
struct Said {
  int status = 500;
  std::string_view openai_type{};
  std::string_view anthropic_type{};
  std::string_view code{};
  std::string message{};
  std::string param{};  // OpenAI's; empty: null
  json::object more{};  // members beside them
};

std::string body_of(Said said, HeaderStyle style) {
  json::object error;
  if (style == HeaderStyle::anthropic) {
    error["type"] = json::string_view(said.anthropic_type.data(), said.anthropic_type.size());
    error["message"] = said.message;
  } else {
    error["message"] = said.message;
    error["type"] = json::string_view(said.openai_type.data(), said.openai_type.size());
    if (said.more.empty()) {
      error["param"] = said.param.empty() ? json::value() : json::value(said.param);
    }
  }
  error["code"] = json::string_view(said.code.data(), said.code.size());
  for (auto& [name, value] : said.more) error[name] = std::move(value);

  json::object body;
  if (style == HeaderStyle::anthropic) body["type"] = "error";
  body["error"] = std::move(error);
  return json::serialize(body);
}

OwnAnswer answer(Said said, HeaderStyle style) {
  OwnAnswer out;
  out.head.status = said.status;
  out.head.reason = http::reason_phrase(said.status);
  out.head.fields.add("Content-Type", "application/json");
  out.body = body_of(std::move(said), style);
  return out;
}

// --- refusals

std::int64_t milliseconds_up(Duration wait) { return base::div_ceil(wait.count(), 1'000); }

// "12 ms", "1.5 s": as exact as retry-after-ms.
std::string wait_text(Duration wait) {
  const std::int64_t ms = milliseconds_up(wait);
  if (ms < 1'000) return std::to_string(ms) + " ms";
  std::string text = std::to_string(ms / 1'000);
  if (std::int64_t rest = ms % 1'000; rest != 0) {
    std::string digits = std::to_string(1'000 + rest).substr(1);
    while (digits.ends_with('0')) digits.pop_back();
    text += '.' + digits;
  }
  return text + " s";
}

json::value window_secs(Duration window) {
  constexpr std::int64_t kSecond = 1'000'000;
  if (window.count() == 0) return nullptr;
  if (window.count() % kSecond == 0) return window.count() / kSecond;
  return static_cast<double>(window.count()) / static_cast<double>(kSecond);
}

bool counts_tokens(Unit unit) {
  return unit == Unit::tokens || unit == Unit::input_tokens || unit == Unit::output_tokens;
}

std::string_view refusal_code(const LimitStatus& status) {
  if (status.verdict == Verdict::never_fits) return "never_fits";
  if (status.limit.unit == Unit::concurrency) return "concurrency_limit_exceeded";
  return counts_tokens(status.limit.unit) ? "token_limit_exceeded" : "rate_limit_exceeded";
}

// "request limit exceeded (requests): policy "team" allows 10 per 60 s; try again in 12 s"
std::string refusal_message(const LimitStatus& status) {
  const Limit& limit = status.limit;
  const bool concurrency = limit.unit == Unit::concurrency;
  std::string text = concurrency                 ? "concurrency limit exceeded ("
                     : counts_tokens(limit.unit) ? "token limit exceeded ("
                                                 : "request limit exceeded (";
  text += to_string(limit.unit);
  text += "): policy \"" + shown(status.policy_name) + "\" allows " + std::to_string(limit.quota);
  text += concurrency ? " at a time" : " per " + wait_text(limit.window);
  if (limit.algorithm == Algorithm::token_bucket && limit.capacity() != limit.quota) {
    text += " and at most " + std::to_string(limit.capacity()) + " at once";
  }
  if (status.verdict != Verdict::never_fits) {
    if (concurrency) return text + "; try again when another request has ended";
    return text + "; try again in " + wait_text(status.wait);
  }
  if (limit.capacity() == 0) return text + "; no request is admitted";
  return text + ", less than this request needs; waiting does not help, send a smaller one";
}

Said said_of_refusal(const LimitStatus& status) {
  const bool waits = status.verdict != Verdict::never_fits;
  Said said{.status = 429,
            .openai_type = "rate_limit_exceeded",
            .anthropic_type = "rate_limit_error",
            .code = refusal_code(status),
            .message = refusal_message(status)};
  const std::string_view unit = to_string(status.limit.unit);
  json::object policy;
  policy["id"] = clean(status.policy_id);
  policy["name"] = clean(status.policy_name);
  json::object limit;
  limit["unit"] = json::string_view(unit.data(), unit.size());
  limit["quota"] = status.limit.quota;
  limit["window_secs"] = window_secs(status.limit.window);
  limit["remaining"] = status.remaining;
  limit["retry_after_ms"] = waits ? json::value(milliseconds_up(status.wait)) : json::value();
  said.more["policy"] = std::move(policy);
  said.more["rate_limit"] = std::move(limit);
  return said;
}

// Whether a field says how limits stand, in any style; not when to come back.
bool describes_limits(std::string_view name) {
  if (http::iequal(name, "ratelimit") || http::iequal(name, "ratelimit-policy")) return true;
  const auto begins = [name](std::string_view prefix) {
    return http::iequal(name.substr(0, prefix.size()), prefix);
  };
  return begins("x-ratelimit-") || begins("anthropic-ratelimit-");
}

void remove_limits(http::Fields& fields) {
  std::erase_if(fields.all(),
                [](const http::Field& field) { return describes_limits(field.name); });
}

// --- other errors

struct ErrorText {
  int status;
  std::string_view code;
  std::string_view openai_type;
  std::string_view anthropic_type;
};

ErrorText text_of(GatewayError error) {
  constexpr std::string_view kRequest = "invalid_request_error";
  constexpr std::string_view kServer = "server_error";
  switch (error) {
    case GatewayError::bad_request:
      return {400, "invalid_request", kRequest, kRequest};
    case GatewayError::missing_key:
      return {401, "missing_api_key", kRequest, "authentication_error"};
    case GatewayError::unknown_key:
      return {401, "invalid_api_key", kRequest, "authentication_error"};
    case GatewayError::forbidden_model:
      return {403, "model_not_allowed", kRequest, "permission_error"};
    case GatewayError::unknown_model:
      return {404, "model_not_found", kRequest, "not_found_error"};
    case GatewayError::unknown_path:
      return {404, "unknown_path", kRequest, "not_found_error"};
    case GatewayError::wrong_method:
      return {405, "method_not_allowed", kRequest, kRequest};
    case GatewayError::body_too_large:
      return {413, "request_too_large", kRequest, "request_too_large"};
    case GatewayError::internal:
      return {500, "internal_error", kServer, "api_error"};
    case GatewayError::upstream_failed:
      return {502, "upstream_failed", kServer, "api_error"};
    case GatewayError::upstream_malformed:
      return {502, "upstream_malformed", kServer, "api_error"};
    case GatewayError::not_ready:
      return {503, "not_ready", kServer, "overloaded_error"};
    case GatewayError::upstream_timeout:
      return {504, "upstream_timeout", kServer, "timeout_error"};
  }
  return {500, "internal_error", kServer, "api_error"};
}

std::string message_of(GatewayError error, std::string_view about) {
  const std::string name = about.empty() ? "" : " `" + shown(about) + "`";
  switch (error) {
    case GatewayError::bad_request:
      return about.empty() ? "The request cannot be understood." : clean(about);
    case GatewayError::missing_key:
      return "No API key was sent. Send it as `Authorization: Bearer <key>` or as `x-api-key`.";
    case GatewayError::unknown_key:
      return "The API key is not known, disabled or expired. Check it, or ask for a new one.";
    case GatewayError::forbidden_model:
      return "The API key may not use the model" + name +
             ". GET /v1/models lists those that it may use.";
    case GatewayError::unknown_model:
      return "There is no model" + name + ". GET /v1/models lists those that there are.";
    case GatewayError::unknown_path:
      return "There is nothing at" + (name.empty() ? " this path" : name) + ".";
    case GatewayError::wrong_method:
      return "The method" + name + " is not allowed here. The Allow field names those that are.";
    case GatewayError::body_too_large:
      return "The body of the request is too large. Send a smaller one.";
    case GatewayError::internal:
      return "The gateway failed. Its log says why.";
    case GatewayError::upstream_failed:
      return "The upstream" + name +
             " could not be reached, or failed before its answer was "
             "complete. Try again.";
    case GatewayError::upstream_malformed:
      return "The upstream" + name + " sent something that is not a valid answer.";
    case GatewayError::not_ready:
      return "The gateway is not ready: it has no configuration yet, or is shutting down. Try "
             "again.";
    case GatewayError::upstream_timeout:
      return "The upstream" + name + " did not answer in time. Try again.";
  }
  return {};
}

Said said_of(GatewayError error, std::string_view about) {
  const ErrorText text = text_of(error);
  return {.status = text.status,
          .openai_type = text.openai_type,
          .anthropic_type = text.anthropic_type,
          .code = text.code,
          .message = message_of(error, about)};
}

}  // namespace

OwnAnswer refuse(const Decision& decision, HeaderStyle style, TimePoint now) {
  const LimitStatus* status = decision.refused_by();
  if (status == nullptr) {
    OwnAnswer undecided = answer(
        {.status = 503,
         .openai_type = "server_error",
         .anthropic_type = "overloaded_error",
         .code = "limits_unavailable",
         .message = "The rate limits of this request could not be checked. Try again shortly."},
        style);
    undecided.head.fields.add("Retry-After", "1");
    return undecided;
  }
  OwnAnswer refusal = answer(said_of_refusal(*status), style);
  set_rate_limit_fields(refusal.head.fields, decision, style, now);
  return refusal;
}

void set_rate_limit_fields(http::Fields& fields, const Decision& decision, HeaderStyle style,
                           TimePoint now) {
  std::vector<HeaderField> ours = rate_limit_headers(decision, style, now);
  if (ours.empty()) return;
  remove_limits(fields);
  for (HeaderField& field : ours) fields.set(std::string(field.name), std::move(field.value));
}

void set_rate_limit_lines(http::ResponseHead& head, const Decision& decision, HeaderStyle style,
                          TimePoint now) {
  const std::vector<HeaderField> ours = rate_limit_headers(decision, style, now);
  if (ours.empty()) return;
  remove_limits(head.fields);
  std::size_t bytes = 0;
  for (const HeaderField& field : ours) bytes += field.name.size() + field.value.size() + 4;
  head.lines.reserve(bytes);
  for (const HeaderField& field : ours) {
    head.lines.append(field.name).append(": ").append(field.value).append("\r\n");
  }
}

int status_of(GatewayError error) noexcept { return text_of(error).status; }

std::string_view code_of(GatewayError error) noexcept { return text_of(error).code; }

OwnAnswer error_answer(GatewayError error, std::string_view about, HeaderStyle style) {
  OwnAnswer out = answer(said_of(error, about), style);
  // RFC 9110, section 11.6.1: a 401 says how to authenticate.
  if (out.head.status == 401) out.head.fields.add("WWW-Authenticate", "Bearer");
  if (error == GatewayError::not_ready) out.head.fields.add("Retry-After", "1");
  return out;
}

OwnAnswer error_answer(const RequestFault& fault, HeaderStyle style) {
  Said said = said_of(GatewayError::bad_request, fault.message);
  said.param = clean(fault.param);
  return answer(std::move(said), style);
}

OwnAnswer error_answer(const http::Refusal& refusal, HeaderStyle style) {
  Said said = said_of(GatewayError::bad_request, refusal.message);
  said.status = refusal.status;
  said.code = refusal.code;
  if (refusal.status == 413) said.anthropic_type = "request_too_large";
  return answer(std::move(said), style);
}

std::string error_event(GatewayError error, bool between_events, HeaderStyle style) {
  std::string event = between_events ? "" : "\n\n";
  if (style == HeaderStyle::anthropic) event += "event: error\n";
  return event + "data: " + body_of(said_of(error, {}), style) + "\n\n";
}

}  // namespace stint::gateway
