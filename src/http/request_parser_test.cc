#include "http/request_parser.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "http/server.h"

namespace stint::http {
namespace {

std::expected<ParsedHead, Refusal> parse(std::string_view text) {
  return parse_head(text, ServerLimits());
}

TEST(RequestParserTest, ReadsLineAndFields) {
  const auto parsed = parse(
      "POST /v1//%63hat?x=%41&y HTTP/1.1\r\n"
      "Host: API.Example.com:8080\r\n"
      "X-Empty:\r\n"
      "x-padded: \t a b \t\r\n"
      "X-Utf8: caf\xc3\xa9\r\n"
      "Content-Length: 5\r\n\r\n");
  ASSERT_TRUE(parsed) << parsed.error().message;
  const RequestHead& head = parsed->head;
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "/v1//%63hat?x=%41&y");
  EXPECT_EQ(head.path, "/v1/chat");
  EXPECT_EQ(head.query, "?x=%41&y");
  EXPECT_EQ(head.host, "api.example.com");
  EXPECT_EQ(head.minor_version, 1);
  EXPECT_TRUE(head.keep_alive);
  EXPECT_TRUE(head.has_body);
  EXPECT_EQ(head.fields.get("X-Empty"), "");
  EXPECT_EQ(head.fields.get("X-Padded"), "a b");
  EXPECT_EQ(head.fields.get("X-Utf8"), "caf\xc3\xa9");
  EXPECT_FALSE(parsed->framing.chunked);
  EXPECT_EQ(parsed->framing.length, 5U);
}

TEST(RequestParserTest, AnAbsoluteTargetNamesTheHost) {
  const auto parsed = parse("GET http://Real.example:81/a?b HTTP/1.1\r\nHost: other\r\n\r\n");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->head.target, "/a?b");
  EXPECT_EQ(parsed->head.host, "real.example");
  const auto bare = parse("GET http://real.example?q HTTP/1.1\r\nHost: other\r\n\r\n");
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->head.target, "/?q");
  EXPECT_EQ(bare->head.path, "/");
  EXPECT_EQ(bare->head.query, "?q");
}

