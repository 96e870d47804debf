#include "http/chunk_reader.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stint::http {
namespace {

struct Read {
  std::string body;
  std::string left;
};

// The body and what stands behind it; nothing if it is malformed or does not end. Fed in pieces of
// `size` bytes.
std::optional<Read> read(std::string_view text, std::size_t size) {
  ChunkReader reader;
  Read result;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, size);
    text.remove_prefix(piece.size());
    std::string_view rest = piece;
    std::string_view data;
    for (;;) {
      const ChunkReader::Result step = reader.next(rest, data);
      if (step == ChunkReader::Result::data) {
        result.body += data;
        continue;
      }
      if (step == ChunkReader::Result::malformed) return std::nullopt;
      if (step == ChunkReader::Result::end) {
        result.left = std::string(rest) + std::string(text);
        return result;
      }
      EXPECT_TRUE(rest.empty());
      break;
    }
  }
  return std::nullopt;
}

TEST(ChunkReaderTest, ReadsWhateverThePieces) {
  const std::string text =
      "5\r\nhello\r\n"
      "00A;name=value;flag\r\n 0123456\r\n\r\n"
      "1; q=\"quoted\"\r\n!\r\n"
      "0;last\r\nTrailer: x\r\nOther:\r\n\r\nGET /";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    const std::optional<Read> result = read(text, size);
    ASSERT_TRUE(result.has_value()) << size;
    EXPECT_EQ(result->body, "hello 0123456\r\n!") << size;
    EXPECT_EQ(result->left, "GET /") << size;
  }
}

TEST(ChunkReaderTest, AnEmptyBodyIsItsEnd) {
  EXPECT_EQ(read("0\r\n\r\n", 1)->body, "");
  EXPECT_EQ(read("000\r\n\r\nx", 100)->left, "x");
}

TEST(ChunkReaderTest, RefusesWhatTwoReadersCouldReadDifferently) {
  for (const std::string_view bad : {
           "\r\n",
           "x\r\n",
           " 5\r\nhello\r\n",
           "5 \r\nhello\r\n",
           "+5\r\nhello\r\n",
           "-1\r\n",
           "0x5\r\nhello\r\n",
           "5\nhello\r\n",
           "5\rhello\r\n",
           "5\r\nhelloX\r\n",
           "5\r\nhello\n",
           "5\r\nhello0\r\n\r\n",
           ";x\r\n",
           "5\r\r\nhello",
           "5;a\nb\r\nhello\r\n",
           "5;\x01\r\nhello\r\n",
           "0\r\n folded\r\n\r\n",
           "0\r\nA: b\n\r\n",
           "0\r\n\n",
           "0\r\nA\x00: b\r\n\r\n",
           "10000000000000000\r\n",     // 2^64
           "FFFFFFFFFFFFFFFF\r\n",      // the last that 64 bits hold: far too much all the same
           "0000000000000000\r\n\r\n",  // and no endless zeros
       }) {
    EXPECT_FALSE(read(bad, bad.size()).has_value()) << bad;
    EXPECT_FALSE(read(bad, 1).has_value()) << bad;
  }
}

TEST(ChunkReaderTest, WhatSurroundsTheDataIsBounded) {
  std::string extensions;
  for (int i = 0; i < 200; ++i) extensions += "1;" + std::string(100, 'e') + "\r\nx\r\n";
  EXPECT_FALSE(read(extensions + "0\r\n\r\n", 1000).has_value());

  const std::string trailer(20'000, 't');
  EXPECT_FALSE(read("0\r\n" + trailer + ": x\r\n\r\n", 1000).has_value());
  std::string many = "0\r\n";
  for (int i = 0; i < 10'000; ++i) many += "a:b\r\n";
  EXPECT_FALSE(read(many + "\r\n", 1000).has_value());
}

TEST(ChunkReaderTest, ATrailerLineIsANameAndAColon) {
  EXPECT_TRUE(read("0\r\nname: value\r\nother:\r\n\r\n", 1000).has_value());
  for (const char* line : {"nothing", "two words: x", ": x", "name : x", "na\tme: x"}) {
    EXPECT_FALSE(read("0\r\n" + std::string(line) + "\r\n\r\n", 1000).has_value()) << line;
  }
}

TEST(ChunkReaderTest, AfterAFaultItStaysMalformed) {
  ChunkReader reader;
  std::string_view data;
  std::string_view bytes = "x";
  EXPECT_EQ(reader.next(bytes, data), ChunkReader::Result::malformed);
  bytes = "0\r\n\r\n";
  EXPECT_EQ(reader.next(bytes, data), ChunkReader::Result::malformed);
}

}  // namespace
}  // namespace stint::http
