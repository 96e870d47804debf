// Case C17: limits are enforced while reading, memory stays within them and is given back.
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "http/server_testing.h"

namespace stint::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kLine = "GET / HTTP/1.1\r\n";

ServerLimits small_limits() {
  ServerLimits limits;
  limits.request_line_bytes = 1000;
  limits.header_bytes = 4000;
  limits.header_count = 20;
  limits.body_bytes = 10'000;
  return limits;
}

class LimitsTest : public testing::Test {
 protected:
  // The answer to what is sent, on a connection of its own; it must end afterwards.
  RawAnswer answer_to(const std::string& bytes) {
    net::RawClient client(server_.port());
    client.send(bytes);
    const RawAnswer answer = read_answer(client);
    EXPECT_TRUE(answer.head.contains("Connection: close\r\n")) << answer.head;
    client.close_sending();
    EXPECT_TRUE(client.read_to_end().has_value());
    return answer;
  }

  TestServer server_{echo_request, small_limits()};
};

TEST_F(LimitsTest, RequestLine) {
  EXPECT_EQ(answer_to("GET /" + std::string(1000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n").status,
            414);
  EXPECT_EQ(answer_to(std::string(1001, 'a')).status, 414) << "without an end of the line";
  EXPECT_EQ(server_.requests, 0);
}

TEST_F(LimitsTest, HeaderBytes) {
  EXPECT_EQ(answer_to(std::string(kLine) + "A: " + std::string(4000, 'b')).status, 431);
  std::string many(kLine);
  for (int i = 0; i < 9; ++i) many += "A: " + std::string(500, 'b') + "\r\n";
  EXPECT_EQ(answer_to(many).status, 431);
  EXPECT_EQ(server_.requests, 0);
}

TEST_F(LimitsTest, HeaderCount) {
  std::string many(kLine);
  for (int i = 0; i < 21; ++i) many += "A: b\r\n";
  EXPECT_EQ(answer_to(many).status, 431);
  EXPECT_EQ(server_.requests, 0);
}

TEST_F(LimitsTest, AnnouncedBody) {
  const std::string head = std::string(kLine) + "Host: a\r\nContent-Length: ";
  EXPECT_EQ(answer_to(head + "10001\r\n\r\n").status, 413);
  EXPECT_EQ(answer_to(head + "18446744073709551616\r\n\r\n").status, 413);
  EXPECT_EQ(answer_to(head + "99999999999999999999999999\r\n\r\n").status, 413);
  EXPECT_EQ(server_.requests, 0) << "refused by the head alone";
}

TEST_F(LimitsTest, ChunkedBody) {
  std::string request = std::string(kLine) + "Host: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 11; ++i) request += "3E8\r\n" + std::string(1000, 'x') + "\r\n";
  EXPECT_EQ(answer_to(request).status, 413);
  EXPECT_EQ(server_.requests, 1);
}

TEST_F(LimitsTest, WhatIsJustAtTheLimitsPasses) {
  net::RawClient client(server_.port());
  client.send("POST /" + std::string(1000 - 15, 'a') +
              " HTTP/1.1\r\nHost: a\r\nX: " + std::string(3900, 'b') +
              "\r\nContent-Length: 10000\r\n\r\n" + std::string(10'000, 'x'));
  EXPECT_EQ(read_answer(client).status, 200);
}

TEST_F(LimitsTest, AnEndlessStreamIsCutOff) {
  // More than every buffer on the way: the client is stopped, it is not read to its end.
  net::RawClient client(server_.port());
  const std::string piece(1024 * 1024, 'a');
  int sent = 0;
  while (sent < 500 && client.send(piece)) ++sent;
  EXPECT_LT(sent, 500);
  EXPECT_EQ(server_.refused(), std::vector<int>({414}));
}

net::Task<> pause(net::EventLoop& loop) { co_await loop.wait_for(milliseconds(5)); }

class TimesTest : public testing::Test {
 protected:
  static ServerLimits limits() {
    ServerLimits limits;
    limits.header_timeout = milliseconds{60};
    limits.body_timeout = milliseconds{60};
    limits.idle_timeout = milliseconds{60};
    return limits;
  }
  TestServer server_{echo_request, limits()};
};

TEST_F(TimesTest, ASlowHead) {
  net::RawClient client(server_.port());
  const Duration before = server_.loop().now();
  client.send("GET / HT");
  EXPECT_EQ(read_answer(client).status, 408);
  EXPECT_GE(server_.loop().now() - before, milliseconds{60});
  EXPECT_LT(server_.loop().now() - before, seconds{20});
  client.close_sending();
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_EQ(server_.requests, 0);
}

TEST_F(TimesTest, AHeadThatNeverPausesIsAsSlow) {
  // Each byte comes in time, the whole does not: the time-out is for all of it.
  net::RawClient client(server_.port());
  client.send("GET /");
  while (server_.refused().empty() && client.send("a")) {
    server_.thread().finish([&] { return pause(server_.loop()); });
  }
  EXPECT_EQ(server_.refused(), std::vector<int>({408}));
}

TEST_F(TimesTest, ASlowBody) {
  for (const char* framing :
       {"Content-Length: 10\r\n\r\nhal", "Transfer-Encoding: chunked\r\n\r\n5\r\nhal"}) {
    net::RawClient client(server_.port());
    client.send("POST / HTTP/1.1\r\nHost: a\r\n" + std::string(framing));
    const RawAnswer answer = read_answer(client);
    EXPECT_EQ(answer.status, 408);
    EXPECT_TRUE(answer.head.contains("Connection: close\r\n"));
    client.close_sending();
    EXPECT_EQ(client.read_to_end(), "");
  }
  EXPECT_EQ(server_.active_exchanges(), 0U);
}

TEST_F(TimesTest, AnIdleConnectionIsClosedSilently) {
  net::RawClient fresh(server_.port());
  EXPECT_EQ(fresh.read_to_end(), "");
  net::RawClient used(server_.port());
  used.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(read_answer(used).status, 200);
  EXPECT_EQ(used.read_to_end(), "");
  EXPECT_TRUE(server_.refused().empty());
}

// Bytes that the program has taken from its allocator.
std::size_t used_memory() { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; }

TEST(ManyConnectionsTest, CostLittleWhenIdleAndNoMoreThanTheLimitsWhenHostile) {
  constexpr std::size_t kConnections = 50;
  const ServerLimits limits;
  TestServer server(echo_request, limits);
  {
    net::RawClient warm_up(server.port());
    warm_up.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    ASSERT_EQ(read_answer(warm_up).status, 200);
  }
  const auto memory = [&] { return server.thread().call(used_memory); };

  const std::size_t before = memory();
  std::vector<std::unique_ptr<net::RawClient>> clients;
  for (std::size_t i = 0; i < kConnections; ++i) {
    clients.push_back(std::make_unique<net::RawClient>(server.port()));
    clients.back()->send("POST / HTTP/1.1\r\nHost: a\r\nX: " + std::string(20'000, 'x') +
                         "\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'x'));
    ASSERT_EQ(read_answer(*clients.back()).status, 200);
  }
  const std::size_t idle = memory();
  EXPECT_LT(idle - before, kConnections * 8 * 1024) << "idle connections keep no buffers";
  RecordProperty("bytes_per_idle_connection", std::to_string((idle - before) / kConnections));

  // Heads that do not end, up to just below the limits.
  const std::string endless = "GET / HTTP/1.1\r\nX: " + std::string(limits.header_bytes - 100, 'x');
  for (auto& client : clients) client->send(endless);
  // Another client is served meanwhile.
  net::RawClient other(server.port());
  other.send("GET /other HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(read_answer(other).body, "GET /other  ");
  EXPECT_LT(memory() - before, (kConnections + 1) * 64 * 1024);

  for (auto& client : clients) client->send(std::string(1000, 'x'));
  for (auto& client : clients) EXPECT_EQ(read_answer(*client).status, 431);
  clients.clear();
  other.close();
  while (server.connections() > 0) {
  }
  EXPECT_LT(memory(), before + 256 * 1024) << "given back, but for what allocators keep";
}

TEST(ManyConnectionsTest, MemoryFollowsWhatArrivedNotWhatWasAnnounced) {
  TestServer server(echo_request);
  const auto memory = [&] { return server.thread().call(used_memory); };
  const std::size_t before = memory();
  std::vector<std::unique_ptr<net::RawClient>> clients;
  for (int i = 0; i < 50; ++i) {
    clients.push_back(std::make_unique<net::RawClient>(server.port()));
    clients.back()->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\nx");
  }
  while (server.active_exchanges() < 50) {
  }
  EXPECT_LT(memory() - before, 50U * 64 * 1024);
}

}  // namespace
}  // namespace stint::http
