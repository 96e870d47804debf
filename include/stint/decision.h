// What an admission says: admitted, refused or undecided, and how each limit stands.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "stint/error.h"
#include "stint/limit.h"
#include "stint/time.h"

namespace stint {

enum class Outcome : std::uint8_t {
  admitted,   // every bucket was charged
  refused,    // no bucket was charged
  undecided,  // the store could not answer; nothing is known to be charged
};

enum class Verdict : std::uint8_t {
  fits,
  refused,     // does not fit now; fits after `LimitStatus::wait` if nobody else is admitted
  never_fits,  // costs more than the limit can ever hold, or the limit is 0: waiting is in vain
  skipped,     // a concurrency limit, and the caller holds no slot (`Cost::holds_slot`)
};

// How one limit of one bucket stands after this admission (a refused one charges nothing).
struct LimitStatus {
  // Text owned by the policies that decided; valid as long as the Decision it came with.
  std::string_view policy_id{};
  std::string_view policy_name{};
  Limit limit{};
  // A shadow policy's: it never refuses; `verdict` is what it would have said.
  bool shadow = false;
  Verdict verdict = Verdict::fits;
  // What is left, never below 0.
  std::int64_t remaining = 0;
  // Until the limit is whole again if nobody is admitted any more; zero when it is whole.
  // Concurrency has no such time: one second when full, else zero.
  Duration reset{0};
  // Refused: until the same request is admitted if nobody else is; exact to the microsecond
  // (concurrency: one second, a hint). Zero for the other verdicts.
  Duration wait{0};
};

// A plain value; may be copied and may outlive the limiter.
struct Decision {
  Outcome outcome = Outcome::undecided;
  // One entry for each limit of each policy that applied, in the order of the policies.
  // Empty: no policy applied, and the request was admitted.
  std::vector<LimitStatus> limits{};
  // Undecided only: why.
  Error error{};
  // Keeps the text of `limits` alive.
  std::shared_ptr<const void> policies{};

  [[nodiscard]] bool admitted() const noexcept { return outcome == Outcome::admitted; }

  // The limit that a refusal is about: one that never fits, else the one with the longest wait,
  // whatever the order of the policies. Null unless refused.
  [[nodiscard]] const LimitStatus* refused_by() const noexcept;

  // When to come back. Absent if not refused, or if it can never fit.
  [[nodiscard]] std::optional<Duration> retry_after() const noexcept;

  // The limit nearest to its end: smallest remaining / quota, then the longer window. Shadow
  // and skipped limits do not count. Null if there is none.
  [[nodiscard]] const LimitStatus* tightest() const noexcept;
};

}  // namespace stint
