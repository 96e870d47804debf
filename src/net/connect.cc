#include "net/connect.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/basic_resolver.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "net/socket.h"
#include "net/stream_impl.h"
#include "net/system_error.h"

namespace stint::net {
namespace {

using Tcp = boost::asio::ip::tcp;
using Resolver = boost::asio::ip::basic_resolver<Tcp, Executor>;
using Timer = boost::asio::basic_waitable_timer<
    std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, Executor>;
using Endpoints = std::vector<Tcp::endpoint>;

// A look-up that may outlive who asked for it: the system's resolver cannot be interrupted.
struct LookUp {
  explicit LookUp(Executor executor) : resolver(executor), ended(executor) {}
  Resolver resolver;
  Timer ended;  // its expiry is the time-out; cancelled when the answer is there
  bool done = false;
  boost::system::error_code error;
  Endpoints found;
};

void start(const std::shared_ptr<LookUp>& look_up, const std::string& host, std::uint16_t port) {
  auto answered = [look_up](const boost::system::error_code& error,
                            const Resolver::results_type& results) {
    look_up->done = true;
    look_up->error = error;
    for (const auto& result : results) look_up->found.push_back(result.endpoint());
    look_up->ended.cancel();
  };
  look_up->resolver.async_resolve(host, std::to_string(port), Resolver::numeric_service,
                                  std::move(answered));
}

Task<NetResult<Endpoints>> resolve(EventLoop& loop, std::string host, std::uint16_t port,
                                   Duration timeout) {
  boost::system::error_code not_numeric;
  const auto address = boost::asio::ip::make_address(host, not_numeric);
  if (!not_numeric) {
    Endpoints found;
    found.emplace_back(address, port);
    co_return found;
  }
  const auto look_up = std::make_shared<LookUp>(loop.executor());
  look_up->ended.expires_after(timeout);
  start(look_up, host, port);
  const auto [error] = co_await look_up->ended.async_wait(kToken);
  if (look_up->done) {
    if (!look_up->error && !look_up->found.empty()) co_return std::move(look_up->found);
    co_return failure(NetErrc::unreachable, "resolve " + host + ": " + look_up->error.message());
  }
  const NetErrc code = error ? NetErrc::cancelled : NetErrc::timed_out;
  co_return failure(code, "resolve " + host + ": " + to_string(code));
}

// A non-blocking socket that is connecting.
NetResult<std::unique_ptr<Stream::Impl>> begin(EventLoop& loop, const Tcp::endpoint& endpoint) {
  const int family = endpoint.protocol().family();
  FileDescriptor fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return std::unexpected(error_from_errno(errno, "connect"));
  SocketAddress address;
  address.size = static_cast<socklen_t>(endpoint.size());
  std::memcpy(&address.storage, endpoint.data(), endpoint.size());
  const std::string text = address_text(address);
  // Before the event loop hears of the socket, so that it never sees it unconnected and idle.
  if (::connect(fd.get(), address.get(), address.size) != 0 && errno != EINPROGRESS) {
    return std::unexpected(error_from_errno(errno, "connect to " + text));
  }
  auto stream = std::make_unique<Stream::Impl>(loop, std::move(fd), text);
  if (stream->error() != 0) {
    return std::unexpected(error_from_errno(stream->error(), "connect to " + text));
  }
  return stream;
}

}  // namespace

Task<NetResult<Stream>> connect(EventLoop& loop, ConnectTo to, Duration timeout) {
  const Duration deadline = loop.now() + timeout;
  const auto endpoints = co_await resolve(loop, to.host, to.port, timeout);
  if (!endpoints) co_return std::unexpected(endpoints.error());

  NetError last{NetErrc::unreachable, "no address"};
  std::unique_ptr<Stream::Impl> stream;
  for (std::size_t i = 0; i < endpoints->size() && !stream; ++i) {
    // An address that swallows packets leaves the others their share of the time.
    const Duration left = deadline - loop.now();
    const auto attempts = static_cast<Duration::rep>(endpoints->size() - i);
    if (left <= Duration::zero()) {
      last = NetError{NetErrc::timed_out, "connect to " + to.host + ": timed out"};
      break;
    }
    NetResult<std::unique_ptr<Stream::Impl>> begun = begin(loop, (*endpoints)[i]);
    if (!begun) {
      last = begun.error();
      continue;
    }
    std::unique_ptr<Stream::Impl> candidate = std::move(*begun);
    const auto connected = co_await candidate->finish_connect(left / attempts);
    if (connected) {
      stream = std::move(candidate);
    } else {
      last = connected.error();
      last.text = "connect to " + to.host + " (" + candidate->peer() + "): " + last.text;
      if (last.code == NetErrc::cancelled) break;
    }
  }
  if (!stream) co_return std::unexpected(std::move(last));

  if (to.tls) {
    const Duration left = std::max(deadline - loop.now(), Duration::zero());
    const auto shaken = co_await stream->shake_hands(to.tls, to.host, left);
    if (!shaken) {
      NetError error = shaken.error();
      error.text = "TLS with " + to.host + ": " + error.text;
      co_return std::unexpected(std::move(error));
    }
  }
  co_return Stream(std::move(stream));
}

}  // namespace stint::net
