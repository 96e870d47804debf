#include "config/request_forms.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>

#include "config/scalar.h"
#include "http/authority.h"
#include "http/path.h"
#include "http/syntax.h"
#include "stint/attributes.h"

namespace stint::config {
namespace {

// What may stand in a path escaped only, escaped.
std::string with_escapes(std::string_view path) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte < 0x7F) {
      out += c;
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

// A host in the normal form of http/authority.h, without a port.
bool is_host(std::string_view name) {
  const auto authority = http::parse_authority(name, 0);
  return authority && !name.empty() && !name.contains('*') && authority->host == name;
}

using Bytes = std::array<std::uint8_t, 16>;
constexpr int kBits = 128;

bool is_v4(std::string_view text) {
  Bytes bytes{};
  return inet_pton(AF_INET, std::string(text).c_str(), bytes.data()) == 1;
}

std::optional<Bytes> parse_v6(std::string_view text) {
  Bytes bytes{};
  if (inet_pton(AF_INET6, std::string(text).c_str(), bytes.data()) != 1) return std::nullopt;
  return bytes;
}

bool is_mapped(const Bytes& bytes) noexcept {
  constexpr std::array<std::uint8_t, 12> kPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return std::equal(kPrefix.begin(), kPrefix.end(), bytes.begin());
}

std::string v4_of(const Bytes& mapped) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, mapped.data() + 12, text.data(), text.size());
  return text.data();
}

// As gateway::ClientAddresses makes the key of a client.
std::string key_of(Bytes bytes, int prefix) {
  for (int i = 0; i < kBits / 8; ++i) {
    const int bits = std::clamp(prefix - i * 8, 0, 8);
    auto& byte = bytes[static_cast<std::size_t>(i)];
    byte = static_cast<std::uint8_t>(byte & (0xFF00U >> static_cast<unsigned>(bits)));
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(AF_INET6, bytes.data(), text.data(), text.size());
  return text.data() + (prefix == kBits ? "" : "/" + std::to_string(prefix));
}

// Nothing where there is no slash, or no number behind it.
std::optional<int> length_of(std::string_view text, std::size_t slash) {
  if (slash == std::string_view::npos) return std::nullopt;
  int length = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + slash + 1, end, length);
  const bool good = read.ec == std::errc() && read.ptr == end && length >= 0 && length <= kBits;
  return good ? std::optional(length) : std::nullopt;
}

}  // namespace

std::optional<std::string> check_request_path(std::string_view path) {
  if (!path.starts_with('/')) return "must begin with '/'";
  if (path.find_first_of("?#") != std::string_view::npos) return "must not have a query";
  const auto normal = http::normalize_path(with_escapes(path));
  if (!normal) {
    return quoted(path) + " is the path of no request: such paths are refused with 400";
  }
  if (*normal == path) return std::nullopt;
  return "must be in normal form, as paths are compared: write " + quoted(*normal);
}

std::optional<std::string> check_method(std::string_view method) {
  const auto capital = [](char c) { return (c >= 'A' && c <= 'Z') || c == '-'; };
  if (!method.empty() && std::ranges::all_of(method, capital)) return std::nullopt;
  return quoted(method) + " is no method such as GET; methods are written in capitals";
}

std::optional<std::string> check_request_host(std::string_view host) {
  if (is_host(host)) return std::nullopt;
  return "must be a host in lower case without port, such as api.example.com";
}

std::optional<std::string> check_match_host(std::string_view host) {
  std::string_view name = host;
  if (name.starts_with("*.")) name.remove_prefix(2);
  if (is_host(name)) return std::nullopt;
  return "must be a host in lower case without port, such as api.example.com or *.example.com";
}

std::optional<std::string> check_client_ip(std::string_view value, int ipv6_prefix) {
  const std::size_t slash = value.find('/');
  const std::string_view address = value.substr(0, slash);
  const auto length = length_of(value, slash);
  if (is_v4(address) && slash == std::string_view::npos) return std::nullopt;
  const auto v6 = parse_v6(address);
  if (is_v4(address) || (v6 && is_mapped(*v6) && slash != std::string_view::npos)) {
    return quoted(value) +
           " is a network, and a client's address is none: networks need the operator ipmatch, "
           "which is not available yet";
  }
  if (!v6 || (slash != std::string_view::npos && !length)) {
    return quoted(value) + " is no address such as 203.0.113.7 or 2001:db8::/64";
  }
  if (is_mapped(*v6)) return "is compared as IPv4: write " + quoted(v4_of(*v6));
  constexpr int kDefault = 64;
  const int prefix = ipv6_prefix > 0 ? ipv6_prefix : length.value_or(kDefault);
  const std::string key = key_of(*v6, prefix);
  if (key == value) return std::nullopt;
  if (length && *length < prefix) {
    return quoted(value) + " is more than one client: IPv6 clients are told apart by their first " +
           std::to_string(prefix) + " bits (proxy.real_ip.ipv6_prefix)";
  }
  return "is compared by its first " + std::to_string(prefix) +
         " bits (proxy.real_ip.ipv6_prefix): write " + quoted(key);
}

std::optional<std::string> check_attribute_value(std::string_view attribute, std::string_view value,
                                                 int ipv6_prefix) {
  const auto dimension = parse_dimension(attribute);
  if (dimension == Dimension::client_ip) return check_client_ip(value, ipv6_prefix);
  if (dimension == Dimension::path) return check_request_path(value);
  if (dimension == Dimension::method) return check_method(value);
  // Requests of HTTP/1.0 may have none.
  if (dimension == Dimension::host && !value.empty()) return check_request_host(value);
  return std::nullopt;
}

}  // namespace stint::config
