// Where a Redis server is and how to log in there, from its URL.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace stint::redis {

struct ServerAddress {
  std::string host{};  // a name or an address; IPv6 without brackets
  std::uint16_t port = 6379;
  std::string username{};  // ACL user; empty: the user "default"
  std::string password{};  // empty, and no user either: no login
  std::uint32_t database = 0;
  bool tls = false;
};

// "redis://[user[:password]@]host[:port][/database]", or rediss:// for TLS; user and password
// percent-encoded, IPv6 in brackets. Accepts what the check of the configuration accepts
// (config/address.h). Error: what is wrong with it; never repeats a part of it, which may be a
// password.
[[nodiscard]] std::expected<ServerAddress, std::string> parse_url(std::string_view text);

// "host:port/database", "[::1]:6379/0": for metrics and logs, without secrets.
[[nodiscard]] std::string to_string(const ServerAddress& address);
// The same without the database.
[[nodiscard]] std::string place_of(const ServerAddress& address);

}  // namespace stint::redis
