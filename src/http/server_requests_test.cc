// Requests and answers on one connection.
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "http/request_parser.h"
#include "http/server_testing.h"

namespace stint::http {
namespace {

using net::NetResult;
using net::RawClient;
using net::Task;

const std::string kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

std::string get(const std::string& path) { return "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n"; }

TEST(RequestsTest, OneAfterAnotherOnOneConnection) {
  TestServer server(echo_request);
  RawClient client(server.port());
  for (int i = 0; i < 5; ++i) {
    const std::string path = "/" + std::to_string(i);
    ASSERT_TRUE(client.send(get(path)));
    const RawAnswer answer = read_answer(client);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "GET " + path + "  ");
    EXPECT_FALSE(answer.head.contains("Connection:")) << answer.head;
    EXPECT_TRUE(answer.head.contains("\r\nDate: ")) << answer.head;
  }
  EXPECT_EQ(server.connections(), 1U);
}

// A handler that has its own words for a body that cannot be read, or none.
Task<> answer_bad_body(Exchange& exchange) {
  const auto body = co_await exchange.read_body();
  const Refusal* refusal = exchange.body_refusal();
  if (refusal == nullptr || exchange.head().path == "/silent") co_return;
  ResponseHead head;
  head.status = refusal->status;
  head.fields.add("X-Own", "1");
  std::string text(refusal->code);
  co_await exchange.respond(std::move(head), std::move(text));
}

TEST(RequestsTest, ABodyThatIsRefusedIsTheHandlersToAnswer) {
  TestServer server(answer_bad_body);
  for (const std::string path : {"/own", "/silent"}) {
    RawClient client(server.port());
    client.send("POST " + path +
                " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
    const RawAnswer answer = read_answer(client);
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(answer.head.contains("X-Own: 1"), path == "/own") << answer.head;
    EXPECT_TRUE(answer.body.contains("bad_request")) << answer.body;
    EXPECT_TRUE(answer.head.contains("Connection: close\r\n")) << answer.head;
    client.close_sending();
    EXPECT_EQ(client.read_to_end(), "");
  }
  EXPECT_TRUE(server.refused().empty());
}

TEST(RequestsTest, Pipelined) {
  TestServer server(echo_request);
  RawClient client(server.port());
  std::string all;
  for (int i = 0; i < 500; ++i) {
    all += "POST /" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
  }
  ASSERT_TRUE(client.send(all));
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(read_answer(client).body, "POST /" + std::to_string(i) + "  abc");
  }
}

TEST(RequestsTest, InPiecesOfOneByte) {
  TestServer server(echo_request);
  RawClient client(server.port());
  const std::string requests =
      "POST /a?b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"
      "POST /c HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" +
      get("/d");
  for (const char c : requests) ASSERT_TRUE(client.send(std::string(1, c)));
  EXPECT_EQ(read_answer(client).body, "POST /a ?b abc0123456789");
  EXPECT_EQ(read_answer(client).body, "POST /c  hello");
  EXPECT_EQ(read_answer(client).body, "GET /d  ");
}

TEST(RequestsTest, LargeBodies) {
  TestServer server([](Exchange& exchange) -> Task<> {
    const auto body = co_await exchange.read_body();
    EXPECT_TRUE(body.has_value());
    ResponseHead head;
    std::string copy = *body;
    co_await exchange.respond(std::move(head), std::move(copy));
  });
  std::string body(3'000'000, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 7 >> 4);
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n" + body);
  EXPECT_TRUE(read_answer(client).body == body);
  client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2DC6C0\r\n" + body +
              "\r\n0\r\n\r\n");
  EXPECT_TRUE(read_answer(client).body == body);
}

