// Which sockets of a loop are ready. For the .cc files of net.
//
// Asio asks the kernel anew for each wait on a socket. Here a socket is entered once into an epoll
// of the loop's own, edge-triggered, and what the kernel tells of it is remembered until a system
// call finds that it is no longer so. Asio waits for that epoll as a whole, once for many events.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "net/socket.h"
#include "net/task.h"

namespace stint::net {

class ReadySocket;

// Thread rule: the loop's thread.
class Readiness {
 public:
  Readiness();
  ~Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  // Between the two, waits are noticed; `detach` drops those that are left without a call.
  void attach(boost::asio::io_context& context);
  void detach();

 private:
  friend class ReadySocket;
  using Descriptor = boost::asio::posix::basic_stream_descriptor<Executor>;

  void arm();
  void dispatch();
  void wake_all(bool idle_too);
  void begin_wait();
  void end_wait() noexcept;
  void forget(const ReadySocket& socket) noexcept;

  FileDescriptor epoll_;
  boost::asio::io_context* context_ = nullptr;
  std::optional<Descriptor> descriptor_;  // of epoll_
  std::list<ReadySocket*> sockets_;
  std::size_t waits_ = 0;
  bool armed_ = false;
  bool dispatching_ = false;
  std::array<epoll_event, 128> events_{};
  std::size_t event_count_ = 0;
};

// A non-blocking socket, and who waits for it.
class ReadySocket {
 public:
  enum class Direction : unsigned char { read, write };
  // Called once, from the loop: without an error when the socket may be ready, else with
  // operation_aborted.
  using Call = std::move_only_function<void(boost::system::error_code)>;
  class Wait;

  ReadySocket(Readiness& readiness, FileDescriptor socket);
  ~ReadySocket();
  ReadySocket(const ReadySocket&) = delete;
  ReadySocket& operator=(const ReadySocket&) = delete;

  // Why it cannot be waited for (an errno), or 0.
  [[nodiscard]] int error() const noexcept { return error_; }
  [[nodiscard]] int get() const noexcept { return socket_.get(); }

  // Whether a system call in this direction may find something to do.
  [[nodiscard]] bool may_be_ready(Direction direction) const noexcept {
    return ready_[index(direction)];
  }
  // A system call would have had to wait.
  void exhausted(Direction direction) noexcept { ready_[index(direction)] = false; }
  // A read got less than it asked for: there is nothing more now, unless the end is near.
  void read_short() noexcept {
    if (!ended_) ready_[index(Direction::read)] = false;
  }

  // Nothing is under way on it: of what happens at the same time, what happens here comes last.
  void set_idle(bool idle) noexcept { idle_ = idle; }

  // Calls at the next change for the better, even if it may be ready already.
  std::shared_ptr<Wait> wait(Direction direction, Call call);
  // The same for a handler of Asio's, whose cancellation ends the wait.
  template <class Handler>
  void wait_for(Direction direction, Handler handler);
  // No call comes any more.
  void drop(const std::shared_ptr<Wait>& wait) noexcept;
  // Calls all who wait, later, with operation_aborted.
  void cancel() noexcept;
  void close() noexcept;

 private:
  friend class Readiness;
  static constexpr std::size_t index(Direction direction) noexcept {
    return static_cast<std::size_t>(direction);
  }
  void happened(std::uint32_t events) noexcept;
  void wake(std::uint32_t events);
  void wake(Direction direction, const bool& gone);
  [[nodiscard]] bool remove(const Wait& wait) noexcept;
  void abort_later(std::shared_ptr<Wait> wait);

  Readiness& readiness_;
  FileDescriptor socket_;
  int error_ = 0;
  std::array<bool, 2> ready_{};
  bool idle_ = false;
  bool ended_ = false;  // the peer's sending, or the connection
  std::array<std::vector<std::shared_ptr<Wait>>, 2> waits_{};
  std::list<ReadySocket*>::iterator position_{};
  bool* gone_ = nullptr;  // to be set when it is destroyed in the middle of `wake`
};

class ReadySocket::Wait {
 public:
  Wait(ReadySocket& socket, Direction direction, Call call)
      : socket_(&socket), direction_(direction), call_(std::move(call)) {}

  void abort() {
    if (socket_ == nullptr) return;
    ReadySocket& socket = *socket_;
    for (const auto& wait : socket.waits_[index(direction_)]) {
      if (wait.get() != this) continue;
      const std::shared_ptr<Wait> self = wait;
      if (socket.remove(*this)) socket.abort_later(self);
      return;
    }
  }

 private:
  friend class ReadySocket;
  friend class Readiness;
  void finish(boost::system::error_code error) {
    Call call = std::exchange(call_, nullptr);
    if (call) call(error);
  }

  ReadySocket* socket_;  // null: it waits no more
  Direction direction_;
  Call call_;
};

template <class Handler>
void ReadySocket::wait_for(Direction direction, Handler handler) {
  auto slot = boost::asio::get_associated_cancellation_slot(handler);
  const std::shared_ptr<Wait> begun = wait(direction, std::move(handler));
  if (!slot.is_connected()) return;
  slot.assign([begun](boost::asio::cancellation_type) { begun->abort(); });
}

}  // namespace stint::net
