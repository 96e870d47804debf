#include "config/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <utility>

#include "http/origin.h"

namespace stint::config {
namespace {

constexpr std::string_view kListenForms =
    "must be an address and a port, such as 127.0.0.1:8080, [::1]:8080 or :8080";
constexpr std::string_view kHostPortForms =
    "must be a host and a port, such as redis.local:6379 or [::1]:6379";

std::optional<std::int64_t> parse_number(std::string_view text, std::int64_t most) {
  std::int64_t value = 0;
  const bool digits = !text.empty() && text[0] >= '0' && text[0] <= '9';
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return digits && whole && value <= most ? std::optional(value) : std::nullopt;
}

bool is_ip(std::string_view text, int family) {
  unsigned char bytes[16];
  if (text.find('\0') != std::string_view::npos) return false;
  return inet_pton(family, std::string(text).c_str(), bytes) == 1;
}

// A name of DNS, or an IPv4 address.
bool is_host(std::string_view text) noexcept {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  };
  return !text.empty() && text.size() <= 253 && std::ranges::all_of(text, allowed);
}

struct HostPort {
  std::string host;  // without brackets
  std::optional<std::uint16_t> port;
};

// "host", "host:port", "[v6]", "[v6]:port"; the host may be empty.
std::optional<HostPort> split_host_port(std::string_view text) {
  HostPort result;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    result.host = text.substr(1, end - 1);
    if (!is_ip(result.host, AF_INET6)) return std::nullopt;
    text.remove_prefix(end + 1);
    if (!text.empty() && text[0] != ':') return std::nullopt;
  } else {
    const std::size_t colon = text.find(':');
    result.host = text.substr(0, colon);
    if (!result.host.empty() && !is_host(result.host)) return std::nullopt;
    text.remove_prefix(std::min(colon, text.size()));
  }
  if (text.empty()) return result;
  const auto port = parse_number(text.substr(1), 65535);
  if (!port) return std::nullopt;
  result.port = static_cast<std::uint16_t>(*port);
  return result;
}

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    result += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return result;
}

}  // namespace

std::optional<std::string> check_listen_address(std::string_view text) {
  const auto parts = split_host_port(text);
  if (!parts || !parts->port) return std::string(kListenForms);
  const std::string& host = parts->host;
  if (host.empty() || host == "localhost" || is_ip(host, AF_INET) || is_ip(host, AF_INET6)) {
    return std::nullopt;
  }
  return std::string(kListenForms);
}

std::optional<std::string> check_optional_listen_address(std::string_view text) {
  return text.empty() ? std::nullopt : check_listen_address(text);
}

std::optional<std::string> check_host_port(std::string_view text) {
  const auto parts = split_host_port(text);
  const bool good = parts && parts->port && *parts->port != 0 && !parts->host.empty();
  return good ? std::nullopt : std::optional(std::string(kHostPortForms));
}

std::optional<std::string> check_network(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string address(text.substr(0, slash));
  const int family = is_ip(address, AF_INET) ? AF_INET : AF_INET6;
  const std::size_t bits = family == AF_INET ? 32 : 128;
  const auto length = slash == std::string_view::npos
                          ? std::optional(static_cast<std::int64_t>(bits))
                          : parse_number(text.substr(slash + 1), static_cast<std::int64_t>(bits));
  if (!is_ip(address, family) || !length) {
    return "must be an address or a network, such as 10.1.2.3, 10.0.0.0/8 or fd00::/8";
  }
  std::array<unsigned char, 16> bytes{};
  inet_pton(family, address.c_str(), bytes.data());
  for (std::size_t bit = static_cast<std::size_t>(*length); bit < bits; ++bit) {
    if ((bytes[bit / 8] & (0x80U >> (bit % 8))) != 0) {
      return "has bits of a host beyond the length of its network: is 10.0.0.0/8 meant, or "
             "10.1.2.3?";
    }
  }
  return std::nullopt;
}

