#include "net/listener.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "net/stream_testing.h"

namespace stint::net {
namespace {

using std::chrono::milliseconds;

TEST(EndpointTest, ReadsHostAndPort) {
  const auto parsed = [](const char* text) {
    const NetResult<Endpoint> endpoint = parse_endpoint(text);
    return endpoint ? endpoint->host + "|" + std::to_string(endpoint->port) : "refused";
  };
  EXPECT_EQ(parsed("127.0.0.1:8080"), "127.0.0.1|8080");
  EXPECT_EQ(parsed("[::1]:0"), "::1|0");
  EXPECT_EQ(parsed(":65535"), "|65535");
  EXPECT_EQ(parsed("localhost:80"), "localhost|80");
  for (const char* bad : {"", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:80x",
                          "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:+1", "::1:80", "[::1]",
                          "[127.0.0.1]:80", "[::1:80", "a b:80", "http://x:80", ": 80"}) {
    EXPECT_EQ(parsed(bad), "refused") << bad;
  }
}

TEST(EndpointTest, IsPrintedAsItIsRead) {
  for (const char* text : {"127.0.0.1:8080", "[::1]:0", ":80"}) {
    EXPECT_EQ(to_string(parse_endpoint(text).value()), text);
  }
}

class ListenerTest : public testing::Test {
 protected:
  EventLoop loop_;

  Listener open(const std::string& address) {
    return Listener::open(loop_, parse_endpoint(address).value()).value();
  }
};

TEST_F(ListenerTest, ProbeFindsAFreePort) {
  const NetResult<std::uint16_t> port = probe_port(parse_endpoint("127.0.0.1:0").value());
  ASSERT_TRUE(port);
  EXPECT_GT(*port, 0);
  Endpoint same = parse_endpoint("127.0.0.1:0").value();
  same.port = *port;
  EXPECT_TRUE(probe_port(same)) << "the probe itself does not hold the port";
  EXPECT_EQ(Listener::open(loop_, same).value().port(), *port);
}

TEST_F(ListenerTest, ProbeTellsOfAPortInUse) {
  const Listener listener = open("127.0.0.1:0");
  Endpoint taken = parse_endpoint("127.0.0.1:0").value();
  taken.port = listener.port();
  const NetResult<std::uint16_t> probed = probe_port(taken);
  ASSERT_FALSE(probed);
  EXPECT_EQ(probed.error().code, NetErrc::address_in_use);
  EXPECT_NE(probed.error().text.find(std::to_string(taken.port)), std::string::npos);
  // All addresses include the one that is taken.
  taken.host.clear();
  EXPECT_EQ(probe_port(taken).error().code, NetErrc::address_in_use);
}

TEST_F(ListenerTest, AnAddressOfSomebodyElseIsRefused) {
  EXPECT_FALSE(Listener::open(loop_, parse_endpoint("192.0.2.1:0").value()));
  EXPECT_FALSE(Listener::open(loop_, parse_endpoint("no_such_host.invalid:0").value()));
}

TEST_F(ListenerTest, TwoListenersShareAPort) {
  Listener first = open("127.0.0.1:0");
  Listener second = open("127.0.0.1:" + std::to_string(first.port()));
  EXPECT_EQ(second.port(), first.port());
  // The kernel spreads connections over both by the client's port.
  std::vector<Stream> clients;
  std::vector<Stream> accepted;
  int by_first = 0;
  int by_second = 0;
  for (int i = 0; i < 64; ++i) {
    ConnectTo to("127.0.0.1", first.port());
    clients.push_back(run(loop_, connect(loop_, std::move(to), kLong)).value());
  }
  while (auto stream = first.accept_waiting()) {
    accepted.push_back(std::move(*stream));
    ++by_first;
  }
  while (auto stream = second.accept_waiting()) {
    accepted.push_back(std::move(*stream));
    ++by_second;
  }
  EXPECT_EQ(by_first + by_second, 64);
  EXPECT_GT(by_first, 0);
  EXPECT_GT(by_second, 0);
}

TEST_F(ListenerTest, AllAddressesTakeBothFamilies) {
  Listener listener = open(":0");
  for (const char* host : {"127.0.0.1", "::1"}) {
    ConnectTo to(host, listener.port());
    const NetResult<Stream> client = run(loop_, connect(loop_, std::move(to), kLong));
    if (!client) {
      EXPECT_STREQ(host, "::1") << client.error().text;  // a machine without IPv6
      continue;
    }
    const NetResult<Stream> server = run(loop_, listener.accept());
    EXPECT_EQ(server.value().peer_address(), host) << "mapped IPv4 is IPv4";
  }
}

TEST_F(ListenerTest, CloseEndsTheAccept) {
  Listener listener = open("127.0.0.1:0");
  std::optional<NetErrc> ended;
  const auto acceptor = [](Listener& on, std::optional<NetErrc>& into) -> Task<> {
    const auto accepted = co_await on.accept();
    into = accepted.error().code;
  };
  TaskGroup tasks(loop_);
  tasks.start(acceptor(listener, ended));
  loop_.post([&] { listener.close(); });
  run(loop_, tasks.join());
  EXPECT_EQ(ended, NetErrc::cancelled);
  EXPECT_EQ(run(loop_, listener.accept()).error().code, NetErrc::cancelled);
  EXPECT_FALSE(listener.accept_waiting().has_value());
}

TEST_F(ListenerTest, SurvivesAShortageOfFileHandles) {
  Listener listener = open("127.0.0.1:0");
  ConnectTo to("127.0.0.1", listener.port());
  const Stream client = run(loop_, connect(loop_, std::move(to), kLong)).value();
  std::vector<int> hoard;
  for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) hoard.push_back(fd);

  std::optional<NetResult<Stream>> accepted;
  const auto acceptor = [](Listener& on, std::optional<NetResult<Stream>>& into) -> Task<> {
    auto stream = co_await on.accept();
    into.emplace(std::move(stream));
  };
  TaskGroup tasks(loop_);
  tasks.start(acceptor(listener, accepted));
  run(loop_, loop_.wait_for(milliseconds{20}));
  EXPECT_FALSE(accepted.has_value());
  for (const int fd : hoard) ::close(fd);
  run(loop_, tasks.join());
  EXPECT_TRUE(accepted.value().has_value());
}

}  // namespace
}  // namespace stint::net
