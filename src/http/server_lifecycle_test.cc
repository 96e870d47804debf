// Clients that go away, and the server that goes away.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "http/server_testing.h"

namespace stint::http {
namespace {

using net::NetResult;
using net::RawClient;
using net::Task;
using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

// A handler that waits, as for an upstream, until the test lets it answer or the client goes.
class WaitingTest : public testing::Test {
 protected:
  Task<> wait(Exchange& exchange) {
    if (read_body_) {
      const auto body = co_await exchange.read_body();
      if (!body) co_return;
    }
    ++waiting_;
    if (stream_) {
      ResponseHead head;
      co_await exchange.start(std::move(head), std::nullopt);
    }
    bool gone = false;
    exchange.watch_client([&] {
      gone = true;
      ++gone_;
      gone_at_ = server_.loop().now();
    });
    while (!gone && !answer_) co_await server_.loop().wait_for(milliseconds(1));
    EXPECT_EQ(exchange.client_gone(), gone);
    exchange.unwatch_client();
    if (gone) {
      ResponseHead head;
      const auto late = co_await exchange.respond(std::move(head), "late");
      EXPECT_FALSE(late.has_value());
    } else if (stream_) {
      co_await exchange.finish();
    } else {
      ResponseHead head;
      co_await exchange.respond(std::move(head), "done");
    }
    ++ended_;
  }
  static void await(const std::atomic<int>& counter, int value) {
    const auto deadline = std::chrono::steady_clock::now() + seconds{20};
    while (counter < value && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    ASSERT_EQ(counter, value);
  }

  std::atomic<int> waiting_ = 0;
  std::atomic<int> gone_ = 0;
  std::atomic<int> ended_ = 0;
  std::atomic<bool> answer_ = false;
  std::atomic<bool> stream_ = false;
  std::atomic<bool> read_body_ = true;
  std::atomic<Duration> gone_at_{};
  TestServer server_{[this](Exchange& exchange) { return wait(exchange); }};
};

TEST_F(WaitingTest, AnAnswerAfterAWait) {
  RawClient client(server_.port());
  client.send(kGet);
  await(waiting_, 1);
  answer_ = true;
  EXPECT_EQ(read_answer(client).body, "done");
  client.send(kGet);
  EXPECT_EQ(read_answer(client).body, "done") << "the connection is as good as before";
  EXPECT_EQ(gone_, 0);
}

TEST_F(WaitingTest, HearsOfAClientThatGoesWithinMilliseconds) {
  for (const bool reset : {false, true}) {
    RawClient client(server_.port());
    client.send(kGet);
    await(waiting_, reset ? 2 : 1);
    const Duration before = server_.loop().now();
    reset ? client.reset() : client.close();
    await(gone_, reset ? 2 : 1);
    EXPECT_LT(gone_at_.load() - before, milliseconds{500});
    await(ended_, reset ? 2 : 1);
  }
  while (server_.connections() > 0) {
  }
  EXPECT_EQ(server_.active_exchanges(), 0U);
}

TEST_F(WaitingTest, HearsOfItBehindPipelinedRequests) {
  RawClient client(server_.port());
  client.send(kGet);
  await(waiting_, 1);
  client.send(kGet + kGet);
  client.close();
  await(gone_, 1);
}

TEST_F(WaitingTest, HearsOfItBehindMoreThanItTakes) {
  read_body_ = false;
  RawClient client(server_.port());
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n");
  await(waiting_, 1);
  // More than the server keeps of what nobody has asked for, and no more than the kernel takes
  // besides: the end cannot arrive before the bytes that it stands behind.
  client.send(std::string(50'000, 'x'));
  client.close();
  await(gone_, 1);
}

TEST_F(WaitingTest, HearsOfItInTheMiddleOfAStream) {
  stream_ = true;
  RawClient client(server_.port());
  client.send(kGet);
  EXPECT_TRUE(client.read_until("\r\n\r\n").contains("200 OK"));
  client.close();
  await(gone_, 1);
  await(ended_, 1);
}

TEST_F(WaitingTest, PipelinedRequestsAreServedAfterTheWait) {
  RawClient client(server_.port());
  client.send(kGet);
  await(waiting_, 1);
  std::string many;
  for (int i = 0; i < 100; ++i) many += kGet;
  client.send(many);
  answer_ = true;
  for (int i = 0; i < 101; ++i) ASSERT_EQ(read_answer(client).body, "done") << i;
  EXPECT_EQ(gone_, 0);
}

TEST_F(WaitingTest, AClientThatGoesWhileItsBodyIsReadIsGone) {
  RawClient client(server_.port());
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhal");
  while (server_.active_exchanges() == 0) {
  }
  client.close();
  while (server_.connections() > 0) {
  }
  EXPECT_EQ(waiting_, 0);
}

TEST_F(WaitingTest, StopEndsHandlersAsIfTheirClientsHadGone) {
  stream_ = true;
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(std::make_unique<RawClient>(server_.port()));
    clients.back()->send(kGet);
  }
  RawClient idle(server_.port());
  RawClient half(server_.port());
  half.send("GET / HT");
  await(waiting_, 5);
  while (server_.connections() < 7) {
  }
  server_.stop();
  EXPECT_EQ(gone_, 5);
  EXPECT_EQ(ended_, 5);
  EXPECT_EQ(server_.connections(), 0U);
  EXPECT_EQ(server_.active_exchanges(), 0U);
  for (auto& client : clients) {
    client->read_to_end();
    EXPECT_TRUE(client->was_reset()) << "a stream that was cut does not look complete";
  }
  EXPECT_EQ(idle.read_to_end(), "");
  server_.stop();  // again: nothing to do
}

TEST_F(WaitingTest, DrainFinishesWhatRunsAndClosesTheRest) {
  RawClient busy(server_.port());
  busy.send(kGet);
  await(waiting_, 1);
  RawClient idle(server_.port());
  answer_ = true;
  idle.send(kGet);
  ASSERT_EQ(read_answer(idle).body, "done");
  ASSERT_EQ(read_answer(busy).body, "done");
  answer_ = false;
  busy.send(kGet);
  await(waiting_, 3);

  server_.drain();
  EXPECT_EQ(idle.read_to_end(), "") << "closed at once";
  EXPECT_THROW(RawClient(server_.port()), std::runtime_error) << "nobody listens any more";
  answer_ = true;
  const RawAnswer last = read_answer(busy);
  EXPECT_EQ(last.body, "done");
  EXPECT_TRUE(last.head.contains("Connection: close\r\n")) << last.head;
  busy.close_sending();
  EXPECT_EQ(busy.read_to_end(), "");
  while (server_.connections() > 0) {
  }
}

TEST(DrainTest, WhoHasConnectedBeforeIsStillAnswered) {
  TestServer server(echo_request);
  // Connected in the kernel's queue or accepted, its request on the way: not lost.
  std::vector<std::unique_ptr<RawClient>> clients;
  server.thread().call([&] {
    for (int i = 0; i < 10; ++i) clients.push_back(std::make_unique<RawClient>(server.port()));
    // The loop has not run since: the listener has accepted none of them.
  });
  server.drain();
  for (auto& client : clients) client->send(kGet);
  for (auto& client : clients) {
    const RawAnswer answer = read_answer(*client);
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(answer.head.contains("Connection: close\r\n")) << answer.head;
  }
}

TEST(DrainTest, ANewConnectionThatSendsNothingIsClosedSoon) {
  ServerLimits limits;
  limits.drain_grace = milliseconds{30};
  TestServer server(echo_request, limits);
  RawClient client(server.port());
  while (server.connections() == 0) {
  }
  server.drain();
  EXPECT_EQ(client.read_to_end(), "");
}

TEST(WritingTest, AClientThatTakesNothingIsGivenUp) {
  ServerLimits limits;
  limits.write_timeout = milliseconds{40};
  std::atomic<int> failed = 0;
  TestServer server(
      [&](Exchange& exchange) -> Task<> {
        ResponseHead head;
        co_await exchange.start(std::move(head), std::nullopt);
        const std::string piece(1'000'000, 'x');
        for (int i = 0; i < 1000; ++i) {
          const auto written = co_await exchange.write(piece);
          if (written) continue;
          EXPECT_EQ(written.error().code, net::NetErrc::timed_out);
          EXPECT_TRUE(exchange.client_gone());
          ++failed;
          break;
        }
      },
      limits);
  RawClient client(server.port());
  client.send(kGet);
  while (failed == 0) std::this_thread::yield();
  while (server.connections() > 0) {
  }
}

}  // namespace
}  // namespace stint::http
