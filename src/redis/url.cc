#include "redis/url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <utility>

namespace stint::redis {
namespace {

std::optional<std::uint32_t> parse_number(std::string_view text) {
  std::uint32_t value = 0;
  const bool digits = !text.empty() && text[0] >= '0' && text[0] <= '9';
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return digits && whole && value <= 65535 ? std::optional(value) : std::nullopt;
}

bool is_ipv6(const std::string& text) {
  unsigned char bytes[16];
  return text.find('\0') == std::string::npos && ::inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

// A name of DNS, or an IPv4 address.
bool is_host(std::string_view text) noexcept {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  };
  return !text.empty() && text.size() <= 253 && std::ranges::all_of(text, allowed);
}

// "host", "host:port", "[v6]", "[v6]:port" into `address`; false if it is none of these.
bool read_host_port(std::string_view text, ServerAddress& address) {
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return false;
    address.host = text.substr(1, end - 1);
    if (!is_ipv6(address.host)) return false;
    text.remove_prefix(end + 1);
    if (!text.empty() && text[0] != ':') return false;
  } else {
    const std::size_t colon = text.find(':');
    address.host = text.substr(0, colon);
    if (!is_host(address.host)) return false;
    text.remove_prefix(std::min(colon, text.size()));
  }
  if (text.empty()) return true;
  const auto port = parse_number(text.substr(1));
  if (!port || *port == 0) return false;
  address.port = static_cast<std::uint16_t>(*port);
  return true;
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

std::expected<ServerAddress, std::string> parse_url(std::string_view text) {
  const std::unexpected<std::string> wrong(
      "must be a URL such as redis://host:6379/0 or rediss://user:password@host");
  ServerAddress address;
  if (text.starts_with("rediss://")) {
    address.tls = true;
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
  // The last one: a password that holds an '@' as it is does no harm.
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
    const std::string_view user = text.substr(0, at);
    const std::size_t colon = user.find(':');
    auto name = percent_decode(user.substr(0, colon));
    auto password =
        colon == std::string_view::npos ? std::string() : percent_decode(user.substr(colon + 1));
    if (!name || !password) {
      return std::unexpected<std::string>("has a % that is no escape; write %25 in a password");
    }
    address.username = std::move(*name);
    address.password = std::move(*password);
    text.remove_prefix(at + 1);
  }
  const std::size_t slash = text.find('/');
  if (!read_host_port(text.substr(0, slash), address)) return wrong;
  if (slash != std::string_view::npos && slash + 1 < text.size()) {
    const auto database = parse_number(text.substr(slash + 1));
    if (!database) return std::unexpected<std::string>("must end in the number of a database");
    address.database = *database;
  }
  return address;
}

std::string place_of(const ServerAddress& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  std::string text = v6 ? '[' + address.host + ']' : address.host;
  text += ':';
  text += std::to_string(address.port);
  return text;
}

std::string to_string(const ServerAddress& address) {
  return place_of(address) + '/' + std::to_string(address.database);
}

}  // namespace stint::redis
