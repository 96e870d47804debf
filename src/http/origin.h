// Where an upstream is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stint::http {

struct Origin {
  bool tls = false;
  std::string host;  // a name in lower case, or an address without brackets
  std::uint16_t port = 0;
  std::string base_path;  // what to put before paths; without a slash at its end

  friend bool operator==(const Origin&, const Origin&) = default;
};

// "https://api.example.com:8443/base": scheme http or https, a host, a port if it is not the
// scheme's, a path. Nothing for anything else: credentials, a query or a fragment, a port of 0, a
// path with `.` or `..` segments or with bytes that no path has.
[[nodiscard]] std::optional<Origin> parse_origin(std::string_view url);

// As the Host field has it: "api.example.com:8443", "[::1]"; no port if it is the scheme's.
[[nodiscard]] std::string host_field(const Origin& origin);

}  // namespace stint::http
