// The scripts of the Redis store, ready to be called.
#pragma once

#include <string_view>

#include "redis/script.h"

namespace stint::store {

// The texts of lua/*.lua, put into the program at build time.
namespace lua {
extern const std::string_view prelude;
extern const std::string_view decide;
extern const std::string_view announce;
extern const std::string_view logs;  // in front of those two that follow
extern const std::string_view look;
extern const std::string_view take;
extern const std::string_view install;
}  // namespace lua

// Immutable; must outlive the stores that use it.
struct Scripts {
  // `prelude` says what time it is. The program has one only, which asks the server; tests of the
  // arithmetic set the time with another.
  explicit Scripts(std::string_view prelude = lua::prelude);

  redis::Script decide;
  redis::Script announce;
  redis::Script look;
  redis::Script take;
  redis::Script install;
};

}  // namespace stint::store