TEST(RequestsTest, TheConnectionEndsWhenTheClientSaysSo) {
  TestServer server(echo_request);
  for (const char* request :
       {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"}) {
    RawClient client(server.port());
    client.send(request);
    const RawAnswer answer = read_answer(client);
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(answer.head.contains("Connection: close\r\n")) << answer.head;
    EXPECT_EQ(client.read_to_end(), "");
  }
  RawClient old(server.port());
  for (int i = 0; i < 2; ++i) {
    old.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_TRUE(read_answer(old).head.contains("Connection: keep-alive\r\n"));
  }
}

TEST(RequestsTest, ContinuesAreSentWhenTheBodyIsAskedFor) {
  TestServer server(echo_request);
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  EXPECT_EQ(read_answer(client).body, "POST /  ok");
  // Not to a client that did not wait for it.
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nok");
  EXPECT_EQ(read_answer(client).status, 200);
}

Task<> refuse_unread(Exchange& exchange) {
  ResponseHead head;
  head.status = 401;
  std::string body = "no";
  co_await exchange.respond(std::move(head), std::move(body));
}

TEST(RequestsTest, ABodyThatNobodyReadIsSkippedOrEndsTheConnection) {
  TestServer server(refuse_unread);
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\n";
  RawClient client(server.port());
  client.send(head + "Content-Length: 50000\r\n\r\n" + std::string(50'000, 'x') + kGet);
  EXPECT_FALSE(read_answer(client).head.contains("Connection: close"));
  EXPECT_EQ(read_answer(client).status, 401) << "the request behind the body";

  for (const std::string& framing :
       {std::string("Content-Length: 1000000\r\n\r\n"),
        std::string("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
        std::string("Content-Length: 5\r\nExpect: 100-continue\r\n\r\n")}) {
    RawClient long_one(server.port());
    long_one.send(head + framing);
    const RawAnswer answer = read_answer(long_one);
    EXPECT_EQ(answer.status, 401) << framing;
    EXPECT_TRUE(answer.head.contains("Connection: close\r\n")) << framing;
    long_one.close_sending();
    EXPECT_EQ(long_one.read_to_end(), "");
  }
}

TEST(RequestsTest, AnAnswerSentWhileTheClientStillSendsIsNotLost) {
  TestServer server(refuse_unread);
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
  ASSERT_TRUE(client.send(std::string(1'000'000, 'x')));
  EXPECT_EQ(read_answer(client).status, 401);
  client.close_sending();
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_FALSE(client.was_reset());
}

TEST(AnswersTest, WithoutABody) {
  TestServer server([](Exchange& exchange) -> Task<> {
    ResponseHead head;
    if (exchange.head().path == "/204") head.status = 204;
    if (exchange.head().path == "/304") head.status = 304;
    std::string body = "body";
    co_await exchange.respond(std::move(head), std::move(body));
  });
  RawClient client(server.port());
  client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" + get("/204") + get("/304") + get("/"));
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_TRUE(head.contains("Content-Length: 4\r\n")) << head;
  const std::string no_content = client.read_until("\r\n\r\n");
  EXPECT_TRUE(no_content.starts_with("HTTP/1.1 204 No Content\r\n")) << no_content;
  EXPECT_FALSE(no_content.contains("Content-Length")) << no_content;
  const std::string not_modified = client.read_until("\r\n\r\n");
  EXPECT_TRUE(not_modified.starts_with("HTTP/1.1 304 Not Modified\r\n")) << not_modified;
  EXPECT_FALSE(not_modified.contains("Content-Length")) << not_modified;
  EXPECT_EQ(read_answer(client).body, "body");
}

TEST(AnswersTest, StreamsWithoutABody) {
  TestServer server([](Exchange& exchange) -> Task<> {
    ResponseHead head;
    std::optional<std::uint64_t> length;
    if (exchange.head().path == "/length") length = 1000;
    if (exchange.head().path == "/204") head.status = 204;
    co_await exchange.start(std::move(head), length);
    co_await exchange.write("dropped");
    const auto finished = co_await exchange.finish();
    EXPECT_TRUE(finished.has_value());
  });
  RawClient client(server.port());
  client.send("HEAD /length HTTP/1.1\r\nHost: a\r\n\r\nHEAD / HTTP/1.1\r\nHost: a\r\n\r\n" +
              get("/204"));
  EXPECT_TRUE(client.read_until("\r\n\r\n").contains("Content-Length: 1000\r\n"));
  const std::string unknown = client.read_until("\r\n\r\n");
  EXPECT_FALSE(unknown.contains("Transfer-Encoding") || unknown.contains("Content-Length"));
  const std::string empty = client.read_until("\r\n\r\n");
  EXPECT_FALSE(empty.contains("Transfer-Encoding") || empty.contains("Content-Length"));
  client.close_sending();
  EXPECT_EQ(client.read_to_end(), "");
}

// A handler that writes one piece each time the test says so.
class StreamedTest : public testing::Test {
 protected:
  Task<> stream(Exchange& exchange) {
    ResponseHead head;
    head.fields.add("Content-Type", "text/event-stream");
    co_await exchange.start(std::move(head), length_);
    EXPECT_TRUE(exchange.started());
    for (;;) {
      std::string piece;
      for (;;) {
        const std::optional<std::string> next = take();
        if (next) {
          piece = *next;
          break;
        }
        co_await server_.loop().wait_for(std::chrono::milliseconds(1));
      }
      if (piece == "abort") co_return exchange.abort();
      if (piece == "throw") throw std::runtime_error("in the middle");
      if (piece == "return") co_return;
      if (piece == "finish") break;
      const auto written = co_await exchange.write(piece);
      if (!written) co_return;
    }
    co_await exchange.finish();
  }
  std::optional<std::string> take() {
    if (pieces_.empty()) return std::nullopt;
    std::string piece = pieces_.front();
    pieces_.erase(pieces_.begin());
    return piece;
  }
  void say(const std::string& piece) {
    server_.thread().call([&] { pieces_.push_back(piece); });
  }

  std::optional<std::uint64_t> length_;
  std::vector<std::string> pieces_;  // of the loop's thread
  TestServer server_{[this](Exchange& exchange) { return stream(exchange); }};
};

TEST_F(StreamedTest, EachPieceArrivesByItself) {
  RawClient client(server_.port());
  client.send(kGet);
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_TRUE(head.contains("Transfer-Encoding: chunked\r\n")) << head;
  say("data: 1\n\n");
  EXPECT_EQ(client.read_until("\n\n\r\n"), "9\r\ndata: 1\n\n\r\n");
  say("");  // says nothing, and must not look like the end
  say(std::string(20, 'x'));
  EXPECT_EQ(client.read_until("x\r\n"), "14\r\n" + std::string(20, 'x') + "\r\n");
  say("finish");
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "0\r\n\r\n");
  client.send(kGet);
  EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 200 OK")) << "kept alive";
  say("finish");
}

TEST_F(StreamedTest, OldHttpReadsToTheEnd) {
  RawClient client(server_.port());
  client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_FALSE(head.contains("Transfer-Encoding")) << head;
  EXPECT_TRUE(head.contains("Connection: close\r\n")) << head;
  say("ab");
  say("cd");
  say("finish");
  client.close_sending();
  EXPECT_EQ(client.read_to_end(), "abcd");
  EXPECT_FALSE(client.was_reset());
}

TEST_F(StreamedTest, WithALength) {
  length_ = 4;
  RawClient client(server_.port());
  client.send(kGet);
  EXPECT_TRUE(client.read_until("\r\n\r\n").contains("Content-Length: 4\r\n"));
  say("ab");
  EXPECT_EQ(client.read(2), "ab");
  say("cd");
  say("finish");
  EXPECT_EQ(client.read(2), "cd");
}

TEST_F(StreamedTest, LessOrMoreThanTheLengthBreaksOff) {
  length_ = 4;
  for (const auto& pieces : std::vector<std::vector<std::string>>{{"ab", "finish"}, {"abcde"}}) {
    RawClient client(server_.port());
    client.send(kGet);
    client.read_until("\r\n\r\n");
    for (const std::string& piece : pieces) say(piece);
    client.read_to_end();
    EXPECT_TRUE(client.was_reset());
  }
}

TEST_F(StreamedTest, WhatDoesNotFinishIsBrokenOff) {
  for (const char* how : {"abort", "throw", "return"}) {
    RawClient client(server_.port());
    client.send(kGet);
    client.read_until("\r\n\r\n");
    say("ab");
    EXPECT_EQ(client.read_until("ab\r\n"), "2\r\nab\r\n");
    say(how);
    EXPECT_EQ(client.read_to_end(), "") << how;
    EXPECT_TRUE(client.was_reset()) << how;
  }
  EXPECT_EQ(server_.exceptions(), std::vector<std::string>({"in the middle"}));
}

TEST(AnswersTest, AnExceptionOrNoAnswerIs500) {
  TestServer server([](Exchange& exchange) -> Task<> {
    if (exchange.head().path == "/throw") throw std::runtime_error("broken");
    if (exchange.head().path == "/int") throw 1;
    co_return;
  });
  RawClient client(server.port());
  for (const char* path : {"/throw", "/nothing", "/int"}) {
    client.send(get(path));
    const RawAnswer answer = read_answer(client);
    EXPECT_EQ(answer.status, 500);
    EXPECT_TRUE(answer.body.contains("internal_error")) << answer.body;
  }
  EXPECT_EQ(server.exceptions(), std::vector<std::string>({"broken", "unknown exception"}));
  EXPECT_TRUE(server.refused().empty());
}

TEST(AnswersTest, AStatusThatIsNoFinalOneIs500) {
  TestServer server([](Exchange& exchange) -> Task<> {
    ResponseHead head;
    head.status = exchange.head().path == "/100" ? 100 : 0;
    co_await exchange.respond(std::move(head), "body");
  });
  RawClient client(server.port());
  client.send(get("/100") + get("/0"));
  EXPECT_EQ(read_answer(client).status, 500);
  EXPECT_EQ(read_answer(client).status, 500);
}

TEST(AnswersTest, CallsOutOfOrderAreErrors) {
  TestServer server([](Exchange& exchange) -> Task<> {
    const auto early_write = co_await exchange.write("x");
    const auto early_finish = co_await exchange.finish();
    EXPECT_FALSE(early_write.has_value());
    EXPECT_FALSE(early_finish.has_value());
    ResponseHead head;
    const auto first = co_await exchange.respond(head, "one");
    const auto second = co_await exchange.respond(head, "two");
    const auto start = co_await exchange.start(head, std::nullopt);
    const auto body = co_await exchange.read_body();
    EXPECT_TRUE(first.has_value());
    EXPECT_FALSE(second.has_value() || start.has_value() || body.has_value());
  });
  RawClient client(server.port());
  client.send(kGet + kGet);
  EXPECT_EQ(read_answer(client).body, "one");
  EXPECT_EQ(read_answer(client).body, "one");
}

}  // namespace
}  // namespace stint::http
