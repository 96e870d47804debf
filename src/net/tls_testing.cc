#include "net/tls_testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace stint::net {
namespace {

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

template <class Write>
void write_pem(const std::string& path, Write write) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  require(file != nullptr, "open PEM file");
  write(file);
  std::fclose(file);
}

void add_extension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str());
  require(extension != nullptr, "X.509 extension");
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

}  // namespace

TestAuthority::TestAuthority() {
  std::string pattern = (std::filesystem::temp_directory_path() / "stint_tls_XXXXXX").string();
  require(::mkdtemp(pattern.data()) != nullptr, "mkdtemp");
  folder_ = pattern;
  key_ = make_key();
  certificate_ = make_certificate(key_.get(), "stint test authority", "");
  write_pem(ca_file(), [this](std::FILE* file) { PEM_write_X509(file, certificate_.get()); });
}

TestAuthority::~TestAuthority() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

TestAuthority::Key TestAuthority::make_key() { return Key(EVP_EC_gen("P-256")); }

TestAuthority::Certificate TestAuthority::make_certificate(EVP_PKEY* key, const std::string& name,
                                                           const std::string& names) {
  constexpr long kDay = 24 * 60 * 60;
  Certificate certificate(X509_new());
  X509* const made = certificate.get();
  X509* const issuer = certificate_ ? certificate_.get() : made;
  X509_set_version(made, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made), ++issued_);
  X509_gmtime_adj(X509_getm_notBefore(made), -kDay);
  X509_gmtime_adj(X509_getm_notAfter(made), kDay);
  X509_set_pubkey(made, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(made, X509_get_subject_name(issuer));
  if (names.empty()) {
    add_extension(made, issuer, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(made, issuer, NID_key_usage, "critical,keyCertSign,cRLSign");
  } else {
    add_extension(made, issuer, NID_subject_alt_name, names);
  }
  add_extension(made, issuer, NID_subject_key_identifier, "hash");
  require(X509_sign(made, key_.get(), EVP_sha256()) != 0, "X509_sign");
  return certificate;
}

TestAuthority::Files TestAuthority::issue(const std::string& names) {
  const Key key = make_key();
  const Certificate certificate = make_certificate(key.get(), "stint test", names);
  Files files;
  files.certificate = folder_ + "/" + std::to_string(issued_) + ".pem";
  files.key = folder_ + "/" + std::to_string(issued_) + ".key";
  write_pem(files.certificate, [&](std::FILE* file) { PEM_write_X509(file, certificate.get()); });
  write_pem(files.key, [&](std::FILE* file) {
    PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  return files;
}

TestTlsServer::TestTlsServer(const TestAuthority::Files& files, const std::string& client_ca,
                             Serve serve)
    : context_(SSL_CTX_new(TLS_server_method())),
      serve_(std::move(serve)),
      socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  SSL_CTX* const context = context_.get();
  require(SSL_CTX_use_certificate_file(context, files.certificate.c_str(), SSL_FILETYPE_PEM) == 1,
          "server certificate");
  require(SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) == 1,
          "server key");
  if (!client_ca.empty()) {
    require(SSL_CTX_load_verify_file(context, client_ca.c_str()) == 1, "client CA");
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  require(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
  require(::listen(socket_.get(), 16) == 0, "listen");
  ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { work(); });
}

TestTlsServer::~TestTlsServer() { join(); }

void TestTlsServer::join() {
  if (!thread_.joinable()) return;
  ::shutdown(socket_.get(), SHUT_RDWR);  // ends the accept
  thread_.join();
}

void TestTlsServer::work() {
  for (;;) {
    const FileDescriptor accepted(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!accepted.valid()) return;
    SSL* const session = SSL_new(context_.get());
    SSL_set_fd(session, accepted.get());
    const int shaken = SSL_accept(session);
    const char* const name = SSL_get_servername(session, TLSEXT_NAMETYPE_host_name);
    server_name_ = name != nullptr ? name : "";
    if (shaken == 1) serve_(session);
    SSL_free(session);
  }
}

void echo(SSL* session) {
  std::array<char, 4096> bytes;
  for (;;) {
    const int n = SSL_read(session, bytes.data(), static_cast<int>(bytes.size()));
    if (n <= 0) break;
    if (SSL_write(session, bytes.data(), n) <= 0) return;
  }
  SSL_shutdown(session);
}

}  // namespace stint::net
