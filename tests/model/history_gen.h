// Random histories, biased towards what breaks limiters: few keys, costs around what a limit
// holds, instants around the ends of windows and of waits.
#pragma once

#include <rapidcheck.h>

#include "tests/model/history.h"

namespace stint::model {

// Time stands still or goes on, up to 100 years at a time.
[[nodiscard]] rc::Gen<History> forward_histories();
// Time also steps back.
[[nodiscard]] rc::Gen<History> stepping_histories();

}  // namespace stint::model
