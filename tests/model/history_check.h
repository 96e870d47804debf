// Checks a property of random histories with RapidCheck, by a fixed seed unless RC_PARAMS says one.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/model/history.h"

namespace stint::model {

inline constexpr std::uint64_t kSeed = 2'026'01'01;

// `fault`: what is wrong with a history; empty: nothing. Fails the running test with the smallest
// history that has a fault.
void check(const rc::Gen<History>& histories, int count,
           const std::function<std::string(const History&)>& fault);

// Histories that found a bug once: seeds/*.txt.
[[nodiscard]] std::vector<std::filesystem::path> seeds();
[[nodiscard]] History read_history(const std::filesystem::path& path);
// Whether time steps back in it.
[[nodiscard]] bool steps_back(const History& history);

}  // namespace stint::model
