#include "net/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "net/system_error.h"

namespace stint::net {
namespace {

// OpenSSL's own socket BIO writes with write(2), which raises SIGPIPE when the peer is gone; a
// library must neither die of that nor change how the process handles signals.
int socket_of(BIO* bio) { return *static_cast<const int*>(BIO_get_data(bio)); }

int bio_write(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t n = ::send(socket_of(bio), bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(n);
}

int bio_read(BIO* bio, char* into, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t n = ::recv(socket_of(bio), into, static_cast<std::size_t>(size), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (n == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(n);
}

long bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* bio_method() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stint socket");
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    BIO_meth_set_create(made, [](BIO* bio) {
      BIO_set_init(bio, 1);
      return 1;
    });
    return made;
  }();
  return method;
}

std::string last_tls_error() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "unknown";
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "error " + std::to_string(code);
}

std::unexpected<NetError> tls_error(const std::string& what) {
  return failure(NetErrc::tls, what + ": " + last_tls_error());
}

}  // namespace

TlsClientContext::TlsClientContext(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
TlsClientContext::~TlsClientContext() = default;

NetResult<std::shared_ptr<const TlsClientContext>> TlsClientContext::create(
    const Options& options) {
  ERR_clear_error();
  auto impl = std::make_unique<Impl>();
  impl->verify = options.verify;
  impl->context.reset(SSL_CTX_new(TLS_client_method()));
  SSL_CTX* context = impl->context.get();
  if (context == nullptr) return tls_error("TLS");
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // Partial writes: a write that waits must say how much was taken. Released buffers: 34 KiB less
  // for each idle connection.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_verify(context, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (options.ca_file.empty()) {
    if (SSL_CTX_set_default_verify_paths(context) != 1) return tls_error("system certificates");
  } else if (SSL_CTX_load_verify_file(context, options.ca_file.c_str()) != 1) {
    return tls_error("CA file " + options.ca_file);
  }
  if (options.cert_file.empty() != options.key_file.empty()) {
    return tls_error("a client certificate needs both its certificate file and its key file");
  }
  if (!options.cert_file.empty()) {
    if (SSL_CTX_use_certificate_chain_file(context, options.cert_file.c_str()) != 1) {
      return tls_error("certificate file " + options.cert_file);
    }
    if (SSL_CTX_use_PrivateKey_file(context, options.key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1) {
      return tls_error("key file " + options.key_file);
    }
  }
  return std::shared_ptr<const TlsClientContext>(new TlsClientContext(std::move(impl)));
}

TlsSession::TlsSession(std::shared_ptr<const TlsClientContext> context, int socket,
                       SSL* session) noexcept
    : context_(std::move(context)), socket_(socket), session_(session) {}

std::unique_ptr<TlsSession> TlsSession::create(std::shared_ptr<const TlsClientContext> context,
                                               int socket, const std::string& host) {
  ERR_clear_error();
  SSL* session = SSL_new(context->impl().context.get());
  if (session == nullptr) return nullptr;
  std::unique_ptr<TlsSession> result(new TlsSession(std::move(context), socket, session));
  BIO* bio = BIO_new(bio_method());
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, &result->socket_);
  SSL_set_bio(session, bio, bio);
  SSL_set_connect_state(session);

  // The certificate must be for the host that was asked for: an address literally, a name by the
  // rules of RFC 6125. The server is told which name was meant (RFC 6066: names only).
  X509_VERIFY_PARAM* parameters = SSL_get0_param(session);
  if (X509_VERIFY_PARAM_set1_ip_asc(parameters, host.c_str()) == 1) return result;
  X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (X509_VERIFY_PARAM_set1_host(parameters, host.data(), host.size()) != 1 ||
      SSL_set_tlsext_host_name(session, host.c_str()) != 1) {
    return nullptr;
  }
  ERR_clear_error();
  return result;
}

TlsSession::Step TlsSession::outcome(int result, std::size_t bytes) {
  Step step;
  if (result > 0) {
    step.bytes = bytes;
    return step;
  }
  const int system_error = errno;
  step.kind = Step::Kind::failed;
  switch (SSL_get_error(session_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      step.kind = Step::Kind::want_read;
      return step;
    case SSL_ERROR_WANT_WRITE:
      step.kind = Step::Kind::want_write;
      return step;
    case SSL_ERROR_ZERO_RETURN:
      step.error.code = NetErrc::closed;
      step.error.text = "closed";
      return step;
    case SSL_ERROR_SYSCALL:
      broken_ = true;
      step.error = error_from_errno(system_error != 0 ? system_error : ECONNRESET, "TLS");
      return step;
    default:
      break;
  }
  broken_ = true;
  const unsigned long code = ERR_peek_last_error();
  const long verified = SSL_get_verify_result(session_.get());
  if (ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    step.error.code = NetErrc::reset;
    step.error.text = "TLS: the connection ended without a goodbye";
  } else if (ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    step.error.code = NetErrc::tls;
    step.error.text = std::string("TLS: certificate: ") + X509_verify_cert_error_string(verified);
  } else {
    step.error.code = NetErrc::tls;
    step.error.text = "TLS: " + last_tls_error();
  }
  ERR_clear_error();
  return step;
}

TlsSession::Step TlsSession::handshake() {
  ERR_clear_error();
  errno = 0;
  const int result = SSL_do_handshake(session_.get());
  return outcome(result, 0);
}

TlsSession::Step TlsSession::read(std::span<char> into) {
  ERR_clear_error();
  errno = 0;
  std::size_t bytes = 0;
  const int result = SSL_read_ex(session_.get(), into.data(), into.size(), &bytes);
  return outcome(result, bytes);
}

TlsSession::Step TlsSession::peek() {
  ERR_clear_error();
  errno = 0;
  char byte = 0;
  std::size_t bytes = 0;
  const int result = SSL_peek_ex(session_.get(), &byte, 1, &bytes);
  return outcome(result, bytes);
}

TlsSession::Step TlsSession::write(std::string_view bytes) {
  ERR_clear_error();
  errno = 0;
  std::size_t written = 0;
  const int result = SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &written);
  return outcome(result, written);
}

bool TlsSession::pending() const noexcept { return SSL_has_pending(session_.get()) == 1; }

void TlsSession::shut_down() noexcept {
  if (broken_ || SSL_is_init_finished(session_.get()) != 1) return;
  ERR_clear_error();
  SSL_shutdown(session_.get());
  ERR_clear_error();
}

}  // namespace stint::net
