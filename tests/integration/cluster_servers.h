// A Redis Cluster of three masters with a replica each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/deployment.h"
#include "stint/time.h"
#include "tests/integration/redis_testing.h"

namespace stint::redis_testing {

// Slots that have no node are refused alone (cluster-require-full-coverage no).
// Thread rule: as RedisServer.
class ClusterServers {
 public:
  struct Options {
    RedisServer::Options node{};
    bool tls = false;  // the nodes have certificates: connect by TLS
    // After which the others hold a node to be down.
    Duration node_timeout = std::chrono::milliseconds{1000};
  };
  // Returns when every node takes calls, and the replicas have their masters' data. Throws
  // std::runtime_error if that takes longer than 30 s.
  ClusterServers();
  explicit ClusterServers(Options options);

  static constexpr std::size_t kMasters = 3;
  static constexpr std::size_t kNodes = 6;

  [[nodiscard]] RedisServer& node(std::size_t index) { return *nodes_[index]; }
  // Where clients find it: the first two nodes.
  [[nodiscard]] redis::Deployment deployment() const;

  // Which node has the slot, as most of them say that answer; nothing if they do not agree.
  [[nodiscard]] std::optional<std::size_t> owner_of(std::uint16_t slot);
  // The same of a key, by its hash tag.
  [[nodiscard]] std::size_t node_of(std::string_view key);
  // A bucket key whose slot that node has: "<begin>0", or another number.
  [[nodiscard]] std::string bucket_at(std::size_t node, const std::string& begin);
  // Returns when all agree that another node than `old` has the slot.
  [[nodiscard]] std::size_t wait_for_other_owner(std::uint16_t slot, std::size_t old);
  // Until all that run are in order: every slot has a master, and every other node is in sync.
  void wait_until_settled();

  // Moving a slot, as redis-cli --cluster reshard does it: from here on new keys are made at `to`;
  // all keys are moved; and it is told to the masters.
  void begin_move(std::uint16_t slot, std::size_t from, std::size_t to);
  void move_keys(std::uint16_t slot, std::size_t from, std::size_t to);
  void end_move(std::uint16_t slot, std::size_t to);

 private:
  [[nodiscard]] bool settled();
  [[nodiscard]] std::string id_of(std::size_t node);
  [[nodiscard]] std::uint16_t port_of(std::size_t node) const;
  [[nodiscard]] std::optional<std::size_t> with_port(std::int64_t port) const;

  Options options_;
  std::vector<std::unique_ptr<RedisServer>> nodes_;
};

}  // namespace stint::redis_testing
