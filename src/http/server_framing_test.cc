// Case C16: what two readers could frame differently never reaches a handler.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "http/server_testing.h"

namespace stint::http {
namespace {

class FramingTest : public testing::Test {
 protected:
  TestServer server_{echo_request};

  // Sends it and expects the refusal, the close, and that no handler ran.
  void expect_refused(const std::string& request, int status = 400) {
    SCOPED_TRACE(request);
    net::RawClient client(server_.port());
    ASSERT_TRUE(client.send(request));
    const RawAnswer answer = read_answer(client);
    EXPECT_EQ(answer.status, status);
    EXPECT_TRUE(answer.head.contains("Connection: close\r\n")) << answer.head;
    EXPECT_TRUE(answer.head.contains("Content-Type: application/json\r\n")) << answer.head;
    EXPECT_TRUE(answer.body.starts_with(R"({"error":{"message":")")) << answer.body;
    EXPECT_TRUE(answer.body.contains(R"("type":"invalid_request_error","code":")")) << answer.body;
    client.close_sending();
    EXPECT_EQ(client.read_to_end(), "") << "closed, and nothing else is answered";
    EXPECT_EQ(server_.requests, 0);
    const std::vector<int> refused = server_.refused();
    ASSERT_FALSE(refused.empty());
    EXPECT_EQ(refused.back(), status);
  }
};

// The second request that an attacker hides in the first.
const std::string kHidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";

TEST_F(FramingTest, LengthAndEncoding) {
  expect_refused(
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
      "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
      kHidden);
  expect_refused(
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
      "Content-Length: 5\r\n\r\n0\r\n\r\n" +
      kHidden);
}

TEST_F(FramingTest, MoreThanOneLength) {
  expect_refused(
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello");
  expect_refused(
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello" +
      kHidden);
  expect_refused(
      "POST / HTTP/1.1\r\nHost: a\r\ncontent-length: 0\r\nContent-Length: 5\r\n\r\nhello");
}

TEST_F(FramingTest, MalformedLengths) {
  for (const char* length : {"+5", "-5", "5,5", "5, 5", "0x5", "", " ", "5 5", "5.0", "5e0", "five",
                             "5;", "\"5\"", "5_0", "\xd9\xa5"}) {
    expect_refused("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::string(length) +
                   "\r\n\r\nhello" + kHidden);
  }
}

TEST_F(FramingTest, EncodingsOtherThanChunked) {
  for (const char* encoding :
       {"xchunked", "chunkedx", "chunked, identity", "identity", "identity, chunked",
        "gzip, chunked", "chunked, chunked", "", "chunked;q=1", ",chunked", "chunked,",
        "\"chunked\"", "ch\x0bunked", "chunked\x0b"}) {
    expect_refused("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: " + std::string(encoding) +
                   "\r\n\r\n0\r\n\r\n" + kHidden);
  }
  expect_refused(
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
      "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  expect_refused(
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
      "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n");
  expect_refused(
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n"
      "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
}

TEST_F(FramingTest, ChunkedInOldHttp) {
  expect_refused("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
}

TEST_F(FramingTest, MalformedFieldLines) {
  for (const char* line :
       {"Content-Length : 5", "Transfer-Encoding : chunked", "Content-Length\t: 5", ": 5",
        " Content-Length: 5", "\tContent-Length: 5", "X: a\r\n Content-Length: 5", "NoColon",
        "X: a\rY: b", "X: a\x01", "X: a\x7f", "X Y: a", "X@: a", "X\x80: a", "X\x0b: a",
        "(comment): a", "X: a\nContent-Length: 5", "\r: x"}) {
    expect_refused("POST / HTTP/1.1\r\nHost: a\r\n" + std::string(line) + "\r\n\r\n");
  }
  using namespace std::string_literals;
  expect_refused("GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"s);
  expect_refused("GET / HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n"s);
}

TEST_F(FramingTest, Hosts) {
  expect_refused("GET / HTTP/1.1\r\n\r\n");
  expect_refused("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n");
  expect_refused("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n");
  expect_refused("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n");
  expect_refused("GET / HTTP/1.1\r\nHost: a b\r\n\r\n");
  expect_refused("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n");
}

TEST_F(FramingTest, MalformedRequestLines) {
  for (const char* line : {"GET",
                           "GET /",
                           "GET / ",
                           "GET  / HTTP/1.1",
                           "GET /  HTTP/1.1",
                           " GET / HTTP/1.1",
                           "GET / HTTP/1.1 ",
                           "GET / http/1.1",
                           "GET / HTTP/1",
                           "GET / HTTP/1.1x",
                           "GET / HTTP/11",
                           "GET / HTTP/+.1",
                           "G@T / HTTP/1.1",
                           "GET /a b HTTP/1.1",
                           "GET a HTTP/1.1",
                           "GET example.com:443 HTTP/1.1",
                           "GET /\t HTTP/1.1",
                           "GET /\x80 HTTP/1.1",
                           "GET /# HTTP/1.1",
                           "GET http:///x HTTP/1.1",
                           "GET http://a@b/ HTTP/1.1",
                           "GET\t/\tHTTP/1.1",
                           "\x16\x03\x01\x02"}) {
    expect_refused(std::string(line) + "\r\nHost: a\r\n\r\n");
  }
  expect_refused("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505);
  expect_refused("CONNECT example.com:443 HTTP/1.1\r\nHost: a\r\n\r\n", 501);
  expect_refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505);
  expect_refused("GET / HTTP/1.1\nHost: a\n\n");
  expect_refused("GET / HTTP/1.1\r\nHost: a\n\n");
}

TEST_F(FramingTest, PathsWithoutASafeReading) {
  for (const char* path :
       {"/%00", "/%0a", "/%zz", "/%", "/a\\b", "/%5c", "/..", "/a/../../b", "/%2e%2e/x"}) {
    expect_refused("GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n");
  }
}

TEST_F(FramingTest, ExpectationsThatNobodyCanMeet) {
  expect_refused("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: magic\r\n\r\nx", 417);
}

// These are found while the handler reads the body: it gets an error, and the client its answer.
TEST_F(FramingTest, MalformedChunks) {
  int requests = 0;
  for (const char* body : {"5\nhello\r\n0\r\n\r\n", "+5\r\nhello\r\n0\r\n\r\n", "zz\r\n",
                           "5\r\nhelloXX0\r\n\r\n", "-1\r\n", "0x5\r\nhello\r\n"}) {
    net::RawClient client(server_.port());
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" +
                std::string(body));
    client.close_sending();
    const RawAnswer answer = read_answer(client);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_TRUE(answer.head.contains("Connection: close\r\n"));
    EXPECT_EQ(client.read_to_end(), "");
    ++requests;
  }
  EXPECT_EQ(server_.requests, requests);
}

TEST_F(FramingTest, WhatIsUnusualButClearIsServed) {
  for (const char* request :
       {"GET / HTTP/1.1\r\nHost:\r\n\r\n", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nhOsT:a\r\n\r\n", "GET / HTTP/1.0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 000\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n", "M-SEARCH / HTTP/1.1\r\nHost: a\r\n\r\n"}) {
    net::RawClient client(server_.port());
    client.send(request);
    EXPECT_EQ(read_answer(client).status, 200) << request;
  }
}

}  // namespace
}  // namespace stint::http
