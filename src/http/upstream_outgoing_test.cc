#include "http/upstream_outgoing.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace stint::http {
namespace {

using namespace std::string_literals;

Origin origin() { return *parse_origin("https://api.example.com/base"); }

UpstreamRequest request(std::string method, std::string target, std::string body = "") {
  UpstreamRequest request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.body = std::move(body);
  return request;
}

std::string head(UpstreamRequest request) { return make_outgoing(origin(), request).head; }

TEST(Outgoing, WritesTheHead) {
  UpstreamRequest post = request("POST", "/v1/x?y=%20", "body");
  post.fields.add("Accept", "*/*");
  post.fields.add("X-Empty", "");
  post.fields.add("Accept", "text/plain");
  const Outgoing out = make_outgoing(origin(), post);
  EXPECT_EQ(out.head,
            "POST /base/v1/x?y=%20 HTTP/1.1\r\nHost: api.example.com\r\nAccept: */*\r\n"
            "X-Empty: \r\nAccept: text/plain\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(out.body, "body");
}

TEST(Outgoing, LeavesOutWhatIsNotTheCallersToSay) {
  UpstreamRequest get = request("GET", "/");
  for (const char* name :
       {"host", "content-length", "expect", "connection", "Keep-Alive", "TE", "Trailer",
        "Transfer-Encoding", "Upgrade", "Proxy-Authorization", "X-Mine"}) {
    get.fields.add(name, name == "connection"s ? "close, X-Mine" : "1");
  }
  EXPECT_EQ(head(get), "GET /base/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
}

TEST(Outgoing, ALengthOfZeroWhereABodyIsUsual) {
  for (const char* method : {"POST", "PUT", "PATCH"}) {
    EXPECT_TRUE(head(request(method, "/")).contains("\r\nContent-Length: 0\r\n")) << method;
  }
  for (const char* method : {"GET", "HEAD", "DELETE", "OPTIONS"}) {
    EXPECT_FALSE(head(request(method, "/")).contains("Content-Length")) << method;
  }
  EXPECT_TRUE(head(request("DELETE", "/", "x")).contains("\r\nContent-Length: 1\r\n"));
}

TEST(Outgoing, KnowsWhatMayBeRepeatedAndWhatHasNoBody) {
  for (const char* method : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"}) {
    EXPECT_TRUE(make_outgoing(origin(), request(method, "/")).repeatable) << method;
  }
  for (const char* method : {"POST", "PATCH", "CONNECT", "get", "LOCK"}) {
    EXPECT_FALSE(make_outgoing(origin(), request(method, "/")).repeatable) << method;
  }
  EXPECT_EQ(make_outgoing(origin(), request("HEAD", "/")).kind, ResponseTo::head_request);
  EXPECT_EQ(make_outgoing(origin(), request("head", "/")).kind, ResponseTo::other_request);
}

TEST(Outgoing, NothingCanBreakTheHead) {
  for (const std::string& method : {""s, "GE T"s, "GET\r\n"s, "GET:"s}) {
    EXPECT_THROW((void)head(request(method, "/")), std::invalid_argument) << method;
  }
  for (const std::string& target : {""s, "x"s, "*"s, "/a b"s, "/a\r\nX: y"s, "/a\tb"s, "/\0"s}) {
    EXPECT_THROW((void)head(request("GET", target)), std::invalid_argument) << target;
  }
  for (const std::string& name : {""s, "a b"s, "a:"s, "a\r\nb"s, "a\n"s}) {
    UpstreamRequest get = request("GET", "/");
    get.fields.add(name, "x");
    EXPECT_THROW((void)head(get), std::invalid_argument) << name;
  }
  for (const std::string& value : {"a\r\nX: y"s, "a\nb"s, "a\rb"s, "\0"s, "\x7F"s}) {
    UpstreamRequest get = request("GET", "/");
    get.fields.add("a", value);
    EXPECT_THROW((void)head(get), std::invalid_argument) << value;
  }
}

}  // namespace
}  // namespace stint::http
