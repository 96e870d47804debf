// The Redis servers that ratelimit.redis asks for.
#pragma once

#include <expected>
#include <string>

#include "config/bootstrap.h"
#include "redis/deployment.h"

namespace stint::app {

// `longest_window`: of all limits: for how long buckets are brought from where they were before the
// last change of a ring, unless the configuration says (at most an hour).
// Error: what cannot be used.
[[nodiscard]] std::expected<redis::Deployment, std::string> redis_deployment(
    const config::Redis& redis, Duration longest_window);

}  // namespace stint::app
