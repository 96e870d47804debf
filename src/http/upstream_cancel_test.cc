// Calls that are ended from outside, in each of their phases.
#include "http/upstream_cancel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "http/upstream.h"
#include "http/upstream_testing.h"

namespace stint::http {
namespace {

class UpstreamCancelTest : public UpstreamFixture {
 protected:
  // The server ends the call at this point of the script; what it sees of that.
  void expect_cancelled(const Fetched& got) {
    EXPECT_EQ(got.error, UpstreamErrc::cancelled);
    wait(server.quiet());
    EXPECT_EQ(server.ended_by_client(), 1U);
    EXPECT_EQ(client->idle_connections(), 0U);
  }
  Step cancel_now() {
    return Step::call([this] { cancel.cancel(); });
  }
};

TEST_F(UpstreamCancelTest, BeforeTheCall) {
  cancel.cancel();
  EXPECT_TRUE(cancel.cancelled());
  EXPECT_EQ(fetch("GET").error, UpstreamErrc::cancelled);
  EXPECT_EQ(server.connections(), 0U);
}

TEST_F(UpstreamCancelTest, BeforeTheCallAKeptConnectionIsLeftAlone) {
  server.play({Step::request(), Step::send(ok("x"))});
  EXPECT_EQ(fetch("GET").body, "x");
  cancel.cancel();
  EXPECT_EQ(fetch("GET").error, UpstreamErrc::cancelled);
  EXPECT_EQ(client->idle_connections(), 1U);
}

// A server that accepts and says nothing: the connection is made, the handshake is not.
TEST_F(UpstreamCancelTest, WhileConnecting) {
  const auto tls = net::TlsClientContext::create({});
  ASSERT_TRUE(tls.has_value());
  client = std::make_unique<UpstreamClient>(loop, limits, *tls);
  server.play({Step::bytes(), cancel_now()});
  Origin origin = server.origin();
  origin.tls = true;
  expect_cancelled(wait(fetch_all(*client, origin, request("GET"), limits, cancel)));
}

TEST_F(UpstreamCancelTest, WhileTheRequestIsSent) {
  server.play({Step::bytes(), cancel_now()});
  expect_cancelled(fetch("POST", std::string(std::size_t{32} * 1024 * 1024, 'x')));
}

TEST_F(UpstreamCancelTest, WhileTheHeadIsAwaited) {
  server.play({Step::request(), cancel_now()});
  expect_cancelled(fetch("GET"));
}

TEST_F(UpstreamCancelTest, InTheMiddleOfTheHead) {
  server.play(
      {Step::request(), Step::send("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 2"), cancel_now()});
  expect_cancelled(fetch("GET"));
}

TEST_F(UpstreamCancelTest, OnAKeptConnectionItIsNotRepeated) {
  server.play({Step::request(), Step::send(ok("x")), Step::request(), cancel_now()});
  EXPECT_EQ(fetch("GET").body, "x");
  expect_cancelled(fetch("GET"));
  EXPECT_EQ(server.connections(), 1U);
}

TEST_F(UpstreamCancelTest, WhileTheBodyIsAwaited) {
  server.play({Step::request(), Step::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"),
               Step::wait(), cancel_now()});
  const auto answer = send(request("GET"));
  ASSERT_TRUE(answer.has_value());
  const auto piece = wait((*answer)->read());
  ASSERT_TRUE(piece.has_value());
  EXPECT_EQ(*piece, "hello");
  server.go_on();
  expect_cancelled(wait(read_all(**answer)));
}

TEST_F(UpstreamCancelTest, BetweenTwoReads) {
  server.play({Step::request(), Step::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")});
  const auto answer = send(request("GET"));
  ASSERT_TRUE(answer.has_value());
  cancel.cancel();
  // The connection is closed without a read, and what has come already is not given any more.
  wait(server.quiet());
  const Fetched got = wait(read_all(**answer));
  EXPECT_EQ(got.body, "");
  expect_cancelled(got);
}

TEST_F(UpstreamCancelTest, AfterTheEndTheConnectionStays) {
  server.play({Step::request(), Step::send(ok("x"))});
  const auto answer = send(request("GET"));
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(wait(read_all(**answer)).body, "x");
  cancel.cancel();
  EXPECT_TRUE(wait((*answer)->read()).has_value());
  EXPECT_EQ(client->idle_connections(), 1U);
}

TEST_F(UpstreamCancelTest, MayEndBeforeTheAnswer) {
  server.play({Step::request(), Step::send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"),
               Step::wait(), Step::send("lo")});
  auto short_lived = std::make_unique<UpstreamCancel>();
  const auto answer = wait(use_client().send(origin(), request("GET"), limits, *short_lived));
  ASSERT_TRUE(answer.has_value());
  short_lived.reset();
  server.go_on();
  EXPECT_EQ(wait(read_all(**answer)).body, "hello");
}

TEST_F(UpstreamCancelTest, TheTaskMayBeCancelledInstead) {
  server.play({Step::request()});
  net::TaskGroup group(loop);
  Fetched got;
  group.start(fetch_into(request("GET"), got));
  while (server.requests().empty()) turn();
  group.cancel_all();
  wait(group.join());
  expect_cancelled(got);
}

TEST(CancelHookTest, HooksAreCalledOnce) {
  UpstreamCancel cancel;
  int called = 0;
  const CancelHook hook(cancel, [&called] { ++called; });
  cancel.cancel();
  cancel.cancel();
  EXPECT_EQ(called, 1);
  const CancelHook late(cancel, [&called] { ++called; });
  EXPECT_EQ(called, 2);
}

TEST(CancelHookTest, AHookMayTakeOthersAway) {
  UpstreamCancel cancel;
  auto first = std::make_unique<CancelHook>(cancel, [] { FAIL() << "it is gone"; });
  std::unique_ptr<CancelHook> second;
  second = std::make_unique<CancelHook>(cancel, [&] {
    first.reset();
    second.reset();
  });
  cancel.cancel();
  EXPECT_EQ(first, nullptr);
}

TEST(CancelHookTest, EitherMayEndFirst) {
  int called = 0;
  auto cancel = std::make_unique<UpstreamCancel>();
  auto hook = std::make_unique<CancelHook>(*cancel, [&called] { ++called; });
  auto other = std::make_unique<CancelHook>(*cancel, [&called] { ++called; });
  hook.reset();
  cancel.reset();
  other.reset();
  EXPECT_EQ(called, 0);
}

}  // namespace
}  // namespace stint::http
