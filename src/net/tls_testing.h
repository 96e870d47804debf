// A TLS server for tests, and certificates made on the spot.
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "net/socket.h"

namespace stint::net {

// A certificate authority, and what it issues, as PEM files in a folder that is removed at the end.
class TestAuthority {
 public:
  TestAuthority();
  ~TestAuthority();
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;

  struct Files {
    std::string certificate;
    std::string key;
  };
  // `names`: of the extension subjectAltName, as in "DNS:a.example,IP:127.0.0.1".
  [[nodiscard]] Files issue(const std::string& names);
  [[nodiscard]] std::string ca_file() const { return folder_ + "/ca.pem"; }

 private:
  struct Free {
    void operator()(X509* certificate) const noexcept { X509_free(certificate); }
    void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Certificate = std::unique_ptr<X509, Free>;
  static Key make_key();
  Certificate make_certificate(EVP_PKEY* key, const std::string& name, const std::string& names);

  std::string folder_;
  Key key_;
  Certificate certificate_;
  int issued_ = 0;
};

// Accepts one connection after another on a thread of its own and has `serve` talk to each.
class TestTlsServer {
 public:
  using Serve = std::function<void(SSL* session)>;
  TestTlsServer(const TestAuthority::Files& files, const std::string& client_ca, Serve serve);
  ~TestTlsServer();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  // The name that the last client asked for; empty if none. After its connection was served.
  [[nodiscard]] const std::string& server_name() const noexcept { return server_name_; }
  // Waits until the server's thread has ended, after `connections` of them.
  void join();

 private:
  void work();

  struct Free {
    void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
  };
  std::unique_ptr<SSL_CTX, Free> context_;
  Serve serve_;
  FileDescriptor socket_;
  std::uint16_t port_ = 0;
  std::string server_name_;
  std::thread thread_;
};

// For `serve`: sends back what comes, until the end, and says goodbye.
void echo(SSL* session);

}  // namespace stint::net
