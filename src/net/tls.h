// The client side of TLS as a state machine on a non-blocking socket: every step returns what
// happened, or for what to wait before the same step is taken again. For the .cc files of net.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "net/connect.h"
#include "net/result.h"

namespace stint::net {

struct TlsClientContext::Impl {
  struct Free {
    void operator()(SSL_CTX* freed) const noexcept { SSL_CTX_free(freed); }
  };
  std::unique_ptr<SSL_CTX, Free> context;
  bool verify = true;
};

class TlsSession {
 public:
  struct Step {
    enum class Kind : unsigned char { done, want_read, want_write, failed };
    Kind kind = Kind::done;
    std::size_t bytes = 0;
    NetError error{};
  };

  // `socket` is not owned and must be non-blocking; the context is kept. `host`: the name (or
  // address) that the certificate must be for. Null on an error.
  static std::unique_ptr<TlsSession> create(std::shared_ptr<const TlsClientContext> context,
                                            int socket, const std::string& host);

  [[nodiscard]] Step handshake();
  [[nodiscard]] Step read(std::span<char> into);
  [[nodiscard]] Step peek();
  [[nodiscard]] Step write(std::string_view bytes);
  // Bytes that were received and decrypted, or can be without the socket.
  [[nodiscard]] bool pending() const noexcept;
  // Says goodbye, if the socket takes it at once.
  void shut_down() noexcept;

 private:
  struct Free {
    void operator()(SSL* session) const noexcept { SSL_free(session); }
  };
  TlsSession(std::shared_ptr<const TlsClientContext> context, int socket, SSL* session) noexcept;
  // What a call of OpenSSL that returned `result` means.
  [[nodiscard]] Step outcome(int result, std::size_t bytes);

  std::shared_ptr<const TlsClientContext> context_;
  int socket_;  // the session's BIO points here
  std::unique_ptr<SSL, Free> session_;
  bool broken_ = false;  // no further call is allowed, not even the goodbye
};

}  // namespace stint::net
