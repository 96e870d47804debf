#include "http/content_coding.h"

#include <brotli/encode.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>

namespace stint::http {
namespace {

constexpr std::uint64_t kNoBound = std::numeric_limits<std::uint64_t>::max();

// window_bits as zlib has them: 31 gzip, 15 zlib, -15 bare.
std::string deflated(std::string_view text, int window_bits) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw std::runtime_error("deflateInit2");
  }
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string brotli(std::string_view text) {
  std::size_t size = BrotliEncoderMaxCompressedSize(text.size());
  std::string out(size, '\0');
  if (BrotliEncoderCompress(5, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_GENERIC, text.size(),
                            reinterpret_cast<const std::uint8_t*>(text.data()), &size,
                            reinterpret_cast<std::uint8_t*>(out.data())) == BROTLI_FALSE) {
    throw std::runtime_error("BrotliEncoderCompress");
  }
  out.resize(size);
  return out;
}

struct Decoded {
  std::string text;
  std::optional<DecodeErrc> error;
  bool complete = false;
};

Decoded decoded(ContentCoding coding, std::string_view bytes, std::size_t piece_size,
                std::uint64_t bound = kNoBound) {
  const auto decoder = ContentDecoder::create(coding, bound);
  Decoded out;
  while (!bytes.empty() && !out.error) {
    std::string_view piece = bytes.substr(0, piece_size);
    bytes.remove_prefix(piece.size());
    while (true) {
      const auto text = decoder->next(piece);
      if (!text) {
        out.error = text.error();
        EXPECT_EQ(decoder->next(piece).error(), text.error());
        break;
      }
      if (text->empty()) break;
      out.text += *text;
    }
    if (!out.error) {
      EXPECT_TRUE(piece.empty());
    }
  }
  out.complete = decoder->complete();
  return out;
}

// Text that compresses somewhat and is longer than any buffer inside.
std::string sample() {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same in every run
  std::string text;
  while (text.size() < 100'000) {
    text += "data: {\"token\":" + std::to_string(random() % 1000) + "}\n\n";
  }
  return text;
}

struct Case {
  const char* name;
  ContentCoding coding;
  std::string (*encode)(std::string_view);
};
std::ostream& operator<<(std::ostream& out, const Case& value) { return out << value.name; }

class ContentCodingTest : public testing::TestWithParam<Case> {};

// Those whose end is marked in the stream.
class CompressedTest : public ContentCodingTest {};

const Case kIdentity{"identity", ContentCoding::identity,
                     [](std::string_view t) { return std::string(t); }};
const auto kCompressed = testing::Values(
    Case{"gzip", ContentCoding::gzip, [](std::string_view t) { return deflated(t, 31); }},
    Case{"zlib", ContentCoding::deflate, [](std::string_view t) { return deflated(t, 15); }},
    Case{"bare_deflate", ContentCoding::deflate,
         [](std::string_view t) { return deflated(t, -15); }},
    Case{"br", ContentCoding::br, brotli});

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Plain, ContentCodingTest, testing::Values(kIdentity), name_of);
INSTANTIATE_TEST_SUITE_P(All, ContentCodingTest, kCompressed, name_of);
INSTANTIATE_TEST_SUITE_P(All, CompressedTest, kCompressed, name_of);

TEST_P(ContentCodingTest, GivesTheTextHoweverItIsCut) {
  const std::string text = sample();
  const std::string bytes = GetParam().encode(text);
  for (const std::size_t piece_size :
       {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{1000}, bytes.size()}) {
    const Decoded got = decoded(GetParam().coding, bytes, piece_size);
    EXPECT_EQ(got.error, std::nullopt);
    EXPECT_TRUE(got.complete);
    EXPECT_TRUE(got.text == text) << "in pieces of " << piece_size;
  }
}

TEST_P(ContentCodingTest, ShortTexts) {
  for (const std::string text : {"", "x", "hello"}) {
    const Decoded got = decoded(GetParam().coding, GetParam().encode(text), 1);
    EXPECT_EQ(got.text, text);
    EXPECT_EQ(got.error, std::nullopt);
    EXPECT_TRUE(got.complete);
  }
}

TEST_P(ContentCodingTest, TheBoundIsExact) {
  const std::string text = sample();
  const std::string bytes = GetParam().encode(text);
  EXPECT_EQ(decoded(GetParam().coding, bytes, 1000, text.size()).error, std::nullopt);
  EXPECT_EQ(decoded(GetParam().coding, bytes, 1000, text.size() - 1).error, DecodeErrc::too_large);
}

