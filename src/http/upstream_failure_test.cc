// Upstreams that fail, each in its way.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "http/upstream.h"
#include "http/upstream_answer.h"
#include "http/upstream_outgoing.h"
#include "http/upstream_testing.h"
#include "net/stream_testing.h"

namespace stint::http {
namespace {

constexpr Duration kShort = std::chrono::milliseconds{30};

class UpstreamFailure : public UpstreamFixture {
 protected:
  // What becomes of a GET when the server does this after the request.
  Fetched after_request(const Script& script) {
    server.play(Script{Step::request()} + script);
    const Fetched got = fetch("GET");
    EXPECT_EQ(client->idle_connections(), 0U);
    return got;
  }
};

TEST_F(UpstreamFailure, NobodyListens) {
  Origin nobody;
  nobody.host = "127.0.0.1";
  nobody.port = net::probe_port({"127.0.0.1", 0}).value();
  const Fetched got = wait(fetch_all(use_client(), nobody, request("GET"), limits, cancel));
  EXPECT_EQ(got.error, UpstreamErrc::connect);
  EXPECT_TRUE(got.text.starts_with("http://127.0.0.1:")) << got.text;
}

TEST_F(UpstreamFailure, AnOriginThatDoesNotResolve) {
  Origin nobody;
  nobody.host = "host.invalid";
  nobody.port = 80;
  const Fetched got = wait(fetch_all(use_client(), nobody, request("GET"), limits, cancel));
  EXPECT_EQ(got.error, UpstreamErrc::connect);
}

TEST_F(UpstreamFailure, EndsBeforeTheHead) {
  EXPECT_EQ(after_request({Step::close()}).error, UpstreamErrc::no_answer);
  EXPECT_EQ(after_request({Step::reset()}).error, UpstreamErrc::no_answer);
  EXPECT_EQ(after_request({Step::send("HTTP/1.1 20"), Step::close()}).error,
            UpstreamErrc::no_answer);
  EXPECT_EQ(after_request({Step::send("HTTP/1.1 103 Early Hints\r\n\r\n"), Step::reset()}).error,
            UpstreamErrc::no_answer);
  // A new connection that dies is no reason to repeat a request.
  EXPECT_EQ(server.connections(), 4U);
}

TEST_F(UpstreamFailure, EndsInTheMiddleOfTheBody) {
  const std::string length = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
  const std::string chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
  for (const std::string& answer : {length, chunks, chunks + "5\r\n", chunks + "0\r\n"}) {
    for (const Step& end : {Step::close(), Step::reset()}) {
      const Fetched got = after_request({Step::send(answer), end});
      EXPECT_EQ(got.status, 200);
      EXPECT_EQ(got.error, UpstreamErrc::cut);
      // A reset may overtake what was sent before it.
      if (end.kind == Step::Kind::close) {
        EXPECT_EQ(got.body, "hello");
      }
    }
  }
}

TEST_F(UpstreamFailure, AResetIsNoEndOfABodyUntilTheEnd) {
  server.play(
      {Step::request(), Step::send("HTTP/1.1 200 OK\r\n\r\nhello"), Step::wait(), Step::reset()});
  const auto answer = send(request("GET"));
  ASSERT_TRUE(answer.has_value());
  server.go_on();
  EXPECT_EQ(wait(read_all(**answer)).error, UpstreamErrc::cut);
}

TEST_F(UpstreamFailure, SaysNothing) {
  limits.head_timeout = kShort;
  EXPECT_EQ(after_request({}).error, UpstreamErrc::timed_out);
  EXPECT_EQ(after_request({Step::send("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/")}).error,
            UpstreamErrc::timed_out);
  wait(server.quiet());
  EXPECT_EQ(server.ended_by_client(), 2U);
}

// Each byte comes in time; all of them do not.
TEST_F(UpstreamFailure, ItsHeadIsSlow) {
  limits.head_timeout = kShort;
  EXPECT_EQ(after_request(slowly(ok("hello"))).error, UpstreamErrc::timed_out);
}

TEST_F(UpstreamFailure, BytesThatBringNothingAreNoPiece) {
  limits.read_timeout = kShort;
  const Fetched got = after_request(
      Script{Step::send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")} +
      slowly("5;extension=xxxxxxxxxxxxxxxxxxxxxx\r\n") + Script{Step::send("hello\r\n0\r\n\r\n")});
  EXPECT_EQ(got.body, "");
  EXPECT_EQ(got.error, UpstreamErrc::timed_out);
}

TEST_F(UpstreamFailure, StopsInTheMiddleOfTheBody) {
  limits.read_timeout = kShort;
  const Fetched got =
      after_request({Step::send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")});
  EXPECT_EQ(got.body, "hello");
  EXPECT_EQ(got.error, UpstreamErrc::timed_out);
  wait(server.quiet());
  EXPECT_EQ(server.ended_by_client(), 1U);
}

TEST_F(UpstreamFailure, TheHeadTimeoutDoesNotCountForTheBody) {
  limits.head_timeout = kShort;
  server.play({Step::request(), Step::send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"),
               Step::wait(), Step::send("world")});
  const auto answer = send(request("GET"));
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(wait(loop.wait_for(2 * kShort)));
  server.go_on();
  EXPECT_EQ(wait(read_all(**answer)).body, "helloworld");
}

TEST_F(UpstreamFailure, WhatIsNotHttp) {
  for (const std::string& answer :
       {std::string("SSH-2.0-OpenSSH_9.2\r\n"), std::string("\x16\x03\x01"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nno colon\r\n\r\n"),
        std::string("HTTP/1.1 101 Switching Protocols\r\n\r\n")}) {
    EXPECT_EQ(after_request({Step::send(answer)}).error, UpstreamErrc::malformed) << answer;
  }
}

TEST_F(UpstreamFailure, MalformedChunksComeAfterWhatWasGood) {
  const Fetched got = after_request({Step::send(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nworld!\r\n")});
  EXPECT_EQ(got.body, "helloworld");
  EXPECT_EQ(got.error, UpstreamErrc::malformed);
}

TEST_F(UpstreamFailure, AHeadAboveTheBound) {
  limits.header_bytes = 1000;
  EXPECT_EQ(after_request({Step::send("HTTP/1.1 200 OK\r\nA: " + std::string(1000, 'x'))}).error,
            UpstreamErrc::malformed);
}

TEST_F(UpstreamFailure, AnErrorIsGivenAgain) {
  server.play(
      {Step::request(), Step::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), Step::close()});
  const auto answer = send(request("GET"));
  ASSERT_TRUE(answer.has_value());
  for (int i = 0; i < 2; ++i) {
    const auto piece = wait((*answer)->read());
    ASSERT_FALSE(piece.has_value());
    EXPECT_EQ(piece.error().code, UpstreamErrc::cut);
  }
}

TEST_F(UpstreamFailure, NoTlsSetUp) {
  Origin origin = server.origin();
  origin.tls = true;
  const Fetched got = wait(fetch_all(use_client(), origin, request("GET"), limits, cancel));
  EXPECT_EQ(got.error, UpstreamErrc::connect);
  EXPECT_EQ(server.connections(), 0U);
}

// ---- Long requests ----

class UpstreamLongRequest : public UpstreamFixture {
 public:
  // More than the kernels' buffers take.
  std::string long_body = std::string(std::size_t{32} * 1024 * 1024, 'x');
};

TEST_F(UpstreamLongRequest, ARefusalEndsTheSending) {
  limits.head_timeout = std::chrono::hours{1};
  server.play({Step::bytes(),
               Step::send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno"),
               Step::wait()});
  const Fetched got = fetch("POST", long_body);
  EXPECT_EQ(got.status, 413);
  EXPECT_EQ(got.body, "no");
  EXPECT_EQ(got.error, std::nullopt);
  EXPECT_EQ(client->idle_connections(), 0U);
  server.go_on();
  wait(server.quiet());
  EXPECT_EQ(server.ended_by_client(), 1U);
}

TEST_F(UpstreamLongRequest, ARefusalIsReadThoughTheConnectionIsGone) {
  for (const std::string& body : {long_body, std::string("short")}) {
    // Closing with bytes unread resets the connection.
    server.play({Step::send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno"),
                 Step::close()});
    const Fetched got = fetch("POST", body);
    EXPECT_EQ(got.status, 413);
    EXPECT_EQ(got.body, "no");
  }
}

// The same for a request so short that it is written at once, and fails at once.
TEST_F(UpstreamFailure, AnAnswerIsReadThoughTheRequestCannotBeWritten) {
  net::StreamPair pair = net::make_pair(loop);
  ASSERT_TRUE(wait(pair.server.write(ok("early"), "", net::kLong)).has_value());
  pair.server.abort();
  const auto outgoing = std::make_shared<const Outgoing>(make_outgoing(origin(), request("POST")));
  PooledAnswer answer(loop, {}, std::move(pair.client), limits, cancel, outgoing);
  ASSERT_TRUE(wait(answer.exchange()).has_value());
  EXPECT_EQ(wait(read_all(answer)).body, "early");
}

TEST_F(UpstreamLongRequest, AnAnswerWhileTheRequestIsSent) {
  server.play({Step::bytes(), Step::send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
               Step::wait(), Step::request(), Step::send(chunk("done") + "0\r\n\r\n")});
  const auto answer = send(request("POST", long_body));
  ASSERT_TRUE(answer.has_value());
  server.go_on();
  EXPECT_EQ(wait(read_all(**answer)).body, "done");
  ASSERT_EQ(server.requests().size(), 1U);
  EXPECT_TRUE(server.requests()[0].ends_with(long_body));
  EXPECT_EQ(client->idle_connections(), 1U);
}

TEST_F(UpstreamLongRequest, ARequestThatIsNotTakenTimesOut) {
  limits.head_timeout = std::chrono::milliseconds{30};
  server.play({Step::wait()});
  EXPECT_EQ(fetch("POST", long_body).error, UpstreamErrc::timed_out);
  server.go_on();
  wait(server.quiet());
  EXPECT_EQ(server.ended_by_client(), 1U);
}

TEST_F(UpstreamLongRequest, DroppingTheAnswerEndsTheSending) {
  server.play({Step::bytes(), Step::send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
               Step::wait(), Step::request()});
  auto answer = send(request("POST", long_body));
  ASSERT_TRUE(answer.has_value());
  answer->reset();
  server.go_on();
  wait(server.quiet());
  EXPECT_EQ(server.ended_by_client(), 1U);
  EXPECT_EQ(server.requests().size(), 0U);  // it never had all of it
}

}  // namespace
}  // namespace stint::http
