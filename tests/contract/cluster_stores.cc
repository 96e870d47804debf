// The store in a real Redis Cluster.
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "redis/slots.h"
#include "tests/contract/redis_tested.h"
#include "tests/integration/cluster_servers.h"

namespace stint::store {
namespace {

redis_testing::ClusterServers& servers() {
  static redis_testing::ClusterServers made;
  return made;
}

// Nothing moves here.
redis_testing::RedisServer& node_with(const std::string& key) {
  static std::map<std::uint16_t, std::size_t> known;
  const auto [owner, fresh] = known.try_emplace(redis::slot_of_key(key));
  if (fresh) owner->second = servers().node_of(key);
  return servers().node(owner->second);
}

std::unique_ptr<TestedStore> make(TimePoint start) {
  return make_redis_tested(start, servers().deployment(), TimeKeys::one_beside_each_bucket,
                           [](const std::string& key, const std::string& value) {
                             node_with(key).command({"SET", key, value});
                           });
}

}  // namespace

std::vector<StoreFactory> tested_stores() { return {{"Cluster", make}}; }

}  // namespace stint::store
