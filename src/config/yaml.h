// YAML, the strict part of it that configurations are written in.
#pragma once

#include <string>
#include <string_view>

#include "config/fault.h"
#include "config/node.h"

namespace stint::config {

// The one document of the text. Faults: whatever is no YAML; repeated keys; anchors, aliases, merge
// keys and tags; a second document; keys that are no plain text; values that run over several
// lines (but block scalars); bytes that are no text. A value beside faults has their places as
// Kind::broken, so that further faults can be found in it; without one the text makes no sense.
[[nodiscard]] Loaded<Node> parse_yaml(const std::string& file, std::string_view text);

}  // namespace stint::config
