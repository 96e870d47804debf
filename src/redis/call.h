// What comes of a call to a Redis server.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <string_view>

#include "redis/reply.h"

namespace stint::redis {

// What a call that failed did to the data.
enum class Fate : std::uint8_t {
  not_run,  // certainly nothing
  unknown,  // it was written, and no reply says what came of it
};

enum class Reason : std::uint8_t {
  unavailable,    // no connection that is ready, or the breaker is open; not sent
  timed_out,      // the deadline passed
  lost,           // the connection ended
  protocol,       // the server sent what is no RESP2, or more than we take
  rejected,       // an error reply: see `code`
  configuration,  // an error reply that repeats until somebody mends the configuration
  stopped,        // the owner of the connection stopped it
};

struct CallError {
  Fate fate = Fate::not_run;
  Reason reason = Reason::unavailable;
  // The first word of an error reply ("MOVED", "LOADING", "ERR"), also of one that a script passed
  // on; empty if the error is not a reply.
  std::string code{};
  std::string text{};  // for logs; of an error reply the whole line
};

using CallResult = std::expected<Reply, CallError>;
// Never called with a Reply of the kind error: that is a CallError.
using CallDone = std::move_only_function<void(CallResult)>;

[[nodiscard]] const char* to_string(Fate fate) noexcept;
[[nodiscard]] const char* to_string(Reason reason) noexcept;

// An error reply ("WRONGTYPE Operation against ...") as reason, code and fate.
[[nodiscard]] CallError classify(std::string_view error_reply);

// Whether it says something about the health of the server: all but NOSCRIPT, MOVED, ASK and
// TRYAGAIN, which are the normal business of scripts and clusters, and what was never sent
// (`unavailable`, `stopped`).
[[nodiscard]] bool is_failure(const CallError& error) noexcept;

}  // namespace stint::redis
