#include "redis/cluster_map.h"

#include <algorithm>
#include <utility>

namespace stint::redis {

ClusterMap::ClusterMap(Options options) : options_(options), owners_(kSlots, kNobody) {}

bool ClusterMap::needed(Node node, Duration now) const noexcept {
  return nodes_[node].slots > 0 || nodes_[node].asked_until > now;
}

Duration ClusterMap::next_question(bool well) const noexcept {
  if (hurried_) return asked_at_ + options_.pause;
  return asked_at_ + (well ? options_.watch_every : options_.search_every);
}

bool ClusterMap::take_question(Duration now, bool well) {
  if (asking_ || now < next_question(well)) return false;
  asking_ = true;
  hurried_ = false;
  asked_at_ = now;
  return true;
}

bool ClusterMap::learned(const SlotsAnswer& answer, Duration now) {
  asking_ = false;
  if (known_ && (!answer.ok || answer.epoch < epoch_)) {
    if (!doubted_since_) doubted_since_ = now;
    if (!answer.ok || now - *doubted_since_ < options_.forget_after) return false;
  }
  doubted_since_.reset();
  // Nobody has any: a node that was reset, or has not met the others yet.
  if (answer.ranges.empty()) return false;
  known_ = true;
  epoch_ = answer.epoch;
  std::vector<Node> owners(kSlots, kNobody);
  replicas_.clear();
  for (const SlotRange& range : answer.ranges) {
    const Node master = node_at(range.master);
    std::fill(owners.begin() + range.first, owners.begin() + range.last + 1, master);
    for (const NodePlace& replica : range.replicas) {
      if (std::ranges::find(replicas_, replica) == replicas_.end()) replicas_.push_back(replica);
    }
  }
  owners_ = std::move(owners);
  orphans_ = 0;
  for (Known& node : nodes_) node.slots = 0;
  for (const Node owner : owners_) owner == kNobody ? ++orphans_ : ++nodes_[owner].slots;
  return true;
}

ClusterMap::Node ClusterMap::moved(const Redirection& to) {
  const Node node = node_at(to.to);
  if (owners_[to.slot] != node) hurried_ = true;
  give(to.slot, node);
  return node;
}

ClusterMap::Node ClusterMap::asked(const Redirection& to, Duration now) {
  const Node node = node_at(to.to);
  nodes_[node].asked_until = now + options_.keep_asked;
  return node;
}

ClusterMap::Node ClusterMap::node_at(const NodePlace& place) {
  const auto found = std::ranges::find(nodes_, place, &Known::place);
  const auto index = static_cast<Node>(found - nodes_.begin());
  if (found == nodes_.end()) nodes_.push_back({place, 0, {}});
  return index;
}

void ClusterMap::give(std::uint16_t slot, Node node) {
  const Node old = std::exchange(owners_[slot], node);
  if (old == node) return;
  old == kNobody ? --orphans_ : --nodes_[old].slots;
  ++nodes_[node].slots;
}

}  // namespace stint::redis
