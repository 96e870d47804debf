#include "http/sse.h"

#include <algorithm>
#include <utility>

namespace stint::http {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// An event of unusual size must not cost its memory for the rest of a long stream.
constexpr std::size_t kUsualEventBytes = std::size_t{64} * 1024;

bool ends_line(char c) { return c == '\n' || c == '\r'; }

}  // namespace

std::optional<std::size_t> SseSplitter::find_end(Scan& scan, std::string_view piece) {
  for (std::size_t i = 0; i < piece.size(); ++i) {
    const char c = piece[i];
    if (scan.undecided) {
      scan.undecided = false;
      if (c != '\n') {  // the block had ended with the CR
        scan.line_end = LineEnd::cr;
        return i;
      }
      scan.after_cr = false;
      scan.line_end = LineEnd::crlf;
      ++scan.offset;
      return i + 1;
    }
    const std::uint64_t offset = scan.offset++;
    const bool rest_of_crlf = c == '\n' && scan.after_cr;
    scan.after_cr = c == '\r';
    if (rest_of_crlf) {
      scan.line_end = LineEnd::crlf;
    } else if (ends_line(c)) {
      const bool ends_block = scan.blank || scan.mark == kByteOrderMark.size();
      const LineEnd before = std::exchange(scan.line_end, c == '\n' ? LineEnd::lf : LineEnd::cr);
      scan.blank = true;
      scan.mark = 0;
      if (!ends_block) continue;
      if (c == '\n' || before == LineEnd::cr) return i + 1;
      scan.undecided = true;
    } else {
      // A line of the mark alone is blank.
      const bool of_mark = offset == scan.mark && offset < kByteOrderMark.size() &&
                           c == kByteOrderMark[static_cast<std::size_t>(offset)];
      scan.mark = of_mark ? static_cast<std::uint8_t>(scan.mark + 1) : 0;
      scan.blank = false;
      if (of_mark) continue;
      // Nothing matters in this line any more but its end.
      while (i + 1 < piece.size() && !ends_line(piece[i + 1])) {
        ++i;
        ++scan.offset;
      }
    }
  }
  return std::nullopt;
}

void SseSplitter::drop_what_is_out() {
  joined_.clear();
  if (joined_.capacity() > kUsualEventBytes) joined_.shrink_to_fit();
  if (!std::exchange(kept_is_out_, false)) return;
  kept_.clear();
  if (kept_.capacity() > kUsualEventBytes) kept_.shrink_to_fit();
}

std::optional<SseBlock> SseSplitter::next(std::string_view& piece) {
  drop_what_is_out();
  // Twice at most per block: an oversized event may have ended just before this piece.
  while (!piece.empty()) {
    const Scan before = scan_;
    const std::optional<std::size_t> end = find_end(scan_, piece);
    const std::string_view part = piece.substr(0, end.value_or(piece.size()));

    if (in_oversized_) {
      piece.remove_prefix(part.size());
      in_oversized_ = !end.has_value();
      if (part.empty()) continue;
      return oversized_part(part, false);
    }
    if (kept_.size() + part.size() > max_event_bytes_) {
      if (kept_.empty()) {
        piece.remove_prefix(part.size());
        in_oversized_ = !end.has_value();
        return oversized_part(part, true);
      }
      // Not joined to what is kept, which would exceed the bound; the piece is scanned again.
      scan_ = before;
      in_oversized_ = true;
      kept_is_out_ = true;
      return oversized_part(kept_, true);
    }
    piece.remove_prefix(part.size());
    if (!end) {
      kept_.append(part);
      return std::nullopt;
    }
    if (kept_.empty()) return parse(part);
    kept_.append(part);
    kept_is_out_ = true;
    return parse(kept_);
  }
  return std::nullopt;
}

std::optional<SseBlock> SseSplitter::finish() {
  drop_what_is_out();
  in_oversized_ = false;
  if (kept_.empty()) return std::nullopt;
  kept_is_out_ = true;
  const bool complete = std::exchange(scan_.undecided, false);
  SseBlock block = parse(kept_);
  if (!complete) block.kind = SseBlock::Kind::unfinished;
  return block;
}

SseBlock SseSplitter::parse(std::string_view raw) {
  SseBlock block;
  block.raw = raw;
  block.begin = std::exchange(begin_, begin_ + raw.size());
  if (block.begin == 0 && raw.starts_with(kByteOrderMark)) {
    raw.remove_prefix(kByteOrderMark.size());
  }

  std::size_t data_lines = 0;
  while (!raw.empty()) {
    std::size_t end = 0;
    while (end < raw.size() && !ends_line(raw[end])) ++end;
    const std::string_view line = raw.substr(0, end);
    // CRLF leaves an empty line behind, which says nothing, like the blank line at the end.
    raw.remove_prefix(std::min(end + 1, raw.size()));

    const std::size_t colon = line.find(':');
    const std::string_view field = line.substr(0, colon);
    std::string_view value;
    if (colon != std::string_view::npos) value = line.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);

    if (field == "event") {
      block.name = value;
    } else if (field == "data") {
      // One line, the usual case, is shown where it stands.
      if (++data_lines == 1) {
        block.data = value;
        continue;
      }
      if (data_lines == 2) joined_ = block.data;
      joined_ += '\n';
      joined_ += value;
    }
  }
  if (data_lines > 1) block.data = joined_;
  block.kind = data_lines > 0 ? SseBlock::Kind::event : SseBlock::Kind::no_event;
  return block;
}

SseBlock SseSplitter::oversized_part(std::string_view raw, bool first) {
  SseBlock block;
  block.kind = SseBlock::Kind::oversized;
  block.raw = raw;
  block.begin = std::exchange(begin_, begin_ + raw.size());
  block.first = first;
  return block;
}

}  // namespace stint::http
