#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "net/connect.h"
#include "net/stream_testing.h"
#include "net/tls_testing.h"

namespace stint::net {
namespace {

using std::chrono::milliseconds;

class TlsTest : public testing::Test {
 protected:
  // The servers here are OpenSSL's plain ones, which write with write(2).
  TlsTest() { ::signal(SIGPIPE, SIG_IGN); }

  std::shared_ptr<const TlsClientContext> context(bool verify = true) {
    TlsClientContext::Options options;
    options.ca_file = authority_.ca_file();
    options.verify = verify;
    return TlsClientContext::create(options).value();
  }
  NetResult<Stream> connect_to(const std::string& host, std::uint16_t port,
                               std::shared_ptr<const TlsClientContext> tls,
                               Duration timeout = kLong) {
    ConnectTo to(host, port);
    to.tls = std::move(tls);
    return run(loop_, connect(loop_, std::move(to), timeout));
  }

  EventLoop loop_;
  TestAuthority authority_;
};

TEST_F(TlsTest, SpeaksToAServerThatItTrusts) {
  TestTlsServer server(authority_.issue("DNS:localhost"), "", echo);
  {
    NetResult<Stream> stream = connect_to("localhost", server.port(), context());
    ASSERT_TRUE(stream) << stream.error().text;
    ASSERT_TRUE(run(loop_, stream->write("hello ", "wor", "ld", kLong)));
    EXPECT_EQ(run(loop_, read_exactly(*stream, 11)), "hello world");
  }
  server.join();
  EXPECT_EQ(server.server_name(), "localhost");
}

TEST_F(TlsTest, AnAddressIsVerifiedAsAnAddress) {
  TestTlsServer server(authority_.issue("IP:127.0.0.1"), "", echo);
  {
    EXPECT_TRUE(connect_to("127.0.0.1", server.port(), context()));
  }
  server.join();
  EXPECT_EQ(server.server_name(), "") << "RFC 6066: addresses are not sent as server names";
}

TEST_F(TlsTest, RefusesACertificateForAnotherHost) {
  for (const char* names : {"DNS:example.com", "IP:127.0.0.2", "DNS:*.localhost"}) {
    TestTlsServer server(authority_.issue(names), "", echo);
    const NetResult<Stream> stream = connect_to("localhost", server.port(), context());
    ASSERT_FALSE(stream) << names;
    EXPECT_EQ(stream.error().code, NetErrc::tls);
    EXPECT_NE(stream.error().text.find("ostname mismatch"), std::string::npos)
        << stream.error().text;
  }
  TestTlsServer server(authority_.issue("DNS:localhost"), "", echo);
  EXPECT_EQ(connect_to("127.0.0.1", server.port(), context()).error().code, NetErrc::tls);
}

TEST_F(TlsTest, RefusesAnAuthorityThatItDoesNotKnow) {
  TestAuthority other;
  TestTlsServer server(other.issue("DNS:localhost"), "", echo);
  EXPECT_EQ(connect_to("localhost", server.port(), context()).error().code, NetErrc::tls);
  const auto system = TlsClientContext::create(TlsClientContext::Options()).value();
  EXPECT_EQ(connect_to("localhost", server.port(), system).error().code, NetErrc::tls);
}

TEST_F(TlsTest, VerifiesNothingWhenToldSo) {
  TestAuthority other;
  TestTlsServer server(other.issue("DNS:example.com"), "", echo);
  EXPECT_TRUE(connect_to("localhost", server.port(), context(/*verify=*/false)));
}

TEST_F(TlsTest, ShowsItsOwnCertificate) {
  const TestAuthority::Files own = authority_.issue("DNS:client");
  TlsClientContext::Options options;
  options.ca_file = authority_.ca_file();
  options.cert_file = own.certificate;
  options.key_file = own.key;
  TestTlsServer server(authority_.issue("DNS:localhost"), authority_.ca_file(), echo);
  {
    NetResult<Stream> stream =
        connect_to("localhost", server.port(), TlsClientContext::create(options).value());
    ASSERT_TRUE(stream) << stream.error().text;
    ASSERT_TRUE(run(loop_, stream->write("x", "", kLong)));
    EXPECT_EQ(run(loop_, read_exactly(*stream, 1)), "x");
  }
  // Without one, TLS 1.3 tells the client with its first read.
  NetResult<Stream> stream = connect_to("localhost", server.port(), context());
  if (stream) {
    EXPECT_EQ(run(loop_, read_error(*stream, kLong)), NetErrc::tls);
  } else {
    EXPECT_EQ(stream.error().code, NetErrc::tls);
  }
}

TEST_F(TlsTest, BadFilesAreToldWithTheirName) {
  TlsClientContext::Options options;
  options.ca_file = "/no/such/ca.pem";
  EXPECT_NE(TlsClientContext::create(options).error().text.find(options.ca_file),
            std::string::npos);
  options.ca_file = authority_.ca_file();
  options.cert_file = authority_.ca_file();
  EXPECT_FALSE(TlsClientContext::create(options));  // without its key
  options.key_file = "/no/such/key.pem";
  EXPECT_NE(TlsClientContext::create(options).error().text.find(options.key_file),
            std::string::npos);
  options.key_file = authority_.issue("DNS:other").key;
  EXPECT_FALSE(TlsClientContext::create(options)) << "the key of another certificate";
}

TEST_F(TlsTest, MuchGoesBothWaysAtOnce) {
  TestTlsServer server(authority_.issue("DNS:localhost"), "", echo);
  Stream stream = connect_to("localhost", server.port(), context()).value();
  std::string sent(4 * 1024 * 1024, '\0');
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * i >> 3);
  TaskGroup tasks(loop_);
  const auto writer = [](Stream& to, const std::string& text) -> Task<> {
    const std::string_view view = text;
    const auto written = co_await to.write(view.substr(0, 100), view.substr(100, 20'000),
                                           view.substr(20'100), kLong);
    EXPECT_TRUE(written.has_value());
  };
  tasks.start(writer(stream, sent));
  EXPECT_TRUE(run(loop_, read_exactly(stream, sent.size())) == sent);
  run(loop_, tasks.join());
}

TEST_F(TlsTest, AGoodbyeIsClosedAndItsLackIsAReset) {
  TestTlsServer polite(authority_.issue("DNS:localhost"), "",
                       [](SSL* session) { SSL_shutdown(session); });
  Stream first = connect_to("localhost", polite.port(), context()).value();
  EXPECT_EQ(run(loop_, read_error(first, kLong)), NetErrc::closed);

  TestTlsServer rude(authority_.issue("DNS:localhost"), "",
                     [](SSL* session) { ::shutdown(SSL_get_fd(session), SHUT_RDWR); });
  Stream second = connect_to("localhost", rude.port(), context()).value();
  EXPECT_EQ(run(loop_, read_error(second, kLong)), NetErrc::reset);
}

TEST_F(TlsTest, TheServerSeesOurGoodbye) {
  std::optional<int> seen;
  TestTlsServer server(authority_.issue("DNS:localhost"), "", [&](SSL* session) {
    char byte = 0;
    const int n = SSL_read(session, &byte, 1);
    seen = SSL_get_error(session, n);
  });
  {
    EXPECT_TRUE(connect_to("localhost", server.port(), context()));
  }
  server.join();
  EXPECT_EQ(seen, SSL_ERROR_ZERO_RETURN);
}

TEST_F(TlsTest, AWatchSeesTheEndAndNotTheSessionTickets) {
  // TLS 1.3 sends tickets after the handshake: bytes on the wire that are nothing to read.
  std::promise<void> may_end;
  TestTlsServer server(authority_.issue("DNS:localhost"), "", [&](SSL* session) {
    may_end.get_future().wait();
    SSL_shutdown(session);
  });
  Stream stream = connect_to("localhost", server.port(), context()).value();
  ASSERT_TRUE(run(loop_, stream.wait_readable(kLong))) << "the tickets";
  std::optional<bool> ended;
  stream.watch([&](bool result) {
    ended = result;
    loop_.stop();
  });
  run_what_is_ready(loop_);
  EXPECT_EQ(ended, std::nullopt);
  may_end.set_value();
  loop_.run();
  EXPECT_EQ(ended, true);
}

TEST_F(TlsTest, AServerThatIsSilentTimesOut) {
  Listener silent = Listener::open(loop_, parse_endpoint("127.0.0.1:0").value()).value();
  const NetResult<Stream> stream =
      connect_to("localhost", silent.port(), context(), milliseconds{30});
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().code, NetErrc::timed_out);
}

TEST_F(TlsTest, AServerThatSpeaksNoTlsIsAnError) {
  Listener plain = Listener::open(loop_, parse_endpoint("127.0.0.1:0").value()).value();
  TaskGroup tasks(loop_);
  const auto answer = [](Listener& on) -> Task<> {
    auto accepted = co_await on.accept();
    const auto written = co_await accepted->write("HTTP/1.1 400 Bad\r\n\r\n", "", kLong);
    EXPECT_TRUE(written.has_value());
    std::array<char, 4096> bytes;
    co_await accepted->read_some(bytes, kLong);
    co_await accepted->read_some(bytes, kLong);
  };
  tasks.start(answer(plain));
  const NetResult<Stream> stream = connect_to("localhost", plain.port(), context());
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().code, NetErrc::tls);
  run(loop_, tasks.join());
}

}  // namespace
}  // namespace stint::net