// RFC 9112, section 3.2.2: one host, whoever asks for it.
TEST(RequestParserTest, AnAbsoluteTargetReplacesTheHostField) {
  const auto field = [](const std::string& target, const std::string& host) {
    const auto parsed = parse("GET " + target + " HTTP/1.1\r\nhost: " + host + "\r\n\r\n");
    EXPECT_TRUE(parsed);
    EXPECT_EQ(parsed->head.fields.count("Host"), 1U);
    return std::string(parsed->head.fields.get("Host").value_or("none"));
  };
  EXPECT_EQ(field("http://Real.example:81/a", "other"), "real.example:81");
  EXPECT_EQ(field("http://real.example.:80/", "other"), "real.example");
  EXPECT_EQ(field("https://real.example:443/", "other"), "real.example");
  EXPECT_EQ(field("/", "Real.Example.:8080"), "real.example:8080");
  EXPECT_EQ(field("/", "real.example:80"), "real.example");
  const auto old = parse("GET http://real.example/ HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->head.fields.get("Host"), "real.example");
  EXPECT_FALSE(parse("GET http://real.example/ HTTP/1.1\r\nHost: a%62\r\n\r\n"));
}

TEST(RequestParserTest, ThereAreNoTunnels) {
  for (const char* target : {"example.com:443", "/x", "*", "http://a/"}) {
    const auto parsed = parse("CONNECT " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n\r\n");
    ASSERT_FALSE(parsed) << target;
    EXPECT_EQ(parsed.error().status, 501) << target;
  }
}

TEST(RequestParserTest, OptionsMayAskForTheServer) {
  EXPECT_EQ(parse("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")->head.path, "*");
  EXPECT_FALSE(parse("GET * HTTP/1.1\r\nHost: a\r\n\r\n"));
}

TEST(RequestParserTest, HostsAreReadWithoutTheirPort) {
  const auto host = [](const std::string& value) -> std::string {
    const auto parsed = parse("GET / HTTP/1.1\r\nHost: " + value + "\r\n\r\n");
    return parsed ? parsed->head.host : "refused";
  };
  EXPECT_EQ(host("Example.COM"), "example.com");
  EXPECT_EQ(host("example.com:80"), "example.com");
  EXPECT_EQ(host("example.com:"), "example.com");
  EXPECT_EQ(host("[2001:DB8::1]:80"), "[2001:db8::1]");
  EXPECT_EQ(host("[::1]"), "[::1]");
  EXPECT_EQ(host("[0:0::0:1]"), "[::1]");
  EXPECT_EQ(host("Example.com."), "example.com");
  EXPECT_EQ(host("example.com.:8080"), "example.com");
  EXPECT_EQ(host("a_b-c"), "a_b-c");
  EXPECT_EQ(host(""), "");
  for (const char* bad :
       {"a b",     "a/b",   "user@host", "a:b",         "a:80:80",    "[::1",   "::1",
        "[::1]80", "[]",    "a:123456",  "a\\b",        "a\"b",       "[::1]x", "a%62",
        "%61",     "a%",    "a..",       "a..b",        ".a",         ".",      "a:65536",
        ":80",     "[::g]", "[1:2]",     "[127.0.0.1]", "caf\xc3\xa9"}) {
    EXPECT_EQ(host(bad), "refused") << bad;
  }
}

TEST(RequestParserTest, KeepAliveFollowsTheVersion) {
  const auto keep = [](const std::string& version, const std::string& connection) {
    const std::string field = connection.empty() ? "" : "Connection: " + connection + "\r\n";
    return parse("GET / HTTP/" + version + "\r\nHost: a\r\n" + field + "\r\n")->head.keep_alive;
  };
  EXPECT_TRUE(keep("1.1", ""));
  EXPECT_FALSE(keep("1.1", "close"));
  EXPECT_FALSE(keep("1.1", "x, Close"));
  EXPECT_FALSE(keep("1.0", ""));
  EXPECT_TRUE(keep("1.0", "Keep-Alive"));
  EXPECT_TRUE(keep("1.9", "")) << "a later minor version is read as 1.1";
}

TEST(RequestParserTest, Expectations) {
  const auto with = [](const std::string& fields) {
    return parse("POST / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n");
  };
  EXPECT_TRUE(with("Expect: 100-continue\r\nContent-Length: 1\r\n")->expects_continue);
  EXPECT_TRUE(with("Expect: 100-Continue\r\nTransfer-Encoding: chunked\r\n")->expects_continue);
  EXPECT_FALSE(with("Expect: 100-continue\r\n")->expects_continue) << "there is no body";
  EXPECT_EQ(with("Expect: something\r\n").error().status, 417);
}

// `bytes` fed one at a time: the length of the head, or the status of the refusal.
std::optional<std::size_t> scan(std::string_view bytes, const ServerLimits& limits, int& status) {
  HeadScanner scanner;
  for (std::size_t i = 1; i <= bytes.size(); ++i) {
    const auto found = scanner.scan(bytes.substr(0, i), limits);
    if (!found) {
      status = found.error().status;
      return i;
    }
    if (*found) return *found;
  }
  return std::nullopt;
}

TEST(HeadScannerTest, FindsTheEndHoweverItArrives) {
  const std::string head = "GET / HTTP/1.1\r\nA: b\r\n\r\n";
  int status = 0;
  EXPECT_EQ(scan(head + "rest", ServerLimits(), status), head.size());
  EXPECT_EQ(status, 0);
  HeadScanner at_once;
  EXPECT_EQ(at_once.scan(head + "rest", ServerLimits()).value(), head.size());
}

TEST(HeadScannerTest, LimitsHoldToTheByte) {
  ServerLimits limits;
  limits.request_line_bytes = 20;
  limits.header_bytes = 30;
  limits.header_count = 3;
  const std::string line = "GET /56789 HTTP/1.1x";  // 20 bytes
  ASSERT_EQ(line.size(), 20U);
  int status = 0;
  scan(line + "\r\n\r\n", limits, status);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(scan(line + "x\r\n\r\n", limits, status), 21U) << "at the first byte too many";
  EXPECT_EQ(status, 414);

  status = 0;
  EXPECT_TRUE(scan("GET\r\nA: " + std::string(23, 'b') + "\r\n\r\n", limits, status));
  EXPECT_EQ(status, 0);
  scan("GET\r\nA: " + std::string(40, 'b') + "\r\n\r\n", limits, status);
  EXPECT_EQ(status, 431);

  status = 0;
  EXPECT_TRUE(scan("GET\r\na:\r\nb:\r\nc:\r\n\r\n", limits, status));
  EXPECT_EQ(status, 0);
  scan("GET\r\na:\r\nb:\r\nc:\r\nd:\r\n\r\n", limits, status);
  EXPECT_EQ(status, 431);
}

// Whatever comes: the pieces it comes in change nothing, and what is accepted is unambiguous.
TEST(HeadScannerTest, RandomBytesInRandomPieces) {
  constexpr unsigned kSeed = 5;
  std::mt19937 random(kSeed);
  const std::vector<std::string> parts = {"GET",
                                          " ",
                                          "/",
                                          "/a%41",
                                          "HTTP/1.1",
                                          "HTTP/1.0",
                                          "\r\n",
                                          "\r\n",
                                          "\r",
                                          "\n",
                                          "Host",
                                          ": ",
                                          ":",
                                          "a",
                                          "Content-Length",
                                          "5",
                                          ",",
                                          "Transfer-Encoding",
                                          "chunked",
                                          "\t",
                                          "X",
                                          "\x80",
                                          "GET / HTTP/1.1\r\n",
                                          "Host: a\r\n",
                                          "Content-Length: 3\r\n",
                                          "Connection: close\r\n",
                                          "Transfer-Encoding: chunked\r\n",
                                          std::string(1, '\0'),
                                          "Expect: 100-continue\r\n"};
  ServerLimits limits;
  limits.request_line_bytes = 30;
  limits.header_bytes = 120;
  limits.header_count = 5;
  int accepted = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string bytes = random() % 2 == 0 ? "GET / HTTP/1.1\r\nHost: a\r\n" : "";
    for (unsigned k = random() % 8; k > 0; --k) bytes += parts[random() % parts.size()];
    bytes += "\r\n\r\n";
    int by_one = 0;
    int at_once = 0;
    const auto pieces = scan(bytes, limits, by_one);
    HeadScanner scanner;
    const auto whole = scanner.scan(bytes, limits);
    if (!whole) at_once = whole.error().status;
    ASSERT_EQ(by_one, at_once) << bytes << ", seed " << kSeed;
    if (!whole) continue;
    ASSERT_EQ(pieces, *whole) << bytes << ", seed " << kSeed;
    const auto parsed = parse_head(std::string_view(bytes).substr(0, whole->value()), limits);
    if (!parsed) continue;
    ++accepted;
    const Fields& fields = parsed->head.fields;
    ASSERT_LE(fields.count("Content-Length") + fields.count("Transfer-Encoding"), 1U) << bytes;
    ASSERT_EQ(fields.count("Transfer-Encoding"), parsed->framing.chunked ? 1U : 0U) << bytes;
    ASSERT_FALSE(parsed->framing.chunked && parsed->head.minor_version == 0) << bytes;
    ASSERT_TRUE(parsed->head.path.starts_with('/')) << bytes;
  }
  EXPECT_GT(accepted, 1000);
}

TEST(HeadScannerTest, LinesEndWithBothBytes) {
  for (const char* bad : {"GET / HTTP/1.1\n\n", "GET / HTTP/1.1\r\nA: b\n\r\n", "\n"}) {
    int status = 0;
    scan(bad, ServerLimits(), status);
    EXPECT_EQ(status, 400) << bad;
  }
}

}  // namespace
}  // namespace stint::http
