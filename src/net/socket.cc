#include "net/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>

namespace stint::net {

std::string address_text(const SocketAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  int family = address.storage.ss_family;
  if (family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr;
  } else if (family == AF_INET6) {
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr;
    bytes = &v6;
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
      bytes = &v6.s6_addr[12];
      family = AF_INET;
    }
  } else {
    return {};
  }
  if (::inet_ntop(family, bytes, text.data(), text.size()) == nullptr) return {};
  return text.data();
}

}  // namespace stint::net
