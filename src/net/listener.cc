#include "net/listener.h"

#include <sys/socket.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/this_coro.hpp>
#include <cerrno>
#include <utility>

#include "net/endpoint.h"
#include "net/socket.h"
#include "net/stream_impl.h"
#include "net/system_error.h"

namespace stint::net {
namespace {

using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::ip::tcp, Executor>;

// How long to wait for file handles or memory to become free.
constexpr Duration kPause = std::chrono::milliseconds{50};

boost::asio::ip::tcp protocol_of(int family) {
  return family == AF_INET6 ? boost::asio::ip::tcp::v6() : boost::asio::ip::tcp::v4();
}

// Errors of one connection, which ended before it was accepted (accept(2), "Error handling").
bool concerns_one_connection(int error) noexcept {
  switch (error) {
    case EINTR:
    case ECONNABORTED:
    case ENETDOWN:
    case EPROTO:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
      return true;
    default:
      return false;
  }
}

bool is_shortage(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

struct Listener::Impl {
  Impl(EventLoop& loop_in, int socket) : loop(loop_in), acceptor(loop_in.executor()) {
    port = bound_port(socket);
    SocketAddress address;
    address.size = sizeof address.storage;
    ::getsockname(socket, address.get(), &address.size);
    acceptor.assign(protocol_of(address.storage.ss_family), socket);
  }

  // A connection, or the error: EAGAIN if there is none.
  std::expected<Stream, int> try_accept() {
    for (;;) {
      SocketAddress address;
      address.size = sizeof address.storage;
      FileDescriptor accepted(::accept4(acceptor.native_handle(), address.get(), &address.size,
                                        SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!accepted.valid()) {
        if (concerns_one_connection(errno)) continue;
        return std::unexpected(errno);
      }
      auto stream =
          std::make_unique<Stream::Impl>(loop, std::move(accepted), address_text(address));
      if (stream->error() != 0) return std::unexpected(ENOMEM);  // no room in epoll
      return Stream(std::move(stream));
    }
  }

  EventLoop& loop;
  Acceptor acceptor;
  std::uint16_t port = 0;
};

Listener::Listener(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Listener::Listener(Listener&&) noexcept = default;
Listener& Listener::operator=(Listener&&) noexcept = default;
Listener::~Listener() {
  if (impl_) close();
}

NetResult<Listener> Listener::open(EventLoop& loop, const Endpoint& endpoint) {
  NetResult<FileDescriptor> bound = bind_endpoint(endpoint, /*reuse_port=*/true);
  if (!bound) return std::unexpected(bound.error());
  auto impl = std::make_shared<Impl>(loop, bound->get());
  bound->release();
  return Listener(std::move(impl));
}

Task<NetResult<Stream>> Listener::accept() {
  const std::shared_ptr<Impl> impl = impl_;
  for (;;) {
    if (!impl->acceptor.is_open()) break;
    auto state = co_await boost::asio::this_coro::cancellation_state;
    if (state.cancelled() != boost::asio::cancellation_type::none) break;
    std::expected<Stream, int> accepted = impl->try_accept();
    if (accepted) co_return std::move(*accepted);
    if (accepted.error() == EAGAIN) {
      co_await impl->acceptor.async_wait(Acceptor::wait_read, kToken);
    } else if (is_shortage(accepted.error())) {
      co_await impl->loop.wait_for(kPause);
    } else {
      co_return std::unexpected(error_from_errno(accepted.error(), "accept"));
    }
  }
  co_return failure(NetErrc::cancelled, "the listener was closed");
}

std::optional<Stream> Listener::accept_waiting() {
  if (!impl_->acceptor.is_open()) return std::nullopt;
  std::expected<Stream, int> accepted = impl_->try_accept();
  if (!accepted) return std::nullopt;
  return std::move(*accepted);
}

void Listener::close() noexcept {
  boost::system::error_code ignored;
  impl_->acceptor.close(ignored);
}

std::uint16_t Listener::port() const noexcept { return impl_->port; }

}  // namespace stint::net