std::optional<std::string> check_http_url(std::string_view text) {
  constexpr std::string_view kWrong =
      "must be a URL such as https://api.example.com or http://127.0.0.1:8080/base";
  const std::size_t scheme_end = text.find("://");
  const std::string_view scheme = text.substr(0, scheme_end);
  if (scheme_end == std::string_view::npos || (scheme != "http" && scheme != "https")) {
    return std::string(kWrong);
  }
  const std::string_view rest = text.substr(scheme_end + 3);
  const std::string_view authority = rest.substr(0, rest.find('/'));
  if (authority.find('@') != std::string_view::npos) return "must not hold a user or password";
  if (rest.find_first_of("?#") != std::string_view::npos)
    return "must not have a query or fragment";
  const auto printable = [](char c) { return c > ' ' && c < '\x7F'; };
  const auto parts = split_host_port(authority);
  const bool good =
      parts && !parts->host.empty() && parts->port != 0 && std::ranges::all_of(rest, printable);
  if (!good) return std::string(kWrong);
  // What the gateway could not call is refused here, not when it is put into force.
  if (!http::parse_origin(text)) return "has a path that no request can have: " + quoted(text);
  return std::nullopt;
}

bool is_loopback(std::string_view address) {
  const auto parts = split_host_port(address);
  if (!parts) return false;
  return parts->host == "localhost" || parts->host == "::1" ||
         (parts->host.starts_with("127.") && is_ip(parts->host, AF_INET));
}

bool same_listener(std::string_view one, std::string_view other) {
  const auto a = split_host_port(one);
  const auto b = split_host_port(other);
  if (!a || !b || a->port != b->port || a->port.value_or(0) == 0) return false;
  const auto host = [](const HostPort& parts) -> std::string_view {
    if (parts.host == "localhost") return "127.0.0.1";
    return parts.host;
  };
  const auto all = [](std::string_view taken, std::string_view wanted) {
    return taken.empty() || taken == "::" || (taken == "0.0.0.0" && !wanted.contains(':'));
  };
  return host(*a) == host(*b) || all(host(*a), host(*b)) || all(host(*b), host(*a));
}

std::string_view path_of_url(std::string_view url) noexcept {
  const std::size_t scheme_end = url.find("://");
  const std::size_t begin =
      scheme_end == std::string_view::npos ? url.npos : url.find('/', scheme_end + 3);
  if (begin == std::string_view::npos) return {};
  std::string_view path = url.substr(begin);
  while (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

Scalar<RedisUrl> parse_redis_url(std::string_view text) {
  // Parts of the text may be a password: no message repeats any.
  const std::unexpected<std::string> wrong(
      "must be a URL such as redis://host:6379/0 or rediss://user:password@host");
  RedisUrl url;
  if (text.starts_with("rediss://")) {
    url.tls = true;
    text.remove_prefix(9);
  } else if (text.starts_with("redis://")) {
    text.remove_prefix(8);
  } else {
    return wrong;
  }
  if (text.find_first_of("?#") != std::string_view::npos) {
    return std::unexpected<std::string>(
        "must not have a query or fragment; write %3F and %23 in a password");
  }
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
    const std::string_view user = text.substr(0, at);
    const std::size_t colon = user.find(':');
    auto name = percent_decode(user.substr(0, colon));
    auto password =
        colon == std::string_view::npos ? std::string() : percent_decode(user.substr(colon + 1));
    if (!name || !password) {
      return std::unexpected<std::string>("has a % that is no escape; write %25 in a password");
    }
    url.username = std::move(*name);
    url.password = std::move(*password);
    text.remove_prefix(at + 1);
  }
  const std::size_t slash = text.find('/');
  auto parts = split_host_port(text.substr(0, slash));
  if (!parts || parts->host.empty() || parts->port == 0) return wrong;
  url.host = std::move(parts->host);
  url.port = parts->port.value_or(url.port);
  if (slash != std::string_view::npos && slash + 1 < text.size()) {
    const auto database = parse_number(text.substr(slash + 1), 65535);
    if (!database) return std::unexpected<std::string>("must end in the number of a database");
    url.database = static_cast<int>(*database);
  }
  return url;
}

std::optional<std::string> check_redis_url(std::string_view text) {
  auto url = parse_redis_url(text);
  return url ? std::nullopt : std::optional(std::move(url.error()));
}

}  // namespace stint::config
