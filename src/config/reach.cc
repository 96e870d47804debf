#include "config/reach.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "config/scalar.h"

namespace stint::config {
namespace {

// Answered before routes are looked at: gateway::Dispatcher::dispatch.
constexpr std::array<std::string_view, 5> kOwnPaths{"/livez", "/readyz", "/v1/models",
                                                    "/v1/chat/completions", "/v1/embeddings"};

bool is_own(std::string_view path) { return std::ranges::find(kOwnPaths, path) != kOwnPaths.end(); }

void check_own_paths(Draft<Route>& draft) {
  const Route::Match& match = draft.row.match;
  MapReader match_reader = draft.reader.map("match");
  if (is_own(match.path)) {
    match_reader.fault("path", "is never reached: the gateway answers " + match.path + " itself");
  } else if (is_own(match.path_prefix)) {
    match_reader.warn("path_prefix", "only what lies below is reached: the gateway answers " +
                                         match.path_prefix + " itself");
  }
}

}  // namespace

void check_reach(std::vector<Draft<Route>>& routes) {
  using Key = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>;
  constexpr std::string_view kAnyMethod;
  std::map<Key, const MapReader*> taken;  // host, path, prefix and method -> the first with them
  for (Draft<Route>& draft : routes) {
    const Route::Match& match = draft.row.match;
    if (match.host.empty() && match.path.empty() && match.path_prefix.empty() &&
        match.methods.empty()) {
      continue;  // which was told
    }
    check_own_paths(draft);
    const auto key = [&](std::string_view method) {
      return Key{match.host, match.path, match.path_prefix, method};
    };
    std::vector<std::string_view> methods(match.methods.begin(), match.methods.end());
    if (methods.empty()) methods.push_back(kAnyMethod);
    const MapReader* first = nullptr;
    bool reached = false;
    for (const std::string_view method : methods) {
      const auto [other, fresh] = taken.emplace(key(method), &draft.reader);
      reached = reached || fresh || other->second == &draft.reader;
      if (first == nullptr) first = other->second;
    }
    if (reached) continue;
    const Place place = first->place_of("match");
    draft.reader.fault("match", "is never reached: " + first->path() + " in line " +
                                    std::to_string(place.line) + " has the same match");
  }
}

}  // namespace stint::config
