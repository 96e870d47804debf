// Accepting connections.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "net/event_loop.h"
#include "net/result.h"
#include "net/stream.h"
#include "net/task.h"

namespace stint::net {

// "127.0.0.1:8080", "[::1]:0", ":8080" (all addresses, IPv6 and IPv4), "0.0.0.0:8080",
// "localhost:8080". Port 0: one that is free.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
};
[[nodiscard]] NetResult<Endpoint> parse_endpoint(const std::string& text);
[[nodiscard]] std::string to_string(const Endpoint& endpoint);

// Whether anybody holds the port: binds it once without SO_REUSEPORT, so that two programs never
// share a port by accident. `address_in_use` if so. Gives the port (of port 0: the one found).
[[nodiscard]] NetResult<std::uint16_t> probe_port(const Endpoint& endpoint);

// Listens with SO_REUSEPORT, so that each event loop has a listener of its own on the same port
// and the kernel spreads connections over them.
// Thread rule: the loop's thread.
class Listener {
 public:
  [[nodiscard]] static NetResult<Listener> open(EventLoop& loop, const Endpoint& endpoint);
  Listener(Listener&&) noexcept;
  Listener& operator=(Listener&&) noexcept;
  ~Listener();

  // The next connection. Survives EMFILE and aborted connections (tries again after a pause).
  // `cancelled` after close; the listener may then be destroyed before it completes.
  [[nodiscard]] Task<NetResult<Stream>> accept();
  // One that the kernel has taken already, if any: before `close`, which would reset those.
  [[nodiscard]] std::optional<Stream> accept_waiting();
  void close() noexcept;
  [[nodiscard]] std::uint16_t port() const noexcept;

 private:
  struct Impl;
  explicit Listener(std::shared_ptr<Impl> impl) noexcept;
  std::shared_ptr<Impl> impl_;  // shared with a pending accept
};

}  // namespace stint::net
