#include "http/content_coding.h"

#include <brotli/decode.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <utility>

#include "http/message.h"

namespace stint::http {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{16} * 1024;

// Nothing to decode; the bound holds all the same.
class Identity final : public ContentDecoder {
 public:
  explicit Identity(std::uint64_t max_output_bytes) noexcept : ContentDecoder(max_output_bytes) {}
  [[nodiscard]] bool complete() const noexcept override { return true; }

 private:
  std::optional<std::string_view> decode(std::string_view& piece) override {
    return std::exchange(piece, {});
  }
};

class Inflate final : public ContentDecoder {
 public:
  Inflate(bool gzip, std::uint64_t max_output_bytes)
      : ContentDecoder(max_output_bytes), gzip_(gzip) {}
  ~Inflate() override { end(); }
  [[nodiscard]] bool complete() const noexcept override { return state_ == State::ended; }

 private:
  enum class State : std::uint8_t { before_header, inside, ended };

  // 16 + 15: a gzip header, then the largest window; 15: a zlib header; -15: none.
  [[nodiscard]] int window_bits() const noexcept {
    if (gzip_) return 16 + 15;
    // `deflate` means the zlib format, but some servers send bare deflate data. The first two
    // bytes tell: compression method 8 and a check sum (RFC 1950, section 2.2).
    const unsigned check = header_[0] * 256U + header_[1];
    return (header_[0] & 0x0FU) == 8 && check % 31 == 0 ? 15 : -15;
  }

  void begin() {
    stream_ = {};
    if (inflateInit2(&stream_, window_bits()) != Z_OK) throw std::bad_alloc();
    state_ = State::inside;
  }
  void end() noexcept {
    if (state_ == State::inside) inflateEnd(&stream_);
    state_ = State::ended;
  }

  std::optional<std::string_view> decode(std::string_view& piece) override {
    while (true) {
      if (state_ == State::ended) {
        // More members may follow (RFC 1952, section 2.2). Anything else is padding, which
        // readers of HTTP ignore.
        if (!gzip_ || !piece.starts_with('\x1F')) {
          piece = {};
          return std::string_view();
        }
        state_ = State::before_header;
        header_size_ = 0;
      }
      if (state_ == State::before_header) {
        while (header_size_ < header_.size() && !piece.empty()) {
          header_[header_size_++] = static_cast<unsigned char>(piece.front());
          piece.remove_prefix(1);
        }
        if (header_size_ < header_.size()) return std::string_view();
        begin();
        std::string_view header(reinterpret_cast<const char*>(header_.data()), header_.size());
        // A header gives no output; bare deflate data may.
        const auto text = inflate_some(header);
        if (!text || !text->empty()) return text;
        continue;
      }
      const auto text = inflate_some(piece);
      if (!text || !text->empty() || piece.empty()) return text;
    }
  }

  std::optional<std::string_view> inflate_some(std::string_view& piece) {
    const auto size = std::min<std::size_t>(piece.size(), std::numeric_limits<uInt>::max());
    // zlib declares its input const only in some builds; it never writes to it.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream_.avail_in = static_cast<uInt>(size);
    stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_out = static_cast<uInt>(buffer_.size());
    const int result = inflate(&stream_, Z_NO_FLUSH);
    piece.remove_prefix(size - stream_.avail_in);
    const std::string_view text(buffer_.data(), buffer_.size() - stream_.avail_out);
    if (result == Z_STREAM_END) {
      end();
    } else if (result != Z_OK && result != Z_BUF_ERROR) {  // the latter: it needs more input
      return std::nullopt;
    }
    return text;
  }

  bool gzip_;
  State state_ = State::before_header;
  std::array<unsigned char, 2> header_{};
  std::size_t header_size_ = 0;
  z_stream stream_{};
  std::array<char, kBufferBytes> buffer_{};
};

class Brotli final : public ContentDecoder {
 public:
  explicit Brotli(std::uint64_t max_output_bytes)
      : ContentDecoder(max_output_bytes),
        state_(BrotliDecoderCreateInstance(nullptr, nullptr, nullptr)) {
    if (state_ == nullptr) throw std::bad_alloc();
  }
  ~Brotli() override { BrotliDecoderDestroyInstance(state_); }
  [[nodiscard]] bool complete() const noexcept override {
    return BrotliDecoderIsFinished(state_) != BROTLI_FALSE;
  }

 private:
  std::optional<std::string_view> decode(std::string_view& piece) override {
    if (complete()) {
      piece = {};
      return std::string_view();
    }
    std::size_t input_left = piece.size();
    const auto* input = reinterpret_cast<const std::uint8_t*>(piece.data());
    std::size_t output_left = buffer_.size();
    auto* output = reinterpret_cast<std::uint8_t*>(buffer_.data());
    const auto result =
        BrotliDecoderDecompressStream(state_, &input_left, &input, &output_left, &output, nullptr);
    piece.remove_prefix(piece.size() - input_left);
    if (result == BROTLI_DECODER_RESULT_ERROR) return std::nullopt;
    if (result == BROTLI_DECODER_RESULT_SUCCESS) piece = {};  // the rest is padding
    return std::string_view(buffer_.data(), buffer_.size() - output_left);
  }

  BrotliDecoderState* state_;
  std::array<char, kBufferBytes> buffer_{};
};

}  // namespace

std::optional<ContentCoding> parse_content_coding(std::optional<std::string_view> value) noexcept {
  if (!value || value->empty() || iequal(*value, "identity")) return ContentCoding::identity;
  if (iequal(*value, "gzip") || iequal(*value, "x-gzip")) return ContentCoding::gzip;
  if (iequal(*value, "deflate")) return ContentCoding::deflate;
  if (iequal(*value, "br")) return ContentCoding::br;
  return std::nullopt;
}

std::unique_ptr<ContentDecoder> ContentDecoder::create(ContentCoding coding,
                                                       std::uint64_t max_output_bytes) {
  switch (coding) {
    case ContentCoding::gzip:
      return std::make_unique<Inflate>(true, max_output_bytes);
    case ContentCoding::deflate:
      return std::make_unique<Inflate>(false, max_output_bytes);
    case ContentCoding::br:
      return std::make_unique<Brotli>(max_output_bytes);
    case ContentCoding::identity:
      break;
  }
  return std::make_unique<Identity>(max_output_bytes);
}

std::expected<std::string_view, DecodeErrc> ContentDecoder::next(std::string_view& piece) {
  if (error_) return std::unexpected(*error_);
  const auto text = decode(piece);
  if (!text) {
    error_ = DecodeErrc::corrupt;
  } else if (text->size() > output_left_) {
    error_ = DecodeErrc::too_large;
  }
  if (error_) return std::unexpected(*error_);
  output_left_ -= text->size();
  return *text;
}

}  // namespace stint::http
