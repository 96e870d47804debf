// The answer to GET /v1/models.
#pragma once

#include <string>

#include "config/snapshot.h"

namespace stint::gateway {

// The models that the key may use, in OpenAI's format, in the order of the configuration.
// Wildcard rows are listed as they are configured.
[[nodiscard]] std::string model_list(const config::Snapshot& snapshot, const config::ApiKey& key);

}  // namespace stint::gateway
