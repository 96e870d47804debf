// Writing the head of an answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"
#include "http/request_parser.h"
#include "stint/time.h"

namespace stint::http {

// What the server decides about an answer.
struct AnswerFraming {
  std::optional<std::uint64_t> length{};
  bool chunked = false;
  // Set when the client could not know: `close`, or `keep-alive` for one that speaks HTTP/1.0.
  std::string_view connection{};
};

// Appends status line, fields and the empty line. Fields of the handler that are the server's to
// write (Connection, Content-Length, Keep-Alive, Transfer-Encoding) are left out, and those that
// would break the message (a malformed name, a line end in the value). Date is added if there is
// none.
void append_head(std::string& out, const ResponseHead& head, const AnswerFraming& framing,
                 std::string_view date);

// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, section 5.6.7).
[[nodiscard]] std::string http_date(TimePoint time);

// {"error":{"message":...,"type":...,"code":...}}
[[nodiscard]] std::string error_body(const Refusal& refusal);

}  // namespace stint::http
