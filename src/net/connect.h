// Opening connections.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "net/event_loop.h"
#include "net/result.h"
#include "net/stream.h"
#include "net/task.h"
#include "stint/time.h"

namespace stint::net {

// How servers are verified and who we are to them. Immutable; shared by connections.
// Thread rule: any thread.
class TlsClientContext {
 public:
  struct Options {
    std::string ca_file{};    // empty: the system's certificates
    std::string cert_file{};  // client certificate, PEM; with key_file
    std::string key_file{};
    bool verify = true;  // chain and host name; off only for tests
  };
  [[nodiscard]] static NetResult<std::shared_ptr<const TlsClientContext>> create(
      const Options& options);
  ~TlsClientContext();
  struct Impl;
  [[nodiscard]] const Impl& impl() const noexcept { return *impl_; }

 private:
  explicit TlsClientContext(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

struct ConnectTo {
  explicit ConnectTo(std::string host_in, std::uint16_t port_in)
      : host(std::move(host_in)), port(port_in) {}
  std::string host;  // a name or an address
  std::uint16_t port = 0;
  std::shared_ptr<const TlsClientContext> tls{};  // null: plain TCP
};

// Resolves, connects (each address in turn) and shakes hands, all within the timeout.
[[nodiscard]] Task<NetResult<Stream>> connect(EventLoop& loop, ConnectTo to, Duration timeout);

}  // namespace stint::net
