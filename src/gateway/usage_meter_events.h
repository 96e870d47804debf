// Finds the events of a stream and hands their data on while it arrives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gateway/usage_meter_scan.h"

namespace stint::gateway {

// Server-sent events (WHATWG HTML, section 9.2.6): lines end in LF, CRLF or CR, also mixed; a byte
// order mark at the start is skipped. Unlike http::SseSplitter, which gives whole events, it keeps
// nothing, so that an event of any size is metered, and so that the bytes of an event can go on
// before its end is there.
//
// A block is an event with the blank line that ends it (an LF that completes a CRLF included, if
// it is there: `ends_in_cr`), or a comment line before any field of an event.
class EventReader {
 public:
  struct Step {
    std::size_t taken = 0;
    bool ended = false;  // a block ends here
  };

  // Takes bytes from the front of `bytes` up to the end of a block; all if none ends. The data of
  // the block goes to `scan`, as one value, if there is any.
  [[nodiscard]] Step read(std::string_view bytes, AnswerScan& scan);
  // The stream has ended; so does the block under way.
  void finish(AnswerScan& scan);

  // Nothing of a block has been read.
  [[nodiscard]] bool between_blocks() const noexcept { return between_; }
  // The block under way, or the last one, has data so far.
  [[nodiscard]] bool has_data() const noexcept { return has_data_; }
  // It is a comment, whatever follows.
  [[nodiscard]] bool in_comment() const noexcept { return leading_comment_; }
  // The block that ended last ended with CR: an LF that follows still belongs to it.
  [[nodiscard]] bool ends_in_cr() const noexcept { return after_cr_; }
  // An event was exactly `data: [DONE]`.
  [[nodiscard]] bool saw_done() const noexcept { return saw_done_; }

 private:
  enum class Line : std::uint8_t { start, name, before_value, data, other };

  void take_name(char c, AnswerScan& scan);
  [[nodiscard]] bool end_line(AnswerScan& scan);
  void begin_data_line(AnswerScan& scan);
  void take_data(std::string_view piece, AnswerScan& scan);
  void end_block(AnswerScan& scan);

  Line line_ = Line::start;
  std::uint8_t name_size_ = 0;  // bytes of "data" matched
  std::uint8_t mark_size_ = 0;  // bytes of the byte order mark matched
  bool at_mark_ = true;         // nothing but it was read yet
  bool after_cr_ = false;
  bool between_ = true;
  bool has_fields_ = false;
  bool has_data_ = false;
  bool leading_comment_ = false;
  // How much of "[DONE]" the event's data is; above its size: something else.
  std::size_t done_size_ = 0;
  bool saw_done_ = false;
};

}  // namespace stint::gateway
