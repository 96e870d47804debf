// Routes that no request can reach.
#pragma once

#include <vector>

#include "config/rows.h"

namespace stint::config {

// Reports routes on paths that the gateway answers itself, and those whose requests an earlier
// route takes, all of them.
void check_reach(std::vector<Draft<Route>>& routes);

}  // namespace stint::config
