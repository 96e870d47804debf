#include "admin/places.h"

namespace stint::admin {
namespace {

constexpr const char* kMemory = "memory";

}  // namespace

Ring InMemory::ring() const {
  return {.backend = kMemory, .mode = kMemory, .shards = {{.name = kMemory}}};
}

std::vector<ShardHealth> InMemory::health() const { return {{.name = kMemory}}; }

std::string InMemory::shard_of(std::string_view /*bucket_key*/) const { return kMemory; }

}  // namespace stint::admin
