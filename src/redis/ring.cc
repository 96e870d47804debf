#include "redis/ring.h"

#include <algorithm>
#include <utility>

namespace stint::redis {

Ring::Ring(net::EventLoop& loop, RingOptions options)
    : loop_(loop),
      ring_(std::move(options.ring)),
      previous_(std::move(options.previous)),
      handover_(options.handover),
      aliases_(std::move(options.aliases)),
      over_(loop.deadlines(), [this] { end_handover(); }) {
  const auto stays = [this](std::string_view name) {
    return std::ranges::any_of(ring_->distribution(),
                               [name](const HashRing::Share& share) { return share.name == name; });
  };
  for (ServerOptions& each : options.servers) {
    if (each.on_event && !stays(each.name)) leaving_.push_back(each.on_event);
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
  const auto alias = aliases_.find(name);
  if (alias != aliases_.end()) name = alias->second;
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
  if (previous_) over_.arm(until_);
  for (const auto& each : servers_) each->start();
}

// Nobody asks them any more, so nobody needs to know how they stand.
void Ring::end_handover() {
  for (const auto& tell : leaving_) tell({ServerEvent::Kind::gone, {}});
}

net::Task<void> Ring::stop() {
  over_.disarm();
  for (const auto& each : servers_) {
    co_await each->stop();
  }
}

}  // namespace stint::redis
