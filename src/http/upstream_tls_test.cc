// Upstreams over TLS.
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "http/upstream.h"
#include "http/upstream_testing.h"
#include "net/tls_testing.h"

namespace stint::http {
namespace {

// Reads the head of a request; false at the end of the connection.
bool read_request(SSL* session) {
  std::string received;
  std::array<char, 4096> bytes{};
  while (!received.contains("\r\n\r\n")) {
    const int n = SSL_read(session, bytes.data(), static_cast<int>(bytes.size()));
    if (n <= 0) return false;
    received.append(bytes.data(), static_cast<std::size_t>(n));
  }
  return true;
}

void write(SSL* session, std::string_view text) {
  SSL_write(session, text.data(), static_cast<int>(text.size()));
}

class UpstreamTls : public UpstreamFixture {
 public:
  // The server here is OpenSSL's plain one, which writes with write(2).
  UpstreamTls() { std::signal(SIGPIPE, SIG_IGN); }

  Fetched fetch_from(const net::TestTlsServer& tls_server, const std::string& host = "localhost") {
    if (!client) {
      net::TlsClientContext::Options options;
      options.ca_file = authority.ca_file();
      client = std::make_unique<UpstreamClient>(loop, limits,
                                                net::TlsClientContext::create(options).value());
    }
    Origin origin;
    origin.tls = true;
    origin.host = host;
    origin.port = tls_server.port();
    return wait(fetch_all(*client, origin, request("GET"), limits, cancel));
  }

  net::TestAuthority authority;
};

TEST_F(UpstreamTls, KeepsItsConnection) {
  std::atomic<int> connections = 0;
  net::TestTlsServer tls_server(authority.issue("DNS:localhost"), "", [&connections](SSL* session) {
    ++connections;
    while (read_request(session)) write(session, ok("hello"));
  });
  for (int i = 0; i < 3; ++i) {
    const Fetched got = fetch_from(tls_server);
    EXPECT_EQ(got.body, "hello") << got.text;
    // What the server sends beside answers, such as session tickets, is no reason to close.
    net::run_what_is_ready(loop);
    EXPECT_EQ(client->idle_connections(), 1U);
  }
  EXPECT_EQ(connections, 1);
  client->close_idle();
}

TEST_F(UpstreamTls, AGoodbyeEndsAKeptConnection) {
  net::TestTlsServer tls_server(authority.issue("DNS:localhost"), "", [](SSL* session) {
    read_request(session);
    write(session, ok("hello"));
    SSL_shutdown(session);
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(fetch_from(tls_server).body, "hello");
}

TEST_F(UpstreamTls, ACertificateOfAnotherNameIsRefused) {
  net::TestTlsServer tls_server(authority.issue("DNS:example.com"), "", net::echo);
  const Fetched got = fetch_from(tls_server);
  EXPECT_EQ(got.error, UpstreamErrc::connect);
  EXPECT_TRUE(got.text.contains("ostname mismatch")) << got.text;
}

TEST_F(UpstreamTls, AnUnknownAuthorityIsRefused) {
  net::TestAuthority other;
  net::TestTlsServer tls_server(other.issue("DNS:localhost"), "", net::echo);
  EXPECT_EQ(fetch_from(tls_server).error, UpstreamErrc::connect);
}

TEST_F(UpstreamTls, ABodyUntilTheEndNeedsAGoodbye) {
  std::atomic<bool> polite = true;
  net::TestTlsServer tls_server(authority.issue("DNS:localhost"), "", [&polite](SSL* session) {
    read_request(session);
    write(session, "HTTP/1.1 200 OK\r\n\r\nhello");
    if (polite) SSL_shutdown(session);
  });
  const Fetched whole = fetch_from(tls_server);
  EXPECT_EQ(whole.body, "hello");
  EXPECT_EQ(whole.error, std::nullopt);
  polite = false;
  const Fetched cut = fetch_from(tls_server);
  EXPECT_EQ(cut.body, "hello");
  EXPECT_EQ(cut.error, UpstreamErrc::cut);
}

TEST_F(UpstreamTls, TheConnectTimeoutCountsForTheHandshake) {
  limits.connect_timeout = std::chrono::milliseconds{30};
  server.play({Step::bytes()});
  client = std::make_unique<UpstreamClient>(
      loop, limits, net::TlsClientContext::create(net::TlsClientContext::Options()).value());
  Origin origin = server.origin();
  origin.tls = true;
  EXPECT_EQ(wait(fetch_all(*client, origin, request("GET"), limits, cancel)).error,
            UpstreamErrc::connect);
  wait(server.quiet());
  EXPECT_EQ(server.ended_by_client(), 1U);
}

}  // namespace
}  // namespace stint::http
