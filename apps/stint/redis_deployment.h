// The Redis servers that ratelimit.redis asks for.
#pragma once

#include <expected>
#include <string>

#include "config/bootstrap.h"
#include "redis/deployment.h"

namespace stint::app {

// Its hand-over, if it is a ring, is to be set by whoever knows the limits: see handover_of.
// Error: what cannot be used.
[[nodiscard]] std::expected<redis::Deployment, std::string> redis_deployment(
    const config::Redis& redis);

// For how long buckets are brought from where they were before the last change of a ring: as
// configured, else the longest window of all limits, at most an hour.
[[nodiscard]] Duration handover_of(const config::Redis& redis, Duration longest_window) noexcept;

}  // namespace stint::app
