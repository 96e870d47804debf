#include "redis/ring.h"

#include <algorithm>
#include <utility>

namespace stint::redis {

Ring::Ring(net::EventLoop& loop, RingOptions options)
    : loop_(loop),
      ring_(std::move(options.ring)),
      previous_(std::move(options.previous)),
      handover_(options.handover) {
  for (ServerOptions& each : options.servers) {
    servers_.push_back(std::make_unique<Server>(loop, std::move(each)));
  }
  nodes_ = nodes_of(*ring_);
  targets_.assign(nodes_.begin(), nodes_.end());
  if (!previous_) return;
  previous_nodes_ = nodes_of(*previous_);
  for (Server* each : previous_nodes_) {
    if (std::ranges::find(targets_, each) == targets_.end()) targets_.push_back(each);
  }
}

Server* Ring::server(std::string_view name) const {
  for (const auto& each : servers_) {
    if (each->name() == name) return each.get();
  }
  std::unreachable();
}

std::vector<Server*> Ring::nodes_of(const HashRing& ring) const {
  std::vector<Server*> nodes;
  for (const HashRing::Share& share : ring.distribution()) nodes.push_back(server(share.name));
  return nodes;
}

Topology::Route Ring::route(std::string_view routing_key) {
  Route route;
  route.target = nodes_[*ring_->node_index(routing_key)];
  return route;
}

std::optional<Topology::Previous> Ring::previous(std::string_view routing_key) {
  if (!previous_) return std::nullopt;
  const Duration left = until_ - loop_.now();
  if (left <= Duration::zero()) return std::nullopt;
  Server* const before = previous_nodes_[*previous_->node_index(routing_key)];
  if (before == nodes_[*ring_->node_index(routing_key)]) return std::nullopt;
  Previous previous;
  previous.route.target = before;
  previous.left = left;
  return previous;
}

std::span<Target* const> Ring::targets() {
  const bool all = previous_ && loop_.now() < until_;
  return std::span<Target* const>(targets_).first(all ? targets_.size() : nodes_.size());
}

void Ring::start() {
  until_ = loop_.now() + handover_;
  for (const auto& each : servers_) each->start();
}

net::Task<void> Ring::stop() {
  for (const auto& each : servers_) {
    co_await each->stop();
  }
}

}  // namespace stint::redis
