// `stint check --config FILE`: whether a configuration is good.
#pragma once

#include <optional>
#include <string>

#include "config/fault.h"

namespace stint::cli {

struct CheckResult {
  int exit_code = 0;  // 0: can be served (warnings or not), 1: cannot
  std::string text;   // lines for people, each with its line end
};

// Loads the bootstrap file, if one is named, overridden from the environment, and the resources
// file that it names. Reports every fault of both.
[[nodiscard]] CheckResult check(const std::optional<std::string>& file,
                                const config::Environment& environment);

}  // namespace stint::cli
