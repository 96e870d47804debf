#include "tests/integration/own_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

namespace stint::redis_testing {
namespace {

using net::FileDescriptor;

// A name that only one socket can have, and that goes with it, however its process ends. Names are
// per network namespace, as ports are.
FileDescriptor reserve(std::uint16_t port) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const std::string name = "stint-test-port-" + std::to_string(port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(&address.sun_path[1], name.size());  // after a zero: abstract
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const bool taken = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0;
  return taken ? FileDescriptor() : std::move(socket);
}

bool is_free(std::uint16_t port) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

OwnPort OwnPort::take() {
  constexpr unsigned kFirst = 20'000;
  constexpr unsigned kCount = 12'000;
  static std::atomic<unsigned> next = static_cast<unsigned>(::getpid()) * 41;
  for (unsigned attempt = 0; attempt < kCount; ++attempt) {
    const auto port = static_cast<std::uint16_t>(kFirst + (next.fetch_add(1) % kCount));
    OwnPort own;
    own.held_ = reserve(port);
    own.number_ = port;
    if (own.held_.valid() && is_free(port)) return own;
  }
  throw std::runtime_error("no free port");
}

}  // namespace stint::redis_testing
