// What every algorithm answers when it is asked whether a cost fits.
#pragma once

#include "stint/decision.h"
#include "stint/time.h"

namespace stint::limit {

// How one limit answers: see stint::Verdict and stint::LimitStatus::wait.
struct Check {
  Verdict verdict = Verdict::fits;
  Duration wait{0};

  friend bool operator==(const Check&, const Check&) = default;
};

// How one limit stands: see stint::LimitStatus::remaining and ::reset.
struct Reading {
  std::int64_t remaining = 0;
  Duration reset{0};

  friend bool operator==(const Reading&, const Reading&) = default;
};

// What one limit was charged, as its settlement needs it.
struct Charge {
  std::int64_t amount = 0;
  // Which window was charged: its start; of a token bucket, how often it had been full by then.
  TimePoint window{};

  friend bool operator==(const Charge&, const Charge&) = default;
};

// "Never" as an instant: a state that is spent now and always was.
inline constexpr TimePoint kAlwaysSpent = TimePoint::min();

}  // namespace stint::limit
