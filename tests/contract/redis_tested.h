// Stores in Redis whose scripts are told the time by the tests.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tests/contract/store_contract.h"
#include "tests/integration/redis_rig.h"

namespace stint::store {

// `set_key` writes a key, on the server where the scripts run that read it.
[[nodiscard]] std::unique_ptr<TestedStore> make_redis_tested(
    TimePoint start, const redis::Deployment& deployment,
    std::function<void(const std::string& key, const std::string& value)> set_key);

}  // namespace stint::store
