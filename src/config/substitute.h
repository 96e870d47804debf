// ${VAR} in the values of a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/fault.h"
#include "config/node.h"
#include "config/scalar.h"

namespace stint::config {

// `${VAR}` becomes the variable's value, an error if it is not set; `${VAR:-x}` becomes x if it is
// not set or empty; `$$` becomes a dollar; any other dollar stays. Values put in are not looked at
// again.
[[nodiscard]] Scalar<std::string> substitute(std::string_view text, const Environment& environment);

// As above for every scalar of the tree, after parsing: nothing in a value is taken for YAML. A
// plain scalar whose text came from a variable may be read as any type.
void substitute(Node& root, const std::string& file, const Environment& environment,
                std::vector<Fault>& faults);

}  // namespace stint::config
