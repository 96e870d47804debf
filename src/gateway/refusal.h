// Answers that the gateway gives itself: refusals and errors, in the words of the client's API.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/token_estimate.h"
#include "http/message.h"
#include "http/request_parser.h"
#include "stint/decision.h"
#include "stint/headers.h"
#include "stint/time.h"

namespace stint::gateway {

// A whole answer: status, fields with Content-Type (Content-Length is the server's), JSON body.
struct OwnAnswer {
  http::ResponseHead head;
  std::string body;
};

// The answer to a request that was not admitted. `style` says whose fields, and whose envelope:
// anthropic's own for anthropic, OpenAI's for the others.
//   refused    429; body and fields describe Decision::refused_by(). A limit that can never hold
//              the request has the code never_fits, no Retry-After and x-should-retry: false.
//   undecided  503: nobody could say whether the request is within its limits. Retry-After: 1.
// `now`: the wall clock. Precondition: not admitted.
[[nodiscard]] OwnAnswer refuse(const Decision& decision, HeaderStyle style, TimePoint now);

// Adds the fields of rate_limit_headers to an answer, in place of all that say how limits stand
// (RateLimit, RateLimit-Policy, X-RateLimit-*, anthropic-ratelimit-*), such as an upstream's: a
// client must not read some from us and some from there. An upstream's Retry-After stays. Changes
// nothing when no limit applied.
void set_rate_limit_fields(http::Fields& fields, const Decision& decision, HeaderStyle style,
                           TimePoint now);
// The same for an admitted request's answer that is passed on: written out, in `head.lines`.
void set_rate_limit_lines(http::ResponseHead& head, const Decision& decision, HeaderStyle style,
                          TimePoint now);

// Why a request failed other than by a limit. Each has one status and one code.
enum class GatewayError : std::uint8_t {
  bad_request,         // 400 invalid_request
  missing_key,         // 401 missing_api_key
  unknown_key,         // 401 invalid_api_key: also disabled and expired ones
  forbidden_model,     // 403 model_not_allowed
  unknown_model,       // 404 model_not_found
  unknown_path,        // 404 unknown_path
  wrong_method,        // 405 method_not_allowed; the caller adds Allow
  body_too_large,      // 413 request_too_large
  internal,            // 500 internal_error
  upstream_failed,     // 502 upstream_failed: no connection, or it ended before an answer
  upstream_malformed,  // 502 upstream_malformed: what came is no HTTP answer
  not_ready,           // 503 not_ready: before the first configuration, or shutting down
  upstream_timeout,    // 504 upstream_timeout
};

[[nodiscard]] int status_of(GatewayError error) noexcept;
[[nodiscard]] std::string_view code_of(GatewayError error) noexcept;

// `about`: what the message names, such as the model that was asked for; shown shortened, and
// safe whatever it holds. bad_request: the message itself. Empty where there is nothing to name.
[[nodiscard]] OwnAnswer error_answer(GatewayError error, std::string_view about = {},
                                     HeaderStyle style = HeaderStyle::openai);
// A 400 for what is wrong with a body.
[[nodiscard]] OwnAnswer error_answer(const RequestFault& fault,
                                     HeaderStyle style = HeaderStyle::openai);

// The server's own word on a request, for one that a handler has seen: its status, code and
// message.
[[nodiscard]] OwnAnswer error_answer(const http::Refusal& refusal,
                                     HeaderStyle style = HeaderStyle::openai);

// The error as the last event of a stream that broke. `between_events`: whether what the client
// has so far ends with a whole event (UsageMeter::between_events); if not, the event begins with
// the blank line that ends the broken one.
[[nodiscard]] std::string error_event(GatewayError error, bool between_events,
                                      HeaderStyle style = HeaderStyle::openai);

}  // namespace stint::gateway
