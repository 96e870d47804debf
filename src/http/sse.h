// Server-sent events (WHATWG HTML, section 9.2.6) cut out of a stream of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stint::http {

// A run of bytes of the stream and what it means. The blocks follow each other without a gap: what
// passes on the `raw` of every block passes on the stream.
struct SseBlock {
  enum class Kind : std::uint8_t {
    event,       // it has data: what a browser would hand to its page
    no_event,    // nothing to hand out: comments, blank lines, fields without data
    oversized,   // a part of an event above the bound; unread, only `raw` and `begin` are set
    unfinished,  // the stream ended before its blank line: a browser drops it
  };
  Kind kind = Kind::event;
  std::string_view data{};  // its data lines joined by LF
  std::string_view name{};  // of the last event field; empty means "message"
  std::string_view raw{};   // as received, the blank line that ends it included
  std::uint64_t begin = 0;  // offset of `raw` in the stream
  bool first = true;        // false: goes on with the oversized event of the block before
};

// Gives the same blocks however the stream is cut into pieces (oversized ones: the same when their
// parts are put together). Line ends are LF, CRLF and CR, also mixed; a byte order mark at the
// start is skipped.
//
// A blank line that is a bare CR so far may yet become CRLF. If the line before it ended with CR
// alone, the block ends at once, and an LF that follows all the same opens the next one; else the
// next byte decides. So in a stream of one kind of line end a block has its own bytes exactly, and
// none waits for the next.
//
// Thread rule: one at a time.
class SseSplitter {
 public:
  // At most so many bytes are kept of an event that is not complete; a longer one is oversized.
  explicit SseSplitter(std::size_t max_event_bytes) noexcept : max_event_bytes_(max_event_bytes) {}

  // Takes bytes from the front of `piece` until a block is complete. Nothing: the piece is taken
  // up, the next may come. What a block shows is valid until the next call, and as long as the
  // bytes of the piece.
  [[nodiscard]] std::optional<SseBlock> next(std::string_view& piece);

  // The stream has ended: what is left, if anything.
  [[nodiscard]] std::optional<SseBlock> finish();

 private:
  enum class LineEnd : std::uint8_t { lf, cr, crlf };

  // Where in a line we are; everything that finding the end of a block needs.
  struct Scan {
    std::uint64_t offset = 0;          // in the stream
    bool blank = true;                 // nothing in this line yet
    std::uint8_t mark = 0;             // bytes of a byte order mark seen at the start
    bool after_cr = false;             // an LF now belongs to the line end before
    bool undecided = false;            // a blank line ended by CR: an LF would be part of it
    LineEnd line_end = LineEnd::crlf;  // of the line before
  };

  // The number of bytes of the piece up to the end of a block, if it ends there.
  [[nodiscard]] static std::optional<std::size_t> find_end(Scan& scan, std::string_view piece);
  void drop_what_is_out();
  [[nodiscard]] SseBlock parse(std::string_view raw);
  [[nodiscard]] SseBlock oversized_part(std::string_view raw, bool first);

  std::size_t max_event_bytes_;
  Scan scan_;
  std::uint64_t begin_ = 0;    // of the block under way
  std::string kept_{};         // its bytes from earlier pieces
  bool kept_is_out_ = false;   // they were handed out by the last call
  bool in_oversized_ = false;  // the block under way is above the bound
  std::string joined_{};       // the data of an event of several lines
};

}  // namespace stint::http
