// The chunked coding of a body (RFC 9112, section 7.1), strictly: sans-I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stint::http {

// Extensions and trailers are read over. Lines end with CR LF and nothing else; what surrounds the
// data is bounded, so that a body of a few bytes cannot be wrapped in endless lines.
class ChunkReader {
 public:
  enum class Result : unsigned char { need_more, data, end, malformed };

  // Takes from the front of `bytes`: data (a view into it, which is what `data` is set to) or
  // framing. To be called until it needs more, is at the end or refuses. Bytes after the end are
  // left where they are.
  [[nodiscard]] Result next(std::string_view& bytes, std::string_view& data) noexcept;
  [[nodiscard]] bool at_end() const noexcept { return state_ == State::end; }

 private:
  enum class State : unsigned char {
    size,
    extension,
    size_lf,
    data,
    data_cr,
    data_lf,
    trailer_start,
    trailer_name,
    trailer,
    trailer_lf,
    end_lf,
    end,
    malformed,
  };
  [[nodiscard]] State step(char c) noexcept;

  State state_ = State::size;
  std::uint64_t left_ = 0;    // of this chunk
  unsigned digits_ = 0;       // of its size, so far
  std::size_t overhead_ = 0;  // bytes of extensions and trailers, of the whole body
};

}  // namespace stint::http
