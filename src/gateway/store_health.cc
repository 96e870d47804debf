#include "gateway/store_health.h"

#include <algorithm>
#include <boost/json.hpp>

namespace stint::gateway {

bool StoreHealth::degraded() const noexcept {
  return std::ranges::any_of(shards, [](const Shard& shard) { return shard.degraded; });
}

std::string to_json(const StoreHealth& health) {
  namespace json = boost::json;
  json::object out;
  out["backend"] = json::string_view(health.backend.data(), health.backend.size());
  out["degraded"] = health.degraded();
  json::array shards;
  for (const StoreHealth::Shard& shard : health.shards) {
    json::object one;
    one["name"] = shard.name;
    one["degraded"] = shard.degraded;
    if (shard.degraded && !shard.why.empty()) one["why"] = shard.why;
    shards.push_back(std::move(one));
  }
  if (!shards.empty()) out["shards"] = std::move(shards);
  return json::serialize(out);
}

}  // namespace stint::gateway
