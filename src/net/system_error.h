// From what the operating system reports to the closed set of errors. For the .cc files of net.
#pragma once

#include <string_view>

#include "net/result.h"

namespace stint::net {

// With the name of the code as its text.
[[nodiscard]] NetError make_error(NetErrc code);
// `what`: what was tried, for the text: "connect 10.0.0.1:80".
[[nodiscard]] NetError error_from_errno(int error, std::string_view what);

}  // namespace stint::net
