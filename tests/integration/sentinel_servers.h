// A master with two replicas, and three Sentinels that watch them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "redis/deployment.h"
#include "stint/time.h"
#include "tests/integration/redis_testing.h"

namespace stint::redis_testing {

// Thread rule: as RedisServer.
class SentinelServers {
 public:
  struct Options {
    RedisServer::Options data{};     // of the master and the replicas
    RedisServer::Options watcher{};  // of the Sentinels
    std::string master_user{};       // by whom the Sentinels look at data.password; empty: default
    bool tls = false;                // data and watchers have certificates: connect by TLS
  };
  // Returns when all know one another and the replicas have the master's data. Throws
  // std::runtime_error if that takes longer than 30 s.
  SentinelServers();
  explicit SentinelServers(Options options);

  static constexpr std::size_t kNodes = 3;
  static constexpr const char* kName = "mymaster";

  [[nodiscard]] RedisServer& node(std::size_t index) { return *nodes_[index]; }
  [[nodiscard]] RedisServer& sentinel(std::size_t index) { return *sentinels_[index]; }
  void restart_sentinel(std::size_t index);
  // Where clients find them.
  [[nodiscard]] redis::Deployment deployment() const;

  // Which node the majority of the Sentinels that answer mean.
  [[nodiscard]] std::optional<std::size_t> named_master();
  // Has the first Sentinel begin a failover although the master lives; the master that was stays
  // alive, and becomes a replica some seconds later.
  void order_failover();
  // While set, they hold nobody to be down.
  void let_sentinels_miss_nobody(bool set);
  // Returns which node is the master when the Sentinels mean another than `old`.
  [[nodiscard]] std::size_t wait_for_other_master(std::size_t old);
  // Until all nodes that run are in order again: one master, and replicas of it.
  void wait_until_settled();

 private:
  static void hurry(RedisServer& sentinel);
  [[nodiscard]] bool settled();
  [[nodiscard]] std::size_t node_of(std::uint16_t port) const;

  Options options_;
  std::vector<std::unique_ptr<RedisServer>> nodes_;
  std::vector<std::unique_ptr<RedisServer>> sentinels_;
};

}  // namespace stint::redis_testing
