// Words that stand for the values of enumerations, in the order of their declarations.
#pragma once

#include <array>
#include <string_view>

namespace stint::config {

inline constexpr std::array<std::string_view, 4> kOnStoreErrorNames{"local", "local_full", "allow",
                                                                    "deny"};
inline constexpr std::array<std::string_view, 2> kAdapterNames{"openai", "anthropic"};
inline constexpr std::array<std::string_view, 2> kAuthNames{"none", "api_key"};
inline constexpr std::array<std::string_view, 2> kModeNames{"enforce", "shadow"};
inline constexpr std::array<std::string_view, 2> kTokenAdmissionNames{"postpaid", "reserve"};

}  // namespace stint::config
