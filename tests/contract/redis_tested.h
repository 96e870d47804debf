// Stores in Redis whose scripts are told the time by the tests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tests/contract/store_contract.h"
#include "tests/integration/redis_rig.h"

namespace stint::store {

// Where scripts find the time: where every key may be, or in the slot of what they are about.
enum class TimeKeys : std::uint8_t { one, one_beside_each_bucket };

// `set_key` writes a key, at the server that has it.
[[nodiscard]] std::unique_ptr<TestedStore> make_redis_tested(
    TimePoint start, const redis::Deployment& deployment, TimeKeys time_keys,
    std::function<void(const std::string& key, const std::string& value)> set_key);

}  // namespace stint::store
