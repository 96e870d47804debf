// Variables of the environment as overrides of a file.
#pragma once

#include <span>
#include <vector>

#include "config/fault.h"
#include "config/node.h"
#include "config/reader.h"

namespace stint::config {

// Puts the values of STINT_ variables into the tree, over those of the file. A variable with `__`
// that names no key is warned about; others are ignored: Kubernetes makes such for a service that
// is called stint.
void apply_variables(Node& root, const Environment& environment, std::span<const KnownKey> known,
                     Context& context);

// Puts the addresses of REDIS_URLS, REDIS_URLS_PREVIOUS and REDIS_URL, and the number of
// RATE_LIMIT_CONSISTENT_HASH_VNODES into the tree, if its backend is redis and it has none.
void apply_redis_variables(Node& root, const Environment& environment, Context& context);

}  // namespace stint::config
