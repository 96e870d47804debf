#include "store/redis/scripts.h"

#include <string>

namespace stint::store {
namespace {

redis::Script make(const char* name, std::string_view prelude, std::string_view body,
                   std::string_view before = {}) {
  return {name, std::string(prelude).append(before).append(body)};
}

}  // namespace

Scripts::Scripts(std::string_view prelude)
    : decide(make("decide", prelude, lua::decide)),
      announce(make("announce", prelude, lua::announce)),
      look(make("look", prelude, lua::look, lua::logs)),
      take(make("take", prelude, lua::take, lua::logs)),
      install(make("install", prelude, lua::install)) {}

}  // namespace stint::store
