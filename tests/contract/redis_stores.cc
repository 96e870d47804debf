// The store in Redis, on a real server.
#include <memory>
#include <string>

#include "tests/contract/redis_tested.h"

namespace stint::store {
namespace {

redis_testing::RedisServer& server() {
  static redis_testing::RedisServer made;
  return made;
}

std::unique_ptr<TestedStore> make(TimePoint start) {
  redis::Deployment deployment;
  deployment.servers = redis::SingleDeployment{redis::parse_url(server().url()).value()};
  return make_redis_tested(start, deployment, TimeKeys::one,
                           [](const std::string& key, const std::string& value) {
                             server().command({"SET", key, value});
                           });
}

}  // namespace

std::vector<StoreFactory> tested_stores() { return {{"Redis", make}}; }

}  // namespace stint::store
