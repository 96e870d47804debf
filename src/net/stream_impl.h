// Inside of Stream: the socket, its TLS, its deadlines. For the .cc files of net only.
#pragma once

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/deadline.h"
#include "net/event_loop.h"
#include "net/stream.h"
#include "net/tls.h"

namespace stint::net {

using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, Executor>;
inline constexpr auto kToken = boost::asio::as_tuple(boost::asio::use_awaitable_t<Executor>{});

// Bytes are moved by system calls of our own, at once; only where the kernel has nothing (or takes
// nothing) does asio wait. So TCP and TLS share all code but the system call, an answer that fits
// into the kernel's buffer is written without a suspension, and who waits needs no buffer.
class Stream::Impl {
 public:
  using Parts = std::array<std::string_view, 3>;

  // `socket` is connected (or connecting) and non-blocking.
  Impl(EventLoop& loop, Socket socket, std::string peer);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Task<NetResult<std::size_t>> read_some(std::span<char> into, Duration timeout);
  std::optional<NetResult<std::size_t>> read_waiting(std::span<char> into);
  Task<NetResult<void>> wait_readable(Duration timeout);
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
    explicit Waiting(DeadlineQueue& queue, Socket& socket);
    bool timed_out = false;
    Deadline deadline;
  };
  struct Watch {
    Impl* stream;  // null: stopped
    std::move_only_function<void(bool ended)> done;
  };

  [[nodiscard]] Attempt try_read(std::span<char> into);
  [[nodiscard]] Attempt try_peek();
  [[nodiscard]] Attempt try_write(const Parts& parts);
  // Suspends until the socket may be ready; the error if the call is over instead.
  Task<std::optional<NetError>> wait(Attempt::Kind kind, Waiting& waiting);
  void arm_watch();
  [[nodiscard]] int polled(short events) const noexcept;

  EventLoop& loop_;
  Socket socket_;
  std::string peer_;
  Waiting reading_;
  Waiting writing_;
  std::unique_ptr<TlsSession> tls_;
  std::shared_ptr<Watch> watch_;
  boost::asio::cancellation_signal end_watch_;
  bool closed_ = false;
  bool watching_ = false;       // a coroutine is in watch_for_end
  bool drained_ = false;        // the last read got less than it asked for
  unsigned reads_at_once_ = 0;  // in a row, without letting others run
};

}  // namespace stint::net
