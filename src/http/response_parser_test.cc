#include "http/response_parser.h"

#include <gtest/gtest.h>
// After gtest.h, which it does not include.
#include <rapidcheck/gtest.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::http {
namespace {

using Event = ResponseParser::Event;

constexpr std::size_t kBound = std::size_t{64} * 1024;

// All that a parser says about some bytes.
struct Parsed {
  std::optional<ResponseHead> head{};
  std::optional<std::uint64_t> length{};
  bool keep_alive = false;
  std::string body{};
  bool ended = false;
  bool may_end_here = false;
  std::string error{};
  std::string left{};  // not taken

  [[nodiscard]] int status() const { return head ? head->status : 0; }
};

Parsed parse(const std::vector<std::string>& pieces, ResponseTo to = ResponseTo::other_request,
             std::size_t bound = kBound) {
  ResponseParser parser(to, bound);
  Parsed parsed;
  for (const std::string& piece : pieces) {
    std::string_view rest = piece;
    while (!parsed.ended && parsed.error.empty()) {
      const auto event = parser.next(rest);
      if (!event) {
        parsed.error = event.error();
      } else if (*event == Event::need_more) {
        EXPECT_TRUE(rest.empty());
        break;
      } else if (*event == Event::head) {
        EXPECT_FALSE(parsed.head.has_value());
        parsed.head = parser.head();
        parsed.length = parser.content_length();
        parsed.keep_alive = parser.keep_alive();
      } else if (*event == Event::body) {
        EXPECT_FALSE(parser.body().empty());
        parsed.body += parser.body();
      } else {
        parsed.ended = true;
      }
    }
    parsed.left += rest;
  }
  parsed.may_end_here = parser.may_end_here();
  return parsed;
}

std::vector<std::string> bytes_of(std::string_view text) {
  std::vector<std::string> pieces;
  for (const char c : text) pieces.emplace_back(1, c);
  return pieces;
}

// In one piece and byte by byte, which must come to the same.
Parsed parse(const std::string& text, ResponseTo to = ResponseTo::other_request,
             std::size_t bound = kBound) {
  const Parsed whole = parse(std::vector<std::string>{text}, to, bound);
  const Parsed cut = parse(bytes_of(text), to, bound);
  EXPECT_EQ(whole.error, cut.error) << text;
  EXPECT_EQ(whole.status(), cut.status());
  EXPECT_EQ(whole.body, cut.body);
  EXPECT_EQ(whole.ended, cut.ended);
  EXPECT_TRUE(whole.left == cut.left || !whole.error.empty());
  return whole;
}

std::string error_of(const std::string& head, const std::string& body = "") {
  return parse(head + "\r\n" + body).error;
}

TEST(ResponseParser, ABodyOfKnownLength) {
  const Parsed got =
      parse("HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_EQ(got.error, "");
  EXPECT_EQ(got.status(), 201);
  EXPECT_EQ(got.head->reason, "Created");
  EXPECT_EQ(got.head->fields.get("content-type"), "text/plain");
  EXPECT_EQ(got.length, 5U);
  EXPECT_EQ(got.body, "hello");
  EXPECT_TRUE(got.keep_alive);
  EXPECT_TRUE(got.ended);
  EXPECT_TRUE(got.may_end_here);
}

TEST(ResponseParser, WhatFollowsTheEndIsLeft) {
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP").left, "HTTP");
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nx").left, "x");
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nx").left, "x");
}

TEST(ResponseParser, ABodyInChunks) {
  const Parsed got = parse(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "3\r\nabc\r\n0000a;name=\"value\"\r\n0123456789\r\n2\r\n\r\n\r\n0\r\n"
      "Trailer: x\r\n\r\n");
  EXPECT_EQ(got.error, "");
  EXPECT_EQ(got.body, "abc0123456789\r\n");
  EXPECT_EQ(got.length, std::nullopt);
  EXPECT_TRUE(got.keep_alive);
  EXPECT_TRUE(got.ended);
}

TEST(ResponseParser, ABodyUntilTheConnectionEnds) {
  const Parsed got = parse("HTTP/1.1 200 OK\r\n\r\nsome bytes");
  EXPECT_EQ(got.body, "some bytes");
  EXPECT_FALSE(got.ended);
  EXPECT_TRUE(got.may_end_here);
  EXPECT_FALSE(got.keep_alive);
  EXPECT_EQ(got.length, std::nullopt);
}

TEST(ResponseParser, MayNotEndInTheMiddle) {
  for (const std::string_view text :
       {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "HTTP/1.1 103 Early Hints\r\n\r\n", ""}) {
    EXPECT_FALSE(parse(std::string(text)).may_end_here) << text;
  }
}

TEST(ResponseParser, HeadAnd204And304HaveNoBody) {
  const Parsed head =
      parse("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", ResponseTo::head_request);
  EXPECT_TRUE(head.ended);
  EXPECT_TRUE(head.keep_alive);
  EXPECT_EQ(head.length, 5U);
  EXPECT_TRUE(
      parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", ResponseTo::head_request)
          .ended);
  EXPECT_TRUE(parse("HTTP/1.1 200 OK\r\n\r\n", ResponseTo::head_request).keep_alive);

  const Parsed no_content = parse("HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_TRUE(no_content.ended);
  EXPECT_TRUE(no_content.keep_alive);
  const Parsed not_modified = parse("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
  EXPECT_TRUE(not_modified.ended);
  EXPECT_TRUE(not_modified.keep_alive);
  EXPECT_EQ(not_modified.length, 5U);
}

TEST(ResponseParser, A204ThatAnnouncesABodyEndsTheConnection) {
  const Parsed got = parse("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n");
  EXPECT_TRUE(got.ended);
  EXPECT_EQ(got.length, std::nullopt);
  EXPECT_FALSE(got.keep_alive);
  EXPECT_TRUE(parse("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n").keep_alive);
  EXPECT_FALSE(parse("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n").keep_alive);
}

TEST(ResponseParser, SkipsInterimHeads) {
  const Parsed got = parse(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n"
      "Content-Length: 7\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ(got.status(), 200);
  EXPECT_EQ(got.head->fields.count("Link"), 0U);
  EXPECT_EQ(got.body, "ok");
}

TEST(ResponseParser, WhetherTheConnectionGoesOn) {
  const auto keeps = [](const std::string& version, const std::string& field) {
    return parse("HTTP/" + version + " 200 OK\r\nContent-Length: 0\r\n" + field + "\r\n")
        .keep_alive;
  };
  EXPECT_TRUE(keeps("1.1", ""));
  EXPECT_TRUE(keeps("1.2", ""));
  EXPECT_TRUE(keeps("1.1", "Connection: x, keep-alive\r\n"));
  EXPECT_FALSE(keeps("1.1", "Connection: Close\r\n"));
  EXPECT_FALSE(keeps("1.1", "Connection: x\r\nconnection: keep-alive ,close\r\n"));
  EXPECT_FALSE(keeps("1.0", ""));
  EXPECT_TRUE(keeps("1.0", "Connection: Keep-Alive\r\n"));
  EXPECT_FALSE(keeps("1.0", "Connection: keep-alive, close\r\n"));
}

TEST(ResponseParser, ReadsWhatServersReallySend) {
  EXPECT_EQ(parse("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n").status(), 200);
  EXPECT_EQ(parse("HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n").status(), 200);
  EXPECT_EQ(parse("HTTP/1.1 429 Too Many Requests\nContent-Length: 0\n\n").status(), 429);
  EXPECT_EQ(parse("HTTP/1.1 999 Caf\xC3\xA9\r\nContent-Length: 0\r\n\r\n").status(), 999);

  const Parsed got = parse(
      "HTTP/1.1 200 OK\r\nEmpty:\r\nSpaces:  \t a b \t\r\nBefore : x\r\n"
      "Utf8: \xC3\xA9\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(got.head->fields.get("Empty"), "");
  EXPECT_EQ(got.head->fields.get("Spaces"), "a b");
  EXPECT_EQ(got.head->fields.get("Before"), "x");
  EXPECT_EQ(got.head->fields.get("Utf8"), "\xC3\xA9");
}

TEST(ResponseParser, RefusesWhatIsNoStatusLine) {
  for (const std::string_view line : {"",
                                      " HTTP/1.1 200 OK",
                                      "HTTP/2 200",
                                      "HTTP/2.0 200 OK",
                                      "HTTP/1.1",
                                      "HTTP/1.1 ",
                                      "HTTP/1.1 20",
                                      "HTTP/1.1 20x OK",
                                      "HTTP/1.1 2000 OK",
                                      "HTTP/1.1 099 Low",
                                      "HTTP/1.1 000 Zero",
                                      "HTTP/1.1  200 OK",
                                      "HTTP/1.1\t200 OK",
                                      "http/1.1 200 OK",
                                      "HTTP/1.x 200 OK",
                                      "HTTP/11 200 OK",
                                      "ICY 200 OK",
                                      "SSH-2.0-OpenSSH_9.2",
                                      "HTTP/1.1 200 O\x01K",
                                      "HTTP/1.1 200 O\rK",
                                      "+HTTP/1.1 200 OK"}) {
    EXPECT_NE(error_of(std::string(line) + "\r\nContent-Length: 0\r\n"), "") << line;
  }
}

TEST(ResponseParser, WhatCannotBecomeAStatusLineIsRefusedBeforeItsEnd) {
  EXPECT_NE(parse("\x16\x03\x01\x02").error, "");
  EXPECT_NE(parse("SSH-").error, "");
  EXPECT_EQ(parse("HTTP/").error, "");
}

TEST(ResponseParser, RefusesMalformedFields) {
  using namespace std::string_literals;
  for (const std::string& line :
       {": no name"s, "no colon"s, " : x"s, "sp ace: x"s, "tab\tname: x"s, " folded: x"s,
        "\tfolded: x"s, "ctl\x01: x"s, "a: b\x01"s, "a: b\0c"s, "a: b\x7F"s, "a: b\rc: d"s,
        "caf\xC3\xA9: x"s, "(a): x"s, "a: b\r\n c"s}) {
    EXPECT_NE(error_of("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + line + "\r\n"), "") << line;
  }
}

TEST(ResponseParser, RefusesAmbiguousFraming) {
  for (const std::string_view fields :
       {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length : 5\r\nTransfer-Encoding : chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length:\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length: 5,\r\n",
        "Content-Length: ,5\r\n",
        "Content-Length: 5,,5\r\n",
        "Content-Length: 5.0\r\n",
        "Content-Length: 9223372036854775808\r\n",
        "Content-Length: 18446744073709551621\r\n",
        "Content-Length: 99999999999999999999999\r\n",
        "Transfer-Encoding:\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding: chunked;q=1\r\n"}) {
    EXPECT_NE(error_of("HTTP/1.1 200 OK\r\n" + std::string(fields), "0\r\n\r\n"), "") << fields;
  }
  EXPECT_NE(error_of("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n"), "");
  EXPECT_NE(error_of("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n"), "");
}

TEST(ResponseParser, EqualLengthsBecomeOne) {
  for (const std::string_view fields :
       {"Content-Length: 5\r\ncontent-length: 5\r\n", "Content-Length: 5, 05 ,5\r\n"}) {
    const Parsed got = parse("HTTP/1.1 200 OK\r\n" + std::string(fields) + "\r\nhello");
    EXPECT_EQ(got.error, "");
    EXPECT_EQ(got.body, "hello");
    EXPECT_EQ(got.head->fields.count("Content-Length"), 1U);
    EXPECT_EQ(got.head->fields.get("Content-Length"), "5");
  }
}

TEST(ResponseParser, RefusesMalformedChunks) {
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string_view body : {"\r\n",
                                      "x\r\n",
                                      "+5\r\n",
                                      "-1\r\n",
                                      "0x5\r\n",
                                      " 5\r\n",
                                      "5 5\r\n",
                                      "5,\r\n",
                                      "5\n",
                                      "5\rx",
                                      ";a\r\n",
                                      "5;a\nb",
                                      "3\r\nabcd\r\n",
                                      "3\r\nabc\n0\r\n\r\n",
                                      "3\r\nabc\rx",
                                      "3\r\nabcx",
                                      "10000000000000000\r\n",
                                      "8000000000000000\r\n",
                                      "FFFFFFFFFFFFFFFF\r\n",
                                      "0\r\n\n",
                                      "0\r\n\rx",
                                      "0\r\nTrailer: x\n",
                                      "0\r\nTrailer: x\rx"}) {
    EXPECT_NE(parse(head + std::string(body)).error, "") << body;
  }
  // The largest size that is accepted; only its beginning has come.
  EXPECT_EQ(parse(head + "FFFFFFFFFFFFFFF\r\nabc").body, "abc");
}

TEST(ResponseParser, TheBoundOfTheHeadIsExact) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  EXPECT_EQ(parse(head, ResponseTo::other_request, head.size()).error, "");
  EXPECT_NE(parse(head, ResponseTo::other_request, head.size() - 1).error, "");
}

TEST(ResponseParser, TheBoundHoldsForWhatStandsBesideTheHead) {
  std::string interim;
  for (int i = 0; i < 100; ++i) interim += "HTTP/1.1 103 Early Hints\r\n\r\n";
  EXPECT_NE(parse(interim, ResponseTo::other_request, 1000).error, "");
  EXPECT_NE(
      parse("HTTP/1.1 200 " + std::string(20'000, 'x'), ResponseTo::other_request, 1000).error, "");
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
  EXPECT_NE(
      parse(chunked + "A: " + std::string(20'000, 'x'), ResponseTo::other_request, 1000).error, "");
  EXPECT_NE(parse(chunked.substr(0, chunked.size() - 3) + "5;" + std::string(20'000, 'x')).error,
            "");
}

TEST(ResponseParser, KnowsWhetherAnythingCame) {
  ResponseParser parser(ResponseTo::other_request, kBound);
  EXPECT_FALSE(parser.begun());
  std::string_view piece = "H";
  EXPECT_TRUE(parser.next(piece).has_value());
  EXPECT_TRUE(parser.begun());
}

// ---- Properties ----

RC_GTEST_PROP(ResponseParserProperty, AnyBodyInAnyChunksAndPieces, ()) {
  const std::string body = *rc::gen::arbitrary<std::string>();
  std::string text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (std::size_t at = 0; at < body.size();) {
    const auto size = *rc::gen::inRange<std::size_t>(1, body.size() - at + 1);
    std::array<char, 20> digits{};
    std::snprintf(digits.data(), digits.size(), "%zx", size);
    text += std::string(digits.data()) + "\r\n" + body.substr(at, size) + "\r\n";
    at += size;
  }
  text += "0\r\n\r\n";
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < text.size();) {
    pieces.push_back(text.substr(at, *rc::gen::inRange<std::size_t>(1, 20)));
    at += pieces.back().size();
  }
  const Parsed got = parse(pieces);
  RC_ASSERT(got.error.empty());
  RC_ASSERT(got.ended);
  RC_ASSERT(got.body == body);
}

RC_GTEST_PROP(ResponseParserProperty, DamageComesToTheSameHoweverItIsCut, ()) {
  std::string text =
      "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
      "Connection: close\r\n\r\n5;x\r\nhello\r\n0\r\nA: b\r\n\r\n";
  const int times = *rc::gen::inRange(1, 4);
  for (int i = 0; i < times; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        text[at] = *rc::gen::arbitrary<char>();
        break;
      case 1:
        text.insert(at, 1, *rc::gen::element('\r', '\n', ' ', ':', '0', 'f', ','));
        break;
      default:
        text.erase(at, 1);
    }
  }
  (void)parse(text);  // compares
}

}  // namespace
}  // namespace stint::http
