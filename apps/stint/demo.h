// `stint demo`: the gateway in front of an upstream of its own, to try with nothing else at hand.
#pragma once

namespace stint::app {

// Until it is interrupted. The exit code.
[[nodiscard]] int run_demo();

}  // namespace stint::app
