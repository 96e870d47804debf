// Where to listen: reading it, and whether it is free.
#include "net/endpoint.h"

#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "net/listener.h"
#include "net/system_error.h"

namespace stint::net {
namespace {

std::unexpected<NetError> bad_endpoint(const std::string& text, const char* why) {
  return failure(NetErrc::failed, "\"" + text + "\": " + why);
}

// The address to bind to: blocks, which at start does no harm.
NetResult<SocketAddress> resolve(const Endpoint& endpoint, int family) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(endpoint.port);
  const char* host = endpoint.host.empty() ? nullptr : endpoint.host.c_str();
  const int failed = ::getaddrinfo(host, port.c_str(), &hints, &found);
  if (failed != 0) {
    return failure(NetErrc::unreachable, to_string(endpoint) + ": " + ::gai_strerror(failed));
  }
  SocketAddress address;
  address.size = found->ai_addrlen;
  std::copy_n(reinterpret_cast<const char*>(found->ai_addr), found->ai_addrlen,
              reinterpret_cast<char*>(&address.storage));
  ::freeaddrinfo(found);
  return address;
}

NetResult<FileDescriptor> bind_to(const SocketAddress& address, bool reuse_port,
                                  const std::string& text) {
  FileDescriptor socket(
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return std::unexpected(error_from_errno(errno, "listen on " + text));
  const int on = 1;
  const int off = 0;
  // Connections of a predecessor that still linger do not hold the port.
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (reuse_port) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  if (address.storage.ss_family == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (::bind(socket.get(), address.get(), address.size) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return std::unexpected(error_from_errno(errno, "listen on " + text));
  }
  return socket;
}

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  const bool v6 = endpoint.host.contains(':');
  return (v6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
}

NetResult<Endpoint> parse_endpoint(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return bad_endpoint(text, "expected host:port or :port");
  Endpoint endpoint;
  endpoint.host = text.substr(0, colon);
  const char* const begin = text.data() + colon + 1;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(begin, end, endpoint.port);
  if (error != std::errc{} || rest != end) {
    return bad_endpoint(text, "the port must be a number from 0 to 65535");
  }
  if (endpoint.host.starts_with('[') && endpoint.host.ends_with(']')) {
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
    if (!endpoint.host.contains(':')) return bad_endpoint(text, "[] is for IPv6 addresses");
  } else if (endpoint.host.contains(':')) {
    return bad_endpoint(text, "an IPv6 address stands in [], as in [::1]:8080");
  }
  if (endpoint.host.find_first_of("[]/ \t") != std::string::npos) {
    return bad_endpoint(text, "not a host");
  }
  return endpoint;
}

NetResult<FileDescriptor> bind_endpoint(const Endpoint& endpoint, bool reuse_port) {
  const std::string text = to_string(endpoint);
  if (endpoint.host.empty()) {
    // One socket for IPv6 and IPv4, unless the machine has no IPv6.
    const NetResult<SocketAddress> both = resolve(endpoint, AF_INET6);
    if (both) {
      NetResult<FileDescriptor> bound = bind_to(*both, reuse_port, text);
      if (bound || bound.error().code != NetErrc::unreachable) return bound;
    }
  }
  const NetResult<SocketAddress> address =
      resolve(endpoint, endpoint.host.empty() ? AF_INET : AF_UNSPEC);
  if (!address) return std::unexpected(address.error());
  return bind_to(*address, reuse_port, text);
}

std::uint16_t bound_port(int socket) noexcept {
  SocketAddress address;
  address.size = sizeof address.storage;
  if (::getsockname(socket, address.get(), &address.size) != 0) return 0;
  if (address.storage.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
}

NetResult<std::uint16_t> probe_port(const Endpoint& endpoint) {
  const NetResult<FileDescriptor> bound = bind_endpoint(endpoint, /*reuse_port=*/false);
  if (!bound) return std::unexpected(bound.error());
  return bound_port(bound->get());
}

}  // namespace stint::net
