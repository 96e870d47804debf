#include "http/authority.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <utility>

#include "http/syntax.h"

namespace stint::http {
namespace {

// RFC 5952, in brackets; whatever way it was written.
std::optional<std::string> normal_ipv6(const std::string& text) {
  in6_addr address{};
  if (inet_pton(AF_INET6, text.c_str(), &address) != 1) return std::nullopt;
  std::array<char, INET6_ADDRSTRLEN> normal{};
  inet_ntop(AF_INET6, &address, normal.data(), normal.size());
  return "[" + std::string(normal.data()) + "]";
}

// A registered name without escapes.
std::optional<std::string> normal_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~!$&'()*+,;=").contains(c);
  };
  if (!std::ranges::all_of(name, allowed)) return std::nullopt;
  if (name.starts_with('.') || name.contains("..")) return std::nullopt;
  if (name.ends_with('.')) name.remove_suffix(1);
  return lower_case(name);
}

}  // namespace

std::string Authority::text() const { return port == 0 ? host : host + ":" + std::to_string(port); }

std::optional<Authority> parse_authority(std::string_view text, std::uint16_t default_port) {
  Authority authority;
  std::string_view port;
  std::optional<std::string> host;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    host = normal_ipv6(std::string(text.substr(1, end - 1)));
    port = text.substr(end + 1);
  } else {
    const std::size_t colon = std::min(text.find(':'), text.size());
    host = normal_name(text.substr(0, colon));
    port = text.substr(colon);
  }
  if (!host) return std::nullopt;
  authority.host = std::move(*host);
  if (port.empty()) return authority;
  if (port.front() != ':') return std::nullopt;
  port.remove_prefix(1);
  if (port.empty()) return authority;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), authority.port);
  if (error != std::errc{} || end != port.data() + port.size()) return std::nullopt;
  // A port without a host would be taken for no Host at all.
  if (authority.host.empty()) return std::nullopt;
  if (authority.port == default_port) authority.port = 0;
  return authority;
}

}  // namespace stint::http