TEST_P(ContentCodingTest, ABombEndsAtTheBound) {
  const std::string bytes = GetParam().encode(std::string(5'000'000, 'x'));
  const Decoded got = decoded(GetParam().coding, bytes, bytes.size(), 100'000);
  EXPECT_EQ(got.error, DecodeErrc::too_large);
  EXPECT_LE(got.text.size(), 100'000U);
}

TEST_P(CompressedTest, ACutStreamGivesWhatCameAndIsNotComplete) {
  const std::string text = sample();
  const std::string bytes = GetParam().encode(text);
  const Decoded got = decoded(GetParam().coding, bytes.substr(0, bytes.size() / 2), 100);
  EXPECT_EQ(got.error, std::nullopt);
  EXPECT_FALSE(got.complete);
  EXPECT_FALSE(got.text.empty());
  EXPECT_TRUE(text.starts_with(got.text));
}

TEST_P(CompressedTest, DamageEndsInATextOrAnError) {
  const std::string bytes = GetParam().encode(sample());
  std::mt19937 random(11);  // NOLINT(cert-msc51-cpp): the same in every run
  for (int i = 0; i < 200; ++i) {
    std::string damaged = bytes;
    damaged[random() % std::min<std::size_t>(damaged.size(), 200)] =
        static_cast<char>(random() % 256);
    const Decoded got = decoded(GetParam().coding, damaged, 1 + random() % 5000, 200'000);
    EXPECT_LE(got.text.size(), 200'000U);
  }
}

TEST(ContentCoding, WhatIsNoStreamIsCorrupt) {
  for (const auto coding : {ContentCoding::gzip, ContentCoding::br}) {
    EXPECT_EQ(decoded(coding, "\xFF\xFF this is not compressed", 100).error, DecodeErrc::corrupt);
  }
  EXPECT_EQ(decoded(ContentCoding::deflate, "\xFF\xFF\xFF", 100).error, DecodeErrc::corrupt);
}

TEST(ContentCoding, GzipChecksTheSum) {
  std::string bytes = deflated("hello", 31);
  bytes[bytes.size() - 6] = static_cast<char>(bytes[bytes.size() - 6] + 1);
  EXPECT_EQ(decoded(ContentCoding::gzip, bytes, 1).error, DecodeErrc::corrupt);
}

TEST(ContentCoding, GzipMayHaveSeveralMembers) {
  const std::string bytes = deflated("hello, ", 31) + deflated("", 31) + deflated("world", 31);
  for (const std::size_t piece_size : {std::size_t{1}, bytes.size()}) {
    const Decoded got = decoded(ContentCoding::gzip, bytes, piece_size);
    EXPECT_EQ(got.text, "hello, world");
    EXPECT_TRUE(got.complete);
  }
}

TEST(ContentCoding, PaddingAfterTheEndIsIgnored) {
  const std::string padding(20, '\0');
  EXPECT_EQ(decoded(ContentCoding::gzip, deflated("a", 31) + padding, 3).text, "a");
  EXPECT_EQ(decoded(ContentCoding::deflate, deflated("a", 15) + padding, 3).text, "a");
  EXPECT_EQ(decoded(ContentCoding::br, brotli("a") + padding, 100).text, "a");
  EXPECT_EQ(decoded(ContentCoding::br, brotli("a") + padding, 3).error, std::nullopt);
}

// A server that flushes after each event: its text must come out with that piece.
TEST(ContentCoding, AFlushedPieceIsReadAtOnce) {
  z_stream stream{};
  ASSERT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
  const auto decoder = ContentDecoder::create(ContentCoding::gzip, kNoBound);
  for (int i = 0; i < 5; ++i) {
    std::string text = "data: " + std::to_string(i) + "\n\n";
    std::string out(200, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(text.data());
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    ASSERT_EQ(deflate(&stream, Z_SYNC_FLUSH), Z_OK);
    out.resize(out.size() - stream.avail_out);
    std::string_view piece = out;
    const auto got = decoder->next(piece);
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(*got, text);
  }
  deflateEnd(&stream);
}

TEST(ContentCoding, Names) {
  EXPECT_EQ(parse_content_coding(std::nullopt), ContentCoding::identity);
  EXPECT_EQ(parse_content_coding(""), ContentCoding::identity);
  EXPECT_EQ(parse_content_coding("Identity"), ContentCoding::identity);
  EXPECT_EQ(parse_content_coding("gzip"), ContentCoding::gzip);
  EXPECT_EQ(parse_content_coding("X-GZip"), ContentCoding::gzip);
  EXPECT_EQ(parse_content_coding("deflate"), ContentCoding::deflate);
  EXPECT_EQ(parse_content_coding("BR"), ContentCoding::br);
  EXPECT_EQ(parse_content_coding("zstd"), std::nullopt);
  EXPECT_EQ(parse_content_coding("gzip, br"), std::nullopt);
}

}  // namespace
}  // namespace stint::http
