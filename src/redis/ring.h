// The topology of several independent servers: each key has one, by consistent hashing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/deadline.h"
#include "net/event_loop.h"
#include "net/task.h"
#include "redis/server.h"
#include "redis/target.h"
#include "stint/hash_ring.h"

namespace stint::redis {

struct RingOptions {
  // By names; with at least one node. Shared by the topologies of all event loops.
  std::shared_ptr<const HashRing> ring{};
  // The ring before the last change, while keys may have to be brought from where it has them;
  // null: no change is under way. A name in both is one server.
  std::shared_ptr<const HashRing> previous{};
  Duration handover{0};  // for how long, from `start` on
  // One for each name of either ring, with that name, but for those of `aliases`.
  std::vector<ServerOptions> servers{};
  // Names of the previous ring that are other names of servers above.
  std::map<std::string, std::string, std::less<>> aliases{};
};

class Ring final : public Topology {
 public:
  Ring(net::EventLoop& loop, RingOptions options);

  [[nodiscard]] Route route(std::string_view routing_key) override;
  [[nodiscard]] std::optional<Previous> previous(std::string_view routing_key) override;
  // Those of the previous ring too, as long as keys may be there; then they are told `gone`.
  [[nodiscard]] std::span<Target* const> targets() override;
  void start() override;
  [[nodiscard]] net::Task<void> stop() override;

 private:
  [[nodiscard]] Server* server(std::string_view name) const;
  void end_handover();
  [[nodiscard]] std::vector<Server*> nodes_of(const HashRing& ring) const;

  net::EventLoop& loop_;
  const std::shared_ptr<const HashRing> ring_;
  const std::shared_ptr<const HashRing> previous_;
  const Duration handover_;
  const std::map<std::string, std::string, std::less<>> aliases_;
  Duration until_{0};  // keys may be brought
  net::Deadline over_;
  std::vector<std::function<void(const ServerEvent&)>> leaving_;  // of the previous ring only
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<Server*> nodes_;           // by HashRing::node_index
  std::vector<Server*> previous_nodes_;  // likewise
  std::vector<Target*> targets_;         // those of the ring first
};

}  // namespace stint::redis
