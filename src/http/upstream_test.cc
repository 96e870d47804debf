// Answers that come as they should.
#include "http/upstream.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "http/upstream_testing.h"

namespace stint::http {
namespace {

class Upstream : public UpstreamFixture {
 protected:
  Fetched fetch_from(const std::string& answer, const std::string& method = "GET") {
    server.play({Step::request(), Step::send(answer)});
    return fetch(method);
  }
};

TEST_F(Upstream, SendsTheRequestAndGivesTheAnswer) {
  server.play({Step::request(), Step::send(ok("hello"))});
  UpstreamRequest post = request("POST", "{\"a\":1}");
  post.fields.add("Content-Type", "application/json");
  const auto answer = send(std::move(post));
  ASSERT_TRUE(answer.has_value()) << answer.error().text;
  EXPECT_EQ((*answer)->head().status, 200);
  EXPECT_EQ((*answer)->head().reason, "OK");
  EXPECT_EQ((*answer)->content_length(), 5U);
  EXPECT_EQ(wait(read_all(**answer)).body, "hello");
  ASSERT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(server.requests()[0], "POST /path?query HTTP/1.1\r\nHost: " + host_field(origin()) +
                                      "\r\nContent-Type: application/json\r\n"
                                      "Content-Length: 7\r\n\r\n{\"a\":1}");
}

TEST_F(Upstream, UsesAConnectionAgain) {
  server.play({Step::request(), Step::send(ok("1")), Step::request(),
               Step::send(chunked({"2", "2"})), Step::request(), Step::send(ok(""))});
  EXPECT_EQ(fetch("GET").body, "1");
  EXPECT_EQ(client->idle_connections(), 1U);
  EXPECT_EQ(fetch("POST", "x").body, "22");
  EXPECT_EQ(fetch("GET").body, "");
  EXPECT_EQ(server.connections(), 1U);
  EXPECT_EQ(server.requests().size(), 3U);
  client->close_idle();
  EXPECT_EQ(client->idle_connections(), 0U);
  wait(server.quiet());
  EXPECT_EQ(server.ended_by_client(), 1U);
}

TEST_F(Upstream, ABodyUntilTheEndOfTheConnection) {
  server.play(
      {Step::request(), Step::send("HTTP/1.1 200 OK\r\n\r\nhel"), Step::send("lo"), Step::close()});
  const Fetched got = fetch("GET");
  EXPECT_EQ(got.error, std::nullopt);
  EXPECT_EQ(got.body, "hello");
  EXPECT_EQ(client->idle_connections(), 0U);
}

TEST_F(Upstream, HeadHasALengthAndNoBody) {
  server.play({Step::request(), Step::send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")});
  const auto answer = send(request("HEAD"));
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ((*answer)->content_length(), 1000U);
  EXPECT_EQ(client->idle_connections(), 1U);  // before anybody has read
  EXPECT_EQ(wait(read_all(**answer)).body, "");
}

TEST_F(Upstream, AnswersWithoutABody) {
  EXPECT_EQ(fetch_from("HTTP/1.1 204 No Content\r\n\r\n").status, 204);
  EXPECT_EQ(client->idle_connections(), 1U);
  client->close_idle();
  EXPECT_EQ(fetch_from("HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n").status, 304);
  EXPECT_EQ(client->idle_connections(), 1U);
  client->close_idle();
  EXPECT_EQ(fetch_from("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").status, 200);
  EXPECT_EQ(client->idle_connections(), 1U);
}

TEST_F(Upstream, SkipsInterimHeads) {
  server.play({Step::request(), Step::send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
               Step::send("HTTP/1.1 100 Continue\r\n\r\n" + ok("x"))});
  const Fetched got = fetch("GET");
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.body, "x");
}

TEST_F(Upstream, OneByteAtATime) {
  const std::string answer =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n00a;x=y\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n";
  server.play(Script{Step::request()} + byte_by_byte(answer) + Script{Step::request()} +
              byte_by_byte(ok("hello")));
  EXPECT_EQ(fetch("GET").body, "abc0123456789");
  EXPECT_EQ(fetch("GET").body, "hello");
  EXPECT_EQ(server.connections(), 1U);
}

TEST_F(Upstream, LongBodiesBothWays) {
  std::string body;
  while (body.size() < std::size_t{1024} * 1024) body += std::to_string(body.size()) + ",";
  server.play(
      {Step::request(), Step::send(ok(body)), Step::request(),
       Step::send(chunked({body.substr(0, 3), body.substr(3, 500'000), body.substr(500'003)}))});
  EXPECT_TRUE(fetch("POST", body).body == body);
  EXPECT_TRUE(fetch("PUT", body).body == body);
  EXPECT_EQ(server.connections(), 1U);
  for (const std::string& got : server.requests()) EXPECT_TRUE(got.ends_with("\r\n\r\n" + body));
}

TEST_F(Upstream, APieceIsGivenBeforeTheNextIsSent) {
  server.play({Step::request(), Step::send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
               Step::wait(), Step::send(chunk("data: 1\n\n")), Step::wait(),
               Step::send(chunk("data: 2\n\n") + "0\r\n\r\n")});
  const auto answer = send(request("GET"));
  ASSERT_TRUE(answer.has_value());
  for (const char* want : {"data: 1\n\n", "data: 2\n\n", ""}) {
    server.go_on();
    const auto piece = wait((*answer)->read());
    ASSERT_TRUE(piece.has_value());
    EXPECT_EQ(*piece, want);
  }
}

TEST_F(Upstream, WhatCameTogetherIsGivenTogether) {
  server.play({Step::request(), Step::send(chunked({"a", "bc", "def"}))});
  const auto answer = send(request("GET"));
  ASSERT_TRUE(answer.has_value());
  const auto piece = wait((*answer)->read());
  ASSERT_TRUE(piece.has_value());
  EXPECT_EQ(*piece, "abcdef");
  // All has come, so the connection is free already.
  EXPECT_EQ(client->idle_connections(), 1U);
  const auto end = wait((*answer)->read());
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(*end, "");
  EXPECT_TRUE(wait((*answer)->read()).has_value());
}

TEST_F(Upstream, AConnectionThatIsToBeClosedIsNotKept) {
  for (const std::string& answer :
       {std::string("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
        std::string("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"), ok("x") + "more than that",
        std::string("HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nhi")}) {
    const Fetched got = fetch_from(answer);
    EXPECT_EQ(got.error, std::nullopt);
    EXPECT_EQ(client->idle_connections(), 0U) << answer;
  }
  wait(server.quiet());
  EXPECT_EQ(server.ended_by_client(), 4U);
}

TEST_F(Upstream, OriginsHaveTheirOwnConnections) {
  ScriptedServer other(loop);
  server.play({Step::request(), Step::send(ok("a"))});
  other.play({Step::request(), Step::send(ok("b"))});
  EXPECT_EQ(fetch("GET").body, "a");
  Origin origin = other.origin();
  origin.base_path = "/base";
  EXPECT_EQ(wait(fetch_all(use_client(), origin, request("GET"), limits, cancel)).body, "b");
  EXPECT_TRUE(other.requests()[0].starts_with("GET /base/path?query HTTP/1.1\r\n"));
  EXPECT_EQ(client->idle_connections(), 2U);
  client->close_idle();
  wait(other.stop());
}

TEST_F(Upstream, AnAnswerMayOutliveItsClient) {
  server.play({Step::request(), Step::send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"),
               Step::wait(), Step::send("lo")});
  const auto answer = send(request("GET"));
  ASSERT_TRUE(answer.has_value());
  client.reset();
  server.go_on();
  EXPECT_EQ(wait(read_all(**answer)).body, "hello");
  wait(server.quiet());
  EXPECT_EQ(server.ended_by_client(), 1U);
}

}  // namespace
}  // namespace stint::http
