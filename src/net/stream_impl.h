// Inside of Stream: the socket, its TLS, its deadlines. For the .cc files of net only.
#pragma once

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/deadline.h"
#include "net/event_loop.h"
#include "net/readiness.h"
#include "net/socket.h"
#include "net/stream.h"
#include "net/tls.h"

namespace stint::net {

inline constexpr auto kToken = boost::asio::as_tuple(boost::asio::use_awaitable_t<Executor>{});

// Bytes are moved by system calls of our own, at once; only where the kernel has nothing (or takes
// nothing) does anybody wait. So TCP and TLS share all code but the system call, an answer that
// fits into the kernel's buffer is written without a suspension, and who waits needs no buffer.
class Stream::Impl {
 public:
  // `socket` is connected (or connecting) and non-blocking.
  Impl(EventLoop& loop, FileDescriptor socket, std::string peer);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Task<NetResult<std::size_t>> read_some(std::span<char> into, Duration timeout);
  std::optional<NetResult<std::size_t>> read_waiting(std::span<char> into);
  Task<NetResult<void>> wait_readable(Duration timeout);
  std::optional<NetResult<void>> write_now(Parts& parts);
  Task<NetResult<void>> write(Parts parts, Duration timeout);
  Task<bool> watch_for_end();
  void watch(std::move_only_function<void(bool ended)> done);
  void stop_watching() noexcept;
  [[nodiscard]] bool readable() const noexcept;
  [[nodiscard]] bool peer_ended() const noexcept;
  void close() noexcept;
  void close_sending() noexcept;
  void abort() noexcept;
  [[nodiscard]] bool open() const noexcept { return !closed_; }
  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }
  // Why the loop cannot take it (an errno), or 0.
  [[nodiscard]] int error() const noexcept { return socket_.error(); }

  // For `connect`: waits until the socket is connected, then shakes hands.
  Task<NetResult<void>> finish_connect(Duration timeout);
  Task<NetResult<void>> shake_hands(std::shared_ptr<const TlsClientContext> tls, std::string host,
                                    Duration timeout);

 private:
  // What one attempt without waiting came to.
  struct Attempt {
    enum class Kind : unsigned char { done, want_read, want_write, failed };
    Kind kind = Kind::done;
    std::size_t bytes = 0;
    NetError error{};
  };
  // One direction: what ended its wait.
  struct Waiting {
    explicit Waiting(DeadlineQueue& queue, ReadySocket& socket);
    bool timed_out = false;
    Deadline deadline;
  };
  struct Watch {
    Impl* stream;  // null: stopped
    std::move_only_function<void(bool ended)> done;
    std::shared_ptr<ReadySocket::Wait> wait{};
  };

  // Notes what an attempt has found out about the socket.
  void note(const Attempt& attempt) noexcept;
  [[nodiscard]] Attempt try_read(std::span<char> into);
  [[nodiscard]] Attempt try_peek();
  [[nodiscard]] Attempt try_write(const Parts& parts);
  // Suspends until the socket may be ready; the error if the call is over instead.
  Task<std::optional<NetError>> wait(Attempt::Kind kind, Waiting& waiting);
  void arm_watch();
  void look();
  [[nodiscard]] int polled(short events) const noexcept;

  EventLoop& loop_;
  ReadySocket socket_;
  std::string peer_;
  Waiting reading_;
  Waiting writing_;
  std::unique_ptr<TlsSession> tls_;
  std::shared_ptr<Watch> watch_;
  bool closed_ = false;
  bool watching_ = false;       // a coroutine is in watch_for_end
  unsigned reads_at_once_ = 0;  // in a row, without letting others run
};

}  // namespace stint::net
