// Reading what a server has compressed (RFC 9110, section 8.4), for metering on the side: the
// client gets the compressed bytes as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string_view>

namespace stint::http {

enum class ContentCoding : std::uint8_t { identity, gzip, deflate, br };

// From the value of Content-Encoding, or no value. Nothing for a coding that we cannot read, and
// for several, one upon the other.
[[nodiscard]] std::optional<ContentCoding> parse_content_coding(
    std::optional<std::string_view> value) noexcept;

// For Accept-Encoding: what parse_content_coding knows.
inline constexpr std::string_view kReadableCodings = "gzip, deflate, br";

enum class DecodeErrc : std::uint8_t {
  corrupt,    // not of this coding
  too_large,  // more than max_output_bytes
};

// Decodes one stream. After an error every call gives it again.
// Memory: some 50 KiB for gzip and deflate; for br up to the window that the sender chose, 16 MiB
// at most. Thread rule: one at a time.
class ContentDecoder {
 public:
  // The bound ends decompression bombs: a kilobyte may stand for a megabyte.
  [[nodiscard]] static std::unique_ptr<ContentDecoder> create(ContentCoding coding,
                                                              std::uint64_t max_output_bytes);
  virtual ~ContentDecoder() = default;
  ContentDecoder(const ContentDecoder&) = delete;
  ContentDecoder& operator=(const ContentDecoder&) = delete;

  // Takes bytes from the front of `piece` and gives what they decode to, a buffer at a time; empty:
  // the piece is taken up, and all that it stands for was given. Valid until the next call, and as
  // long as the bytes of the piece.
  //
  //   while (true) {
  //     auto text = decoder->next(piece);
  //     if (!text || text->empty()) break;
  //     ...
  //   }
  [[nodiscard]] std::expected<std::string_view, DecodeErrc> next(std::string_view& piece);

  // Whether the stream has come to its end; false after the last piece: it was cut.
  [[nodiscard]] virtual bool complete() const noexcept = 0;

 protected:
  explicit ContentDecoder(std::uint64_t max_output_bytes) noexcept
      : output_left_(max_output_bytes) {}

  // Nothing: not of this coding.
  [[nodiscard]] virtual std::optional<std::string_view> decode(std::string_view& piece) = 0;

 private:
  std::uint64_t output_left_;
  std::optional<DecodeErrc> error_{};
};

}  // namespace stint::http
