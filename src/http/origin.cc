#include "http/origin.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>

#include "http/message.h"
#include "http/syntax.h"

namespace stint::http {

namespace {

constexpr std::uint16_t default_port(bool tls) noexcept { return tls ? 443 : 80; }

bool is_letter_or_digit(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// A DNS name or an IPv4 address; underscores occur in names of containers.
bool is_name(std::string_view host) noexcept {
  return !host.empty() && host.size() <= 253 && host.front() != '.' && !host.contains("..") &&
         std::ranges::all_of(host, [](char c) {
           return is_letter_or_digit(c) || c == '-' || c == '.' || c == '_';
         });
}

bool is_ipv6(const std::string& host) noexcept {
  in6_addr address{};
  return inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

bool is_path(std::string_view path) noexcept {
  // RFC 3986, section 3.3; a percent sign is taken as it stands.
  if (!std::ranges::all_of(path, [](char c) {
        return is_letter_or_digit(c) || std::string_view("-._~!$&'()*+,;=:@%/").contains(c);
      })) {
    return false;
  }
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::string_view segment = path.substr(0, path.find('/'));
    if (segment == "." || segment == "..") return false;
    path.remove_prefix(segment.size());
  }
  return true;
}

// "", ":8080"
std::optional<std::uint16_t> parse_port(std::string_view text, bool tls) noexcept {
  if (text.empty()) return default_port(tls);
  if (text.front() != ':') return std::nullopt;
  text.remove_prefix(1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

}  // namespace

std::optional<Origin> parse_origin(std::string_view url) {
  Origin origin;
  const std::size_t scheme_end = url.find("://");
  if (scheme_end == std::string_view::npos) return std::nullopt;
  const std::string_view scheme = url.substr(0, scheme_end);
  origin.tls = iequal(scheme, "https");
  if (!origin.tls && !iequal(scheme, "http")) return std::nullopt;
  url.remove_prefix(scheme_end + 3);

  std::string_view authority = url.substr(0, url.find('/'));
  std::string_view path = url.substr(authority.size());
  if (authority.starts_with('[')) {
    const std::size_t bracket = authority.find(']');
    if (bracket == std::string_view::npos) return std::nullopt;
    origin.host = authority.substr(1, bracket - 1);
    if (!is_ipv6(origin.host)) return std::nullopt;
    authority.remove_prefix(bracket + 1);
  } else {
    origin.host = authority.substr(0, authority.find(':'));
    if (!is_name(origin.host)) return std::nullopt;
    authority.remove_prefix(origin.host.size());
  }
  origin.host = lower_case(origin.host);
  const auto port = parse_port(authority, origin.tls);
  if (!port) return std::nullopt;
  origin.port = *port;

  if (!is_path(path)) return std::nullopt;
  while (path.ends_with('/')) path.remove_suffix(1);
  origin.base_path = path;
  return origin;
}

std::string host_field(const Origin& origin) {
  std::string text = origin.host.contains(':') ? "[" + origin.host + "]" : origin.host;
  if (origin.port != default_port(origin.tls)) text += ":" + std::to_string(origin.port);
  return text;
}

}  // namespace stint::http
