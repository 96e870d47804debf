// Whom a request is for: the Host field, or the authority of an absolute target.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stint::http {

// In its normal form, so that one host has one name, whoever matches, counts or passes it on.
struct Authority {
  std::string host;        // lower case, without a dot at its end; an address of IPv6 in brackets
  std::uint16_t port = 0;  // 0: none, or that of the scheme

  // "api.example.com:8080", "[2001:db8::1]"
  [[nodiscard]] std::string text() const;
};

// `host[:port]` (RFC 3986, section 3.2). Escapes are refused: no client writes them, and readers
// differ in whether they decode them. So are empty labels ("a..b", "."); an empty host is not.
// Nothing for what is malformed.
[[nodiscard]] std::optional<Authority> parse_authority(std::string_view text,
                                                       std::uint16_t default_port);

}  // namespace stint::http
