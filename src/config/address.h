// Addresses, networks and URLs as they stand in a configuration. Nothing is resolved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/scalar.h"

namespace stint::config {

// What is wrong with it; nothing if it is good. No message repeats a password.

// "127.0.0.1:8080", "[::1]:0", "localhost:80", ":8080".
[[nodiscard]] std::optional<std::string> check_listen_address(std::string_view text);
// As above, but off (empty) is good, too.
[[nodiscard]] std::optional<std::string> check_optional_listen_address(std::string_view text);
// "redis.local:6379": a name or an address, and a port.
[[nodiscard]] std::optional<std::string> check_host_port(std::string_view text);
// "10.1.2.3", "10.0.0.0/8", "fd00::/8".
[[nodiscard]] std::optional<std::string> check_network(std::string_view text);
// "https://api.example.com/base": http or https, without user, query and fragment.
[[nodiscard]] std::optional<std::string> check_http_url(std::string_view text);

// True for 127.0.0.0/8, ::1 and localhost, with a port or without; not for other names that look
// like them.
[[nodiscard]] bool is_loopback(std::string_view address);

// Whether two good addresses to listen on are in each other's way. Port 0 is in nobody's.
[[nodiscard]] bool same_listener(std::string_view one, std::string_view other);

// The path of a good HTTP URL, without slashes at its end: "/base", or empty.
[[nodiscard]] std::string_view path_of_url(std::string_view url) noexcept;

// "redis://[[user]:password@]host[:port][/database]", or rediss:// for TLS.
struct RedisUrl {
  bool tls = false;
  std::string username{};
  std::string password{};
  std::string host{};
  std::uint16_t port = 6379;
  std::optional<int> database{};
};
[[nodiscard]] Scalar<RedisUrl> parse_redis_url(std::string_view text);
[[nodiscard]] std::optional<std::string> check_redis_url(std::string_view text);

}  // namespace stint::config
