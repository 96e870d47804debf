// What somebody meant who wrote something else.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stint::config {

// The one of the names that is nearest to the text, by letters left out, added, replaced or
// swapped (Damerau 1964, optimal string alignment), without regard to case; empty if none is near.
[[nodiscard]] std::string_view nearest(std::string_view text,
                                       std::span<const std::string_view> names);

// "; did you mean addr?", or if none is near "; known are a, b, c" unless they are many.
[[nodiscard]] std::string suggestion(std::string_view text,
                                     std::span<const std::string_view> names);

}  // namespace stint::config
