// A connection: bytes in order, over TCP or over TLS on TCP.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/result.h"
#include "net/task.h"
#include "stint/time.h"

namespace stint::net {

// Move-only; closes on destruction. At most one read (or wait_readable, or watch) and one write at
// a time, and nothing of it may be pending when it is destroyed or moved. Every wait has a
// deadline. A read that timed out took nothing, and the stream is as good as before; after a write
// that timed out it is good for closing only.
// Thread rule: the thread of its event loop.
class Stream {
 public:
  class Impl;  // the one place that sees the sockets
  explicit Stream(std::unique_ptr<Impl> impl) noexcept;
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  // At least one byte, at most `into.size()`. The orderly end is the error `closed`; the end of a
  // TLS stream without its goodbye is `reset`: something may be missing.
  [[nodiscard]] Task<NetResult<std::size_t>> read_some(std::span<char> into, Duration timeout);
  // The same without waiting; nothing if it would have to.
  [[nodiscard]] std::optional<NetResult<std::size_t>> read_waiting(std::span<char> into);
  // Completes when a read would not have to wait (bytes, the end or an error), so that who waits
  // long needs no buffer meanwhile. Rarely also when a read would have to wait all the same.
  // It is for who waits for something new to begin: of what the loop hears of at the same time,
  // this comes after all that is under way.
  [[nodiscard]] Task<NetResult<void>> wait_readable(Duration timeout);

  // What the kernel takes at once, which is taken off the parts. Nothing if something is left.
  using Parts = std::array<std::string_view, 3>;
  [[nodiscard]] std::optional<NetResult<void>> write_now(Parts& parts);
  // All of the parts, in one system call where the kernel takes it. The texts must live until it
  // ends. The timeout is for the peer to take the next byte, not for all of them.
  [[nodiscard]] Task<NetResult<void>> write(std::string_view first, std::string_view second,
                                            Duration timeout);
  [[nodiscard]] Task<NetResult<void>> write(std::string_view first, std::string_view second,
                                            std::string_view third, Duration timeout);

  // Completes when the peer has closed or reset the stream, or when stop_watching is called;
  // true for the former. Reads nothing. Bytes that the peer sends meanwhile (pipelining) end the
  // watch with false: they are for the next read. Not together with read_some. A peer that only
  // closed its sending side looks the same as one that is gone.
  [[nodiscard]] Task<bool> watch_for_end();
  // The same for who has no coroutine to spare; not called after stop_watching or close.
  void watch(std::move_only_function<void(bool ended)> done);
  void stop_watching() noexcept;
  // Whether a read would find something (bytes, the end or an error). One system call, no wait.
  [[nodiscard]] bool readable() const noexcept;
  // Whether the end of the stream has arrived, also behind bytes that nobody has read yet (TCP
  // only: the end of the connection, whatever TLS said on it). One system call, no wait.
  [[nodiscard]] bool peer_ended() const noexcept;

  // Ends both directions; what is pending completes with `cancelled`. May be called twice.
  void close() noexcept;
  // Ends the sending direction only: the peer reads the end, and may still send.
  void close_sending() noexcept;
  // Sends a reset instead of an orderly end: for streams that broke off in the middle.
  void abort() noexcept;
  [[nodiscard]] bool open() const noexcept;

  // "203.0.113.7", "2001:db8::1"; mapped IPv4 as IPv4.
  [[nodiscard]] const std::string& peer_address() const noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace stint::net
