// Header fields that tell a client how its limits stand, as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stint/decision.h"
#include "stint/time.h"

namespace stint {

struct HeaderField {
  std::string_view name;  // static text, in the spelling of the interface it belongs to
  std::string value;      // visible ASCII and spaces only

  friend bool operator==(const HeaderField&, const HeaderField&) = default;
};

// Whose names a client expects beside RateLimit-Policy and RateLimit.
enum class HeaderStyle : unsigned char {
  // X-RateLimit-{Limit,Remaining,Reset}, reset in seconds from now, rounded up; about one limit:
  // the one that refused, else the tightest that has a window, else the tightest.
  plain,
  // x-ratelimit-{limit,remaining,reset}-{requests,tokens}, reset such as "6m0s", "1.5s" or
  // "12ms", rounded up to milliseconds. The three units of tokens are one kind.
  openai,
  // anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens}-{limit,remaining,reset},
  // reset as RFC 3339 in UTC, rounded up to seconds.
  anthropic,
};

// The fields for an answer under `decision`. Empty if no limit applied, and if it is undecided:
// nothing is known then. Shadow and skipped limits never appear.
//
// RateLimit-Policy and RateLimit (IETF draft-ietf-httpapi-ratelimit-headers-10) list the same
// limits, at most four, tightest first; but a limit that refused comes before all others
// (Decision::refused_by).
//   "<policy name>-<unit>-<window>", such as "team-requests-60s" or "team-tokens-250ms", names a
//     limit; "-<algorithm>" follows unless it is fixed_window; a concurrency limit is
//     "<policy name>-concurrency". Where another policy of the decision has given that name
//     already, "-2" follows, then "-3". Of the policy's name at most 64 bytes are shown, bytes
//     that are not printable ASCII as `?`.
//   q, qu, w: the quota, its unit and the window in seconds, rounded up. For a token bucket the
//     capacity and the time in which that much is refilled, so that q / w is the rate and r never
//     exceeds q. Concurrency has no w. Units are "requests" and "concurrent-requests" as the
//     draft has them, and "tokens", "input-tokens", "output-tokens".
//   r: what remains. t: seconds until more is available, rounded up: of a limit that refused
//     its wait (so Retry-After is never earlier than t), else its reset; absent when there is
//     nothing to wait for, and for concurrency.
//   Numbers stop at 999,999,999,999,999, the largest integer of a structured field.
//
// The style's fields describe, for each kind of unit, the tightest limit of the kind; on a
// refusal the limit that refused stands for its kind. "Limit" is Limit::capacity(), what remaining
// is counted against: the quota, of a token bucket its burst. "Reset" is LimitStatus::reset.
// Concurrency limits belong to no kind of openai and anthropic.
//
// A refusal adds Retry-After (whole seconds, rounded up, at least 1) and retry-after-ms (rounded
// up), or x-should-retry: false when waiting is in vain.
//
// `now` is the wall clock, for the style that names an instant.
[[nodiscard]] std::vector<HeaderField> rate_limit_headers(const Decision& decision,
                                                          HeaderStyle style, TimePoint now);

}  // namespace stint
