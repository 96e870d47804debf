// The store in Redis, on a master that real Sentinels watch.
#include <memory>
#include <string>

#include "tests/contract/redis_tested.h"
#include "tests/integration/sentinel_servers.h"

namespace stint::store {
namespace {

redis_testing::SentinelServers& servers() {
  static redis_testing::SentinelServers made;
  return made;
}

std::unique_ptr<TestedStore> make(TimePoint start) {
  return make_redis_tested(start, servers().deployment(), TimeKeys::one,
                           [](const std::string& key, const std::string& value) {
                             servers().node(0).command({"SET", key, value});
                           });
}

}  // namespace

std::vector<StoreFactory> tested_stores() { return {{"Sentinel", make}}; }

}  // namespace stint::store
