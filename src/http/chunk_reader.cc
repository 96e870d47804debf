#include "http/chunk_reader.h"

#include <algorithm>

#include "http/syntax.h"

namespace stint::http {
namespace {

constexpr std::size_t kMaxOverhead = std::size_t{16} * 1024;
constexpr unsigned kMaxDigits = 15;  // below 2^60: no overflow

bool is_name(char c) noexcept { return is_token(std::string_view(&c, 1)); }

bool is_text(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= 0x20 && byte != 0x7f) || c == '\t';
}

}  // namespace

ChunkReader::State ChunkReader::step(char c) noexcept {
  switch (state_) {
    case State::size: {
      const int digit = hex_value(c);
      if (digit >= 0) {
        if (++digits_ > kMaxDigits) return State::malformed;
        left_ = left_ * 16 + static_cast<unsigned>(digit);
        return State::size;
      }
      if (digits_ == 0) return State::malformed;
      if (c == '\r') return State::size_lf;
      return c == ';' ? State::extension : State::malformed;
    }
    case State::extension:
      if (c == '\r') return State::size_lf;
      return is_text(c) && ++overhead_ <= kMaxOverhead ? State::extension : State::malformed;
    case State::size_lf:
      digits_ = 0;
      if (c != '\n') return State::malformed;
      return left_ > 0 ? State::data : State::trailer_start;
    case State::data_cr:
      return c == '\r' ? State::data_lf : State::malformed;
    case State::data_lf:
      return c == '\n' ? State::size : State::malformed;
    case State::trailer_start:
      if (c == '\r') return State::end_lf;
      return is_name(c) && ++overhead_ <= kMaxOverhead ? State::trailer_name : State::malformed;
    case State::trailer_name:
      if (c == ':') return State::trailer;
      return is_name(c) && ++overhead_ <= kMaxOverhead ? State::trailer_name : State::malformed;
    case State::trailer:
      if (c == '\r') return State::trailer_lf;
      return is_text(c) && ++overhead_ <= kMaxOverhead ? State::trailer : State::malformed;
    case State::trailer_lf:
      return c == '\n' ? State::trailer_start : State::malformed;
    case State::end_lf:
      return c == '\n' ? State::end : State::malformed;
    case State::data:
    case State::end:
    case State::malformed:
      break;
  }
  return state_;
}

ChunkReader::Result ChunkReader::next(std::string_view& bytes, std::string_view& data) noexcept {
  for (;;) {
    if (state_ == State::end) return Result::end;
    if (state_ == State::malformed) return Result::malformed;
    if (bytes.empty()) return Result::need_more;
    if (state_ == State::data) {
      const std::size_t size = std::min<std::uint64_t>(left_, bytes.size());
      data = bytes.substr(0, size);
      bytes.remove_prefix(size);
      left_ -= size;
      if (left_ == 0) state_ = State::data_cr;
      return Result::data;
    }
    state_ = step(bytes.front());
    bytes.remove_prefix(1);
  }
}

}  // namespace stint::http
