// The configuration in force, as JSON. Secrets are masked.
#pragma once

#include "admin/json.h"
#include "admin/program.h"
#include "config/snapshot.h"

namespace stint::admin {

// What stands for a secret that is there.
inline constexpr std::string_view kMasked = "***";

// Every setting with its value and where it comes from, and the rows of the resources.
[[nodiscard]] json::object configuration(const Program& program);
// The policies in force, also those that the limits of keys, models and routes become.
[[nodiscard]] json::object policies(const Program& program);
[[nodiscard]] json::object errors(const Program& program);

}  // namespace stint::admin
