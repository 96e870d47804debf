#include "stint/hash_ring.h"

// MD5() in one shot is deprecated, and four times as fast as what replaces it.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/md5.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "ring/points.h"

namespace stint {
namespace {

constexpr std::size_t kDigestsPerVirtualNode = 8;
constexpr std::size_t kPointsPerDigest = 2;
constexpr std::size_t kPointsPerVirtualNode = kDigestsPerVirtualNode * kPointsPerDigest;

using Digest = std::array<unsigned char, MD5_DIGEST_LENGTH>;

Digest md5(std::string_view text) noexcept {
  Digest digest;
  MD5(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

std::uint64_t big_endian(const Digest& digest, std::size_t first) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) value = (value << 8) | digest[first + i];
  return value;
}

std::vector<std::uint64_t> points_of(std::string_view name, std::size_t count) {
  const std::string prefix = std::to_string(name.size()) + ':' + std::string(name) + ':';
  std::vector<std::uint64_t> points;
  points.reserve(count + 1);
  for (std::size_t i = 0; points.size() < count; ++i) {
    const Digest digest = md5(prefix + std::to_string(i / kDigestsPerVirtualNode) + ':' +
                              std::to_string(i % kDigestsPerVirtualNode));
    points.push_back(big_endian(digest, 0));
    points.push_back(big_endian(digest, 8));
  }
  points.resize(count);
  std::ranges::sort(points);
  return points;
}

// The part of the space that lies in (from, to], where `to` may be behind the end of it. Both
// equal: all of it.
double arc(std::uint64_t from, std::uint64_t to) noexcept {
  const std::uint64_t length = to - from;
  return length == 0 ? 1.0 : std::ldexp(static_cast<double>(length), -64);
}

Error no_nodes() { return Error{ErrorCode::not_found, "", "the ring has no nodes"}; }

}  // namespace

Result<HashRing> HashRing::create(int virtual_nodes) {
  if (virtual_nodes < 1 || virtual_nodes > kMaxVirtualNodes) {
    return invalid("virtual_nodes", "must be 1 to 10,000");
  }
  return HashRing(virtual_nodes);
}

std::size_t HashRing::point_count(int virtual_nodes, double weight) noexcept {
  const double whole = static_cast<double>(kPointsPerVirtualNode) * virtual_nodes * weight;
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::llround(whole)));
}

Result<void> HashRing::add_node(std::string_view name, double weight) {
  if (name.empty() || name.size() > kMaxName) return invalid("name", "must have 1 to 255 bytes");
  // In this form it refuses what is not a number, too.
  if (!(weight >= kMinWeight && weight <= kMaxWeight)) {
    return invalid("weight", "must be 0.01 to 100");
  }
  const auto place = std::ranges::lower_bound(nodes_, name, {}, &Node::name);
  if (place != nodes_.end() && place->name == name) {
    return std::unexpected(Error{ErrorCode::already_exists, "name", "is a node already"});
  }
  const std::size_t count = point_count(virtual_nodes_, weight);
  if (points_.size() + count > kMaxPoints) {
    return invalid("virtual_nodes", "is too much for so many nodes of such weights");
  }

  const auto index = static_cast<std::uint32_t>(place - nodes_.begin());
  ring::Points points = ring::with_node(points_, owners_, points_of(name, count), index);
  nodes_.insert(place, Node{.name = std::string(name), .weight = weight, .points = count});
  points_ = std::move(points.at);
  owners_ = std::move(points.owner);
  return {};
}

Result<void> HashRing::remove_node(std::string_view name) {
  const auto place = std::ranges::lower_bound(nodes_, name, {}, &Node::name);
  if (place == nodes_.end() || place->name != name) {
    return std::unexpected(Error{ErrorCode::not_found, "name", "is no node"});
  }
  ring::remove_node(points_, owners_, static_cast<std::uint32_t>(place - nodes_.begin()));
  nodes_.erase(place);
  return {};
}

std::uint64_t HashRing::position(std::string_view key) noexcept { return big_endian(md5(key), 0); }

std::uint32_t HashRing::owner_of(std::uint64_t position) const noexcept {
  return owners_[ring::find(points_, position)];
}

Result<std::size_t> HashRing::node_index(std::string_view key) const {
  if (points_.empty()) return std::unexpected(no_nodes());
  return owner_of(position(key));
}

Result<std::string_view> HashRing::node(std::string_view key) const {
  if (points_.empty()) return std::unexpected(no_nodes());
  return nodes_[owner_of(position(key))].name;
}

std::vector<HashRing::Share> HashRing::distribution() const {
  std::vector<Share> shares;
  shares.reserve(nodes_.size());
  for (const Node& node : nodes_) {
    shares.push_back({.name = node.name, .weight = node.weight, .points = node.points});
  }
  if (nodes_.size() == 1) {
    shares[0].share = 1.0;
    return shares;
  }
  std::uint64_t before = points_.empty() ? 0 : points_.back();
  for (std::size_t i = 0; i < points_.size(); ++i) {
    // Of points that are equal the first has the arc, and the others nothing.
    if (i == 0 || points_[i] != before) shares[owners_[i]].share += arc(before, points_[i]);
    before = points_[i];
  }
  return shares;
}

std::vector<HashRing::Move> HashRing::moves(const HashRing& before, const HashRing& after) {
  if (before.points_.empty() || after.points_.empty()) return {};
  // Between two neighbours among the points of both, all keys have one node in each.
  std::vector<std::uint64_t> ends;
  ends.reserve(before.points_.size() + after.points_.size());
  std::ranges::merge(before.points_, after.points_, std::back_inserter(ends));
  const auto [first, last] = std::ranges::unique(ends);
  ends.erase(first, last);

  std::map<std::pair<std::uint32_t, std::uint32_t>, double> shares;
  std::uint64_t from = ends.back();
  for (const std::uint64_t to : ends) {
    const std::uint32_t old_owner = before.owner_of(to);
    const std::uint32_t new_owner = after.owner_of(to);
    if (before.nodes_[old_owner].name != after.nodes_[new_owner].name) {
      shares[{old_owner, new_owner}] += arc(from, to);
    }
    from = to;
  }
  std::vector<Move> moves;
  moves.reserve(shares.size());
  for (const auto& [owners, share] : shares) {
    moves.push_back({.from = before.nodes_[owners.first].name,
                     .to = after.nodes_[owners.second].name,
                     .share = share});
  }
  return moves;
}

}  // namespace stint
