// The policies that resources amount to: inline limits and rate_limit_policies in one list.
#pragma once

#include <vector>

#include "config/resources.h"
#include "stint/policy.h"

namespace stint::config {

// One policy for each row with limits, in the order models, api_keys, routes, rate_limit_policies.
// `places` receives where each stands. `on_store_error`: of those that do not say.
[[nodiscard]] std::vector<Policy> make_policies(const Resources& resources,
                                                OnStoreError on_store_error,
                                                std::vector<Place>& places);

}  // namespace stint::config
