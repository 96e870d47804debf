// How the parts of a request are written where they are matched: what is not in this form would
// never be equal to any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stint::config {

// What is wrong with it; nothing if it is good. Messages say what to write instead.

// A path in the normal form of http/path.h, without a query.
[[nodiscard]] std::optional<std::string> check_request_path(std::string_view path);
// A method in capitals.
[[nodiscard]] std::optional<std::string> check_method(std::string_view method);
// "api.example.com", "[::1]": lower case, no port, no dot at the end.
[[nodiscard]] std::optional<std::string> check_request_host(std::string_view host);
// As above, or "*.example.com".
[[nodiscard]] std::optional<std::string> check_match_host(std::string_view host);
// A value of the attribute client_ip: "203.0.113.7", or the network that an IPv6 client is taken
// for: "2001:db8::/64". `ipv6_prefix`: proxy.real_ip.ipv6_prefix; 0: unknown, any will do.
[[nodiscard]] std::optional<std::string> check_client_ip(std::string_view value, int ipv6_prefix);

// A value that conditions compare an attribute with; of other attributes than the above any is
// good.
[[nodiscard]] std::optional<std::string> check_attribute_value(std::string_view attribute,
                                                               std::string_view value,
                                                               int ipv6_prefix);

}  // namespace stint::config
