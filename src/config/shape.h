// Policies that can never apply, told from their shape alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stint/error.h"
#include "stint/policy.h"

namespace stint::config {

// What is wrong with the name of an attribute; nothing if requests can have it: one of the known
// dimensions, or "header:" and a name.
[[nodiscard]] std::optional<std::string> check_attribute(std::string_view name);

// Everything that keeps the policy, or one of its limits, from ever applying. Fields are paths in
// the policy ("conditions[0].dimension", "limits[1]"). `ipv6_prefix`: see check_client_ip.
[[nodiscard]] std::vector<Error> shape_faults(const Policy& policy, int ipv6_prefix);

// Whether the policy is to be admitted before authentication: it needs nothing but client_ip,
// host, method, path, headers and route, and counts no tokens, whose number only the parsed
// request tells.
[[nodiscard]] bool is_early(const Policy& policy);

}  // namespace stint::config
