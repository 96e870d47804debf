#include "net/connect.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "net/socket.h"
#include "net/stream_testing.h"

namespace stint::net {
namespace {

using std::chrono::milliseconds;

class ConnectTest : public testing::Test {
 protected:
  EventLoop loop_;

  NetErrc error_of(const std::string& host, std::uint16_t port, Duration timeout) {
    ConnectTo to(host, port);
    const NetResult<Stream> stream = run(loop_, connect(loop_, std::move(to), timeout));
    if (stream) {
      ADD_FAILURE() << "connected to " << host;
      return NetErrc::failed;
    }
    EXPECT_NE(stream.error().text.find(host), std::string::npos) << stream.error().text;
    return stream.error().code;
  }
};

// A listening socket whose queue is full: the kernel drops what asks for more, as a firewall does.
class FullListener {
 public:
  FullListener() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_.get(), 0), 0);
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    for (int i = 0; i < 4; ++i) {
      waiting_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      ::connect(waiting_.back().get(), reinterpret_cast<sockaddr*>(&address), size);
    }
  }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

 private:
  FileDescriptor socket_;
  std::uint16_t port_ = 0;
  std::vector<FileDescriptor> waiting_;
};

TEST_F(ConnectTest, ByNameAndByAddress) {
  for (const char* host : {"127.0.0.1", "localhost"}) {
    Listener listener = Listener::open(loop_, parse_endpoint("127.0.0.1:0").value()).value();
    ConnectTo to(host, listener.port());
    const NetResult<Stream> stream = run(loop_, connect(loop_, std::move(to), kLong));
    ASSERT_TRUE(stream) << stream.error().text;
    EXPECT_EQ(stream->peer_address(), "127.0.0.1");
  }
}

TEST_F(ConnectTest, NobodyListens) {
  const std::uint16_t port = probe_port(parse_endpoint("127.0.0.1:0").value()).value();
  EXPECT_EQ(error_of("127.0.0.1", port, kLong), NetErrc::refused);
}

TEST_F(ConnectTest, NameThatCannotBe) {
  // A label over 63 bytes: refused by the resolver itself, so that the test needs no network.
  EXPECT_EQ(error_of(std::string(70, 'x') + ".invalid", 80, kLong), NetErrc::unreachable);
}

TEST_F(ConnectTest, AddressWithoutARoute) {
  EXPECT_EQ(error_of("255.255.255.255", 80, kLong), NetErrc::unreachable);
}

TEST_F(ConnectTest, TimesOutWhenNobodyAnswers) {
  const FullListener full;
  const Duration before = loop_.now();
  EXPECT_EQ(error_of("127.0.0.1", full.port(), milliseconds{50}), NetErrc::timed_out);
  EXPECT_GE(loop_.now() - before, milliseconds{50});
  EXPECT_LT(loop_.now() - before, kLong);
}

TEST_F(ConnectTest, CanBeCancelled) {
  const FullListener full;
  std::optional<NetErrc> ended;
  const auto connecting = [](EventLoop& loop, std::uint16_t port,
                             std::optional<NetErrc>& into) -> Task<> {
    ConnectTo to("127.0.0.1", port);
    const auto stream = co_await connect(loop, std::move(to), kLong);
    into = stream.error().code;
  };
  TaskGroup tasks(loop_);
  tasks.start(connecting(loop_, full.port(), ended));
  loop_.post([&] { tasks.cancel_all(); });
  run(loop_, tasks.join());
  EXPECT_EQ(ended, NetErrc::cancelled);
}

}  // namespace
}  // namespace stint::net
