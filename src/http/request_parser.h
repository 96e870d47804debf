// Reading the head of a request, strictly: sans-I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"

namespace stint::http {

struct ServerLimits;

// A request that no handler sees, and what its sender is told.
struct Refusal {
  int status = 400;
  std::string_view code{};     // for programs: a literal
  std::string_view message{};  // for people: a literal
};

// Finds where a head ends, while its bytes arrive. Each limit is checked as soon as it is passed:
// what never ends is refused at the limit, not collected.
class HeadScanner {
 public:
  // `bytes`: all that has arrived since the head began; grows from call to call. The length of the
  // head with its empty line, or nothing yet.
  [[nodiscard]] std::expected<std::optional<std::size_t>, Refusal> scan(std::string_view bytes,
                                                                        const ServerLimits& limits);
  // For the next head.
  void reset() noexcept { *this = HeadScanner(); }

 private:
  std::size_t scanned_ = 0;  // nothing before it has to be looked at again
  std::size_t line_start_ = 0;
  std::size_t fields_start_ = 0;  // 0: still in the request line
  std::size_t count_ = 0;         // of complete field lines
};

// How the end of a body is known.
struct Framing {
  bool chunked = false;
  std::uint64_t length = 0;  // if not chunked
};

struct ParsedHead {
  RequestHead head;
  Framing framing;
  bool expects_continue = false;
};

// `bytes`: a whole head as found by HeadScanner. Refuses whatever two readers could frame
// differently (see http/server.h), and a body longer than the limit.
[[nodiscard]] std::expected<ParsedHead, Refusal> parse_head(std::string_view bytes,
                                                            const ServerLimits& limits);

}  // namespace stint::http
