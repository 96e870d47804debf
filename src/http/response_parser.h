// HTTP/1.x responses out of bytes (RFC 9112), without I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "http/chunk_reader.h"
#include "http/message.h"

namespace stint::http {

// How long a response is depends on what was asked.
enum class ResponseTo : std::uint8_t { head_request, other_request };

// What is not a response, or can be read in more than one way, is malformed: both
// Transfer-Encoding and Content-Length, lengths that differ or are no numbers, an encoding other
// than exactly `chunked`, chunked in HTTP/1.0, folded lines, control bytes, 101, and heads above
// the bound. Several equal lengths become one. In a head, lines may end with a bare LF, and white
// space before a colon is dropped (RFC 9112, sections 2.2 and 5.1).
//
// Thread rule: one at a time.
class ResponseParser {
 public:
  // `max_head_bytes`: for the head and the interim heads (1xx) before it, together.
  ResponseParser(ResponseTo to, std::size_t max_head_bytes) noexcept
      : to_(to), head_bytes_left_(max_head_bytes) {}

  enum class Event : std::uint8_t {
    need_more,  // the piece is taken up
    head,       // `head`, `content_length` and `keep_alive` are there from now on
    body,       // `body` has bytes of the body
    end,        // the response is complete; what is left of the piece does not belong to it
  };

  // Takes bytes from the front of `piece` until something happens; after `end` always `end`. The
  // error is a text for logs; after it there is nothing more to ask.
  [[nodiscard]] std::expected<Event, std::string> next(std::string_view& piece);

  // Whether the response is complete if the connection ends here in order. Not so in the middle
  // of a head, of chunks, or of a body of known length.
  [[nodiscard]] bool may_end_here() const noexcept {
    return state_ == State::body_until_close || state_ == State::end;
  }

  [[nodiscard]] const ResponseHead& head() const noexcept { return head_; }
  [[nodiscard]] ResponseHead take_head() noexcept { return std::move(head_); }
  // What Content-Length says; of HEAD and 304 the length of the body that is not sent. Nothing
  // for chunks, for bodies that the end of the connection ends, and for 204.
  [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept { return length_; }
  // Whether the connection is good for another request after `end`.
  [[nodiscard]] bool keep_alive() const noexcept { return keep_alive_; }
  // Part of the piece that was given; valid as long as that.
  [[nodiscard]] std::string_view body() const noexcept { return body_; }
  [[nodiscard]] bool ended() const noexcept { return state_ == State::end; }
  // Whether a byte of a response, interim or not, was taken.
  [[nodiscard]] bool begun() const noexcept { return begun_; }

 private:
  enum class State : std::uint8_t {
    status_line,
    fields,
    body_of_length,
    body_until_close,
    chunks,
    end,
  };
  // Nothing: all is well. Else what is wrong.
  using Complaint = std::optional<std::string>;

  [[nodiscard]] std::expected<Event, std::string> next_in_head(std::string_view& piece);
  [[nodiscard]] std::expected<Event, std::string> next_in_body(std::string_view& piece);
  [[nodiscard]] Complaint take_line(std::string_view line);
  [[nodiscard]] Complaint take_status_line(std::string_view line);
  [[nodiscard]] Complaint take_field(std::string_view line);
  [[nodiscard]] Complaint take_end_of_head();
  [[nodiscard]] Complaint read_length();
  [[nodiscard]] Complaint read_transfer_encoding();

  ResponseTo to_;
  std::size_t head_bytes_left_;
  State state_ = State::status_line;
  bool begun_ = false;
  std::string line_{};  // the part of a line that earlier pieces brought
  ResponseHead head_{};
  int minor_version_ = 1;
  std::optional<std::uint64_t> length_{};
  bool keep_alive_ = true;
  std::uint64_t body_left_ = 0;
  ChunkReader chunks_{};
  std::string_view body_{};
};

}  // namespace stint::http
