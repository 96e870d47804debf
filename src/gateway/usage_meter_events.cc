#include "gateway/usage_meter_events.h"

namespace stint::gateway {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kData = "data";
constexpr std::string_view kDone = "[DONE]";

bool ends_line(char c) noexcept { return c == '\n' || c == '\r'; }

std::size_t find_line_end(std::string_view bytes, std::size_t from) noexcept {
  while (from < bytes.size() && !ends_line(bytes[from])) ++from;
  return from;
}

}  // namespace

EventReader::Step EventReader::read(std::string_view bytes, AnswerScan& scan) {
  if (between_) {
    has_fields_ = has_data_ = leading_comment_ = false;
    done_size_ = 0;
  }
  std::size_t at = 0;
  while (at < bytes.size()) {
    const char c = bytes[at];
    if (at_mark_) {
      if (c == kByteOrderMark[mark_size_]) {
        at_mark_ = ++mark_size_ < kByteOrderMark.size();
        ++at;
        continue;
      }
      at_mark_ = false;
      if (mark_size_ > 0) line_ = Line::other;  // the start of a mark that is none
    }
    if (after_cr_) {
      after_cr_ = false;
      if (c == '\n') {
        ++at;
        // Of the blank line that ended the block before: a block of its own, with nothing in it.
        if (between_) return {at, true};
        continue;
      }
    }
    between_ = false;
    if (ends_line(c)) {
      ++at;
      const bool ended = end_line(scan);
      after_cr_ = c == '\r';
      if (ended) {
        between_ = true;
        return {at, true};
      }
    } else if (line_ == Line::data || line_ == Line::other) {
      const std::size_t end = find_line_end(bytes, at);
      if (line_ == Line::data) take_data(bytes.substr(at, end - at), scan);
      at = end;
    } else {
      take_name(c, scan);
      // The first byte of a value that does not start with a space is looked at again.
      if (line_ != Line::data || c == ' ') ++at;
    }
  }
  return {at, false};
}

void EventReader::take_name(char c, AnswerScan& scan) {
  switch (line_) {
    case Line::start:
      name_size_ = 0;
      if (c == ':') {
        leading_comment_ = !has_fields_;
        line_ = Line::other;
        return;
      }
      has_fields_ = true;
      line_ = Line::name;
      [[fallthrough]];
    case Line::name:
      if (c == ':') {
        const bool data = name_size_ == kData.size();
        line_ = data ? Line::before_value : Line::other;
        if (data) begin_data_line(scan);
      } else if (name_size_ < kData.size() && c == kData[name_size_]) {
        ++name_size_;
      } else {
        line_ = Line::other;
      }
      return;
    case Line::before_value:
      line_ = Line::data;
      return;
    case Line::data:
    case Line::other:
      return;
  }
}

bool EventReader::end_line(AnswerScan& scan) {
  const Line line = line_;
  line_ = Line::start;
  if (line == Line::start) {  // blank
    end_block(scan);
    return true;
  }
  // A line `data` without a colon is an empty one.
  if (line == Line::name && name_size_ == kData.size()) begin_data_line(scan);
  return leading_comment_;
}

void EventReader::begin_data_line(AnswerScan& scan) {
  if (has_data_) {
    take_data("\n", scan);
  } else {
    has_data_ = true;
    scan.begin();
  }
}

void EventReader::take_data(std::string_view piece, AnswerScan& scan) {
  if (done_size_ <= kDone.size()) {
    done_size_ =
        kDone.substr(done_size_).starts_with(piece) ? done_size_ + piece.size() : kDone.size() + 1;
  }
  scan.feed(piece);
}

void EventReader::end_block(AnswerScan& scan) {
  if (!has_data_) return;
  const bool done = done_size_ == kDone.size();
  saw_done_ = saw_done_ || done;
  if (done) scan.begin();  // no text
  scan.end();
}

void EventReader::finish(AnswerScan& scan) {
  if (between_) return;
  if (has_data_) scan.end();
  between_ = true;
}

}  // namespace stint::gateway
