#include "net/stream.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "net/stream_impl.h"
#include "net/system_error.h"

namespace stint::net {
namespace {

// After so many reads in a row that found bytes waiting, others have their turn.
constexpr unsigned kReadsAtOnce = 16;
// Parts of a TLS write that together are at most so long go into one record.
constexpr std::size_t kOneRecord = std::size_t{16} * 1024;
// Up to so many bytes are copied together: the kernel takes longer to be told of several parts.
constexpr std::size_t kCopied = 2048;

using Direction = ReadySocket::Direction;

// As ::send.
ssize_t send_parts(int socket, const Stream::Parts& parts) noexcept {
  std::array<iovec, std::tuple_size_v<Stream::Parts>> vectors;
  std::size_t count = 0;
  std::size_t total = 0;
  for (const std::string_view part : parts) {
    if (part.empty()) continue;
    vectors[count].iov_base = const_cast<char*>(part.data());
    vectors[count].iov_len = part.size();
    total += part.size();
    ++count;
  }
  if (count == 1) return ::send(socket, vectors[0].iov_base, total, MSG_NOSIGNAL);
  if (total <= kCopied) {
    std::array<char, kCopied> together;
    char* at = together.data();
    for (const std::string_view part : parts) at = std::ranges::copy(part, at).out;
    return ::send(socket, together.data(), total, MSG_NOSIGNAL);
  }
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = count;
  return ::sendmsg(socket, &message, MSG_NOSIGNAL);
}

}  // namespace

Stream::Impl::Waiting::Waiting(DeadlineQueue& queue, ReadySocket& socket)
    : deadline(queue, [this, &socket] {
        timed_out = true;
        socket.cancel();
      }) {}

Stream::Impl::Impl(EventLoop& loop, FileDescriptor socket, std::string peer)
    : loop_(loop),
      socket_(loop.readiness(), std::move(socket)),
      peer_(std::move(peer)),
      reading_(loop.deadlines(), socket_),
      writing_(loop.deadlines(), socket_) {
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Stream::Impl::~Impl() { close(); }

void Stream::Impl::note(const Attempt& attempt) noexcept {
  if (attempt.kind == Attempt::Kind::want_read) socket_.exhausted(Direction::read);
  if (attempt.kind == Attempt::Kind::want_write) socket_.exhausted(Direction::write);
}

Stream::Impl::Attempt Stream::Impl::try_read(std::span<char> into) {
  Attempt attempt;
  if (tls_) {
    TlsSession::Step step = tls_->read(into);
    attempt.kind = static_cast<Attempt::Kind>(step.kind);
    attempt.bytes = step.bytes;
    attempt.error = std::move(step.error);
    note(attempt);
    return attempt;
  }
  const ssize_t n = TEMP_FAILURE_RETRY(::recv(socket_.get(), into.data(), into.size(), 0));
  if (n > 0) {
    attempt.bytes = static_cast<std::size_t>(n);
    if (attempt.bytes < into.size()) socket_.read_short();
  } else if (n == 0) {
    attempt.kind = Attempt::Kind::failed;
    attempt.error = make_error(NetErrc::closed);
  } else if (errno == EAGAIN) {
    attempt.kind = Attempt::Kind::want_read;
  } else {
    attempt.kind = Attempt::Kind::failed;
    attempt.error = error_from_errno(errno, "read");
  }
  note(attempt);
  return attempt;
}

Stream::Impl::Attempt Stream::Impl::try_peek() {
  Attempt attempt;
  if (tls_) {
    TlsSession::Step step = tls_->peek();
    attempt.kind = static_cast<Attempt::Kind>(step.kind);
    note(attempt);
    return attempt;
  }
  char byte = 0;
  const ssize_t n = TEMP_FAILURE_RETRY(::recv(socket_.get(), &byte, 1, MSG_PEEK));
  if (n < 0 && errno == EAGAIN) {
    attempt.kind = Attempt::Kind::want_read;
  } else if (n <= 0) {
    attempt.kind = Attempt::Kind::failed;
  }
  note(attempt);
  return attempt;
}

Stream::Impl::Attempt Stream::Impl::try_write(const Parts& parts) {
  Attempt attempt;
  if (tls_) {
    // One record for short parts; the copy costs less than a second record. The same bytes are
    // offered again after a wait, as OpenSSL demands.
    std::string joined;
    std::string_view bytes;
    const std::size_t total = parts[0].size() + parts[1].size() + parts[2].size();
    for (const std::string_view part : parts) {
      if (part.size() == total) bytes = part;
    }
    if (bytes.size() != total) {
      joined.reserve(std::min(total, kOneRecord));
      for (const std::string_view part : parts) {
        joined.append(part.substr(0, kOneRecord - joined.size()));
      }
      bytes = joined;
    }
    TlsSession::Step step = tls_->write(bytes.substr(0, kOneRecord));
    attempt.kind = static_cast<Attempt::Kind>(step.kind);
    attempt.bytes = step.bytes;
    attempt.error = std::move(step.error);
    note(attempt);
    return attempt;
  }
  const ssize_t n = TEMP_FAILURE_RETRY(send_parts(socket_.get(), parts));
  if (n >= 0) {
    attempt.bytes = static_cast<std::size_t>(n);
  } else if (errno == EAGAIN) {
    attempt.kind = Attempt::Kind::want_write;
  } else {
    attempt.kind = Attempt::Kind::failed;
    attempt.error = error_from_errno(errno, "write");
  }
  note(attempt);
  return attempt;
}

Task<std::optional<NetError>> Stream::Impl::wait(Attempt::Kind kind, Waiting& waiting) {
  auto before = co_await boost::asio::this_coro::cancellation_state;
  if (before.cancelled() != boost::asio::cancellation_type::none) {
    co_return make_error(NetErrc::cancelled);
  }
  const auto direction = kind == Attempt::Kind::want_write ? Direction::write : Direction::read;
  boost::system::error_code error;
  if (!socket_.may_be_ready(direction)) {
    auto begin = [this, direction](auto handler) {
      socket_.wait_for(direction, std::move(handler));
    };
    using Signature = void(boost::system::error_code);
    auto ended = boost::asio::async_initiate<decltype(kToken), Signature>(std::move(begin), kToken);
    const auto [why] = co_await std::move(ended);
    error = why;
  } else if (reads_at_once_ >= kReadsAtOnce) {
    constexpr boost::asio::use_awaitable_t<Executor> kPosted;
    co_await boost::asio::post(loop_.executor(), kPosted);
  }
  reads_at_once_ = 0;
  if (closed_) co_return make_error(NetErrc::cancelled);
  if (waiting.timed_out) co_return make_error(NetErrc::timed_out);
  if (!error) co_return std::nullopt;
  if (error != boost::asio::error::operation_aborted) {
    co_return error_from_errno(error.value(), "wait");
  }
  auto after = co_await boost::asio::this_coro::cancellation_state;
  if (after.cancelled() != boost::asio::cancellation_type::none) {
    co_return make_error(NetErrc::cancelled);
  }
  // Another wait on this socket was ended, and with it, needlessly, this one: try again.
  co_return std::nullopt;
}

Task<NetResult<std::size_t>> Stream::Impl::read_some(std::span<char> into, Duration timeout) {
  if (closed_) co_return std::unexpected(make_error(NetErrc::cancelled));
  bool armed = false;
  Attempt attempt;
  for (;;) {
    // Where there is nothing yet a system call is saved.
    const bool known = !tls_ && !socket_.may_be_ready(Direction::read);
    const bool skip = !armed && (known || reads_at_once_ >= kReadsAtOnce);
    if (skip) {
      attempt.kind = Attempt::Kind::want_read;
    } else {
      attempt = try_read(into);
    }
    if (attempt.kind == Attempt::Kind::done || attempt.kind == Attempt::Kind::failed) break;
    if (!armed) {
      armed = true;
      reading_.timed_out = false;
      reading_.deadline.arm(loop_.now() + timeout);
    }
    auto over = co_await wait(attempt.kind, reading_);
    if (over) {
      reading_.deadline.disarm();
      co_return std::unexpected(std::move(*over));
    }
  }
  reading_.deadline.disarm();
  if (attempt.kind == Attempt::Kind::failed) co_return std::unexpected(std::move(attempt.error));
  ++reads_at_once_;
  co_return attempt.bytes;
}

Task<NetResult<void>> Stream::Impl::wait_readable(Duration timeout) {
  if (closed_) co_return std::unexpected(make_error(NetErrc::cancelled));
  if (tls_ && tls_->pending()) co_return NetResult<void>();
  // What the kernel told may be of bytes that were read since.
  if (socket_.may_be_ready(Direction::read)) {
    if (polled(POLLIN) != 0) co_return NetResult<void>();
    socket_.exhausted(Direction::read);
  }
  reading_.timed_out = false;
  reading_.deadline.arm(loop_.now() + timeout);
  socket_.set_idle(true);
  auto over = co_await wait(Attempt::Kind::want_read, reading_);
  socket_.set_idle(false);
  reading_.deadline.disarm();
  if (over) co_return std::unexpected(std::move(*over));
  co_return NetResult<void>();
}

std::optional<NetResult<void>> Stream::Impl::write_now(Parts& parts) {
  if (closed_) return std::unexpected(make_error(NetErrc::cancelled));
  Attempt attempt = try_write(parts);
  if (attempt.kind == Attempt::Kind::failed) return std::unexpected(std::move(attempt.error));
  if (attempt.kind != Attempt::Kind::done) return std::nullopt;
  bool left = false;
  for (std::string_view& part : parts) {
    const std::size_t taken = std::min(part.size(), attempt.bytes);
    part.remove_prefix(taken);
    attempt.bytes -= taken;
    left = left || !part.empty();
  }
  if (left) return std::nullopt;
  return NetResult<void>();
}

Task<NetResult<void>> Stream::Impl::write(Parts parts, Duration timeout) {
  if (closed_) co_return std::unexpected(make_error(NetErrc::cancelled));
  for (;;) {
    if (parts[0].empty() && parts[1].empty() && parts[2].empty()) break;
    Attempt attempt = try_write(parts);
    if (attempt.kind == Attempt::Kind::failed) {
      co_return std::unexpected(std::move(attempt.error));
    }
    if (attempt.kind == Attempt::Kind::done) {
      for (std::string_view& part : parts) {
        const std::size_t taken = std::min(part.size(), attempt.bytes);
        part.remove_prefix(taken);
        attempt.bytes -= taken;
      }
      writing_.deadline.disarm();
      continue;
    }
    if (!writing_.deadline.armed()) {
      writing_.timed_out = false;
      writing_.deadline.arm(loop_.now() + timeout);
    }
    auto over = co_await wait(attempt.kind, writing_);
    if (over) {
      writing_.deadline.disarm();
      co_return std::unexpected(std::move(*over));
    }
  }
  co_return NetResult<void>();
}

std::optional<NetResult<std::size_t>> Stream::Impl::read_waiting(std::span<char> into) {
  if (closed_) return std::unexpected(make_error(NetErrc::cancelled));
  Attempt attempt = try_read(into);
  if (attempt.kind == Attempt::Kind::failed) return std::unexpected(std::move(attempt.error));
  if (attempt.kind != Attempt::Kind::done) return std::nullopt;
  return attempt.bytes;
}

void Stream::Impl::close() noexcept {
  if (closed_) return;
  if (tls_) tls_->shut_down();
  stop_watching();
  closed_ = true;
  reading_.deadline.disarm();
  writing_.deadline.disarm();
  socket_.close();
}

void Stream::Impl::close_sending() noexcept {
  if (closed_) return;
  if (tls_) tls_->shut_down();
  ::shutdown(socket_.get(), SHUT_WR);
}

void Stream::Impl::abort() noexcept {
  if (closed_) return;
  linger reset{};
  reset.l_onoff = 1;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  tls_.reset();  // no goodbye
  close();
}

Task<NetResult<void>> Stream::Impl::finish_connect(Duration timeout) {
  writing_.timed_out = false;
  writing_.deadline.arm(loop_.now() + timeout);
  for (;;) {
    auto over = co_await wait(Attempt::Kind::want_write, writing_);
    if (over) {
      writing_.deadline.disarm();
      co_return std::unexpected(std::move(*over));
    }
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      writing_.deadline.disarm();
      co_return std::unexpected(error_from_errno(error, "connect"));
    }
    SocketAddress peer;
    peer.size = sizeof peer.storage;
    if (::getpeername(socket_.get(), peer.get(), &peer.size) == 0) break;
    socket_.exhausted(Direction::write);  // it was woken for nothing
  }
  writing_.deadline.disarm();
  co_return NetResult<void>();
}

Task<NetResult<void>> Stream::Impl::shake_hands(std::shared_ptr<const TlsClientContext> tls,
                                                std::string host, Duration timeout) {
  tls_ = TlsSession::create(std::move(tls), socket_.get(), host);
  if (!tls_) co_return std::unexpected(make_error(NetErrc::tls));
  reading_.timed_out = false;
  reading_.deadline.arm(loop_.now() + timeout);
  for (;;) {
    TlsSession::Step step = tls_->handshake();
    if (step.kind == TlsSession::Step::Kind::done) break;
    if (step.kind == TlsSession::Step::Kind::failed) {
      reading_.deadline.disarm();
      co_return std::unexpected(std::move(step.error));
    }
    Attempt attempt;
    attempt.kind = static_cast<Attempt::Kind>(step.kind);
    note(attempt);
    auto over = co_await wait(attempt.kind, reading_);
    if (over) {
      reading_.deadline.disarm();
      co_return std::unexpected(std::move(*over));
    }
  }
  reading_.deadline.disarm();
  co_return NetResult<void>();
}

Stream::Stream(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
Stream::~Stream() = default;

Task<NetResult<std::size_t>> Stream::read_some(std::span<char> into, Duration timeout) {
  return impl_->read_some(into, timeout);
}
Task<NetResult<void>> Stream::wait_readable(Duration timeout) {
  return impl_->wait_readable(timeout);
}
Task<NetResult<void>> Stream::write(std::string_view first, std::string_view second,
                                    Duration timeout) {
  return impl_->write(Parts{first, second, {}}, timeout);
}
Task<NetResult<void>> Stream::write(std::string_view first, std::string_view second,
                                    std::string_view third, Duration timeout) {
  return impl_->write(Parts{first, second, third}, timeout);
}
std::optional<NetResult<void>> Stream::write_now(Parts& parts) { return impl_->write_now(parts); }
Task<bool> Stream::watch_for_end() { return impl_->watch_for_end(); }
void Stream::watch(std::move_only_function<void(bool ended)> done) {
  impl_->watch(std::move(done));
}
void Stream::stop_watching() noexcept { impl_->stop_watching(); }
std::optional<NetResult<std::size_t>> Stream::read_waiting(std::span<char> into) {
  return impl_->read_waiting(into);
}
bool Stream::readable() const noexcept { return impl_->readable(); }
bool Stream::peer_ended() const noexcept { return impl_->peer_ended(); }
void Stream::close() noexcept { impl_->close(); }
void Stream::close_sending() noexcept { impl_->close_sending(); }
void Stream::abort() noexcept { impl_->abort(); }
bool Stream::open() const noexcept { return impl_ && impl_->open(); }
const std::string& Stream::peer_address() const noexcept { return impl_->peer(); }

}  // namespace stint::net
