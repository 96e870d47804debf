// The topology of a Redis Cluster: each slot at the node that has it now.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "net/event_loop.h"
#include "net/task.h"
#include "redis/deployment.h"
#include "redis/target.h"

namespace stint::redis {

// A target for each master, and one by the name of kNowhere: keys go there whose slot nobody has,
// all of them until the first node has answered. It is told of as in trouble meanwhile.
//
// Keys are in one reach if they are the same: while a slot is moved, a call about several keys is
// refused that would be taken for each of them. A probe's keys get a hash tag, so that each is at
// the node that is probed.
// Thread rule: as Topology.
class Cluster final : public Topology {
 public:
  static constexpr std::string_view kNowhere = "cluster";

  // `deployment`: with a ClusterDeployment. `prepare` is called for every node that becomes known,
  // as long as the topology lives. Throws std::invalid_argument: no node, another database than 0,
  // or no TLS context.
  Cluster(net::EventLoop& loop, const Deployment& deployment, PrepareServer prepare);
  ~Cluster() override;

  [[nodiscard]] Route route(std::string_view routing_key) override;
  [[nodiscard]] Route redirected(std::string_view routing_key, const Target& by,
                                 const CallError& error) override;
  [[nodiscard]] std::span<Target* const> targets() override;
  [[nodiscard]] bool of_cluster() const noexcept override { return true; }
  void start() override;
  [[nodiscard]] net::Task<void> stop() override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stint::redis
