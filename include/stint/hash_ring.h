// Consistent hashing: which of several nodes a key belongs to, so that few keys move when nodes
// come and go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stint/error.h"

namespace stint {

// Names and weights of nodes and the number of virtual nodes decide everything: rings that agree in
// them send every key to the same node, whatever the order in which nodes were added and removed,
// the machine, the compiler, and the version of stint. That is a promise: replicas of different
// versions share their counters by it.
//
// How a key finds its node (Karger et al., "Consistent Hashing and Random Trees", 1997):
// - A node has round(16 * virtual_nodes * weight) points, at least one. Points 2i and 2i+1 are the
//   first and the second eight bytes, most significant first, of the MD5 of the text
//   "<length>:<name>:<v>:<d>": length of the name in bytes, v = i / 8 the virtual node,
//   d = i % 8 which of its eight digests, all decimal. The length keeps names apart that begin
//   alike.
// - A key is at the first eight bytes of its MD5, and belongs to the first point that is not
//   before it; behind the last point, to the first of all. Where points of several nodes are
//   equal, the smaller name (compared as bytes) has them.
//
// Sixteen points for each virtual node keep the shares of a few nodes within 10 % of fair; with one
// point each they stray far beyond it. MD5 spreads well; it keeps nobody from choosing keys that
// meet at one node.
//
// A lookup takes one MD5 of the key and a binary search: 0.15 us for a few nodes and a short key. A
// node of weight 1 takes 28 KiB with the default of 150 virtual nodes.
//
// A call that fails changed nothing. Thread rule: const functions from any thread at any time;
// nothing else may run beside a function that is not const.
class HashRing {
 public:
  static constexpr int kDefaultVirtualNodes = 150;
  static constexpr int kMaxVirtualNodes = 10'000;
  static constexpr double kMinWeight = 0.01;
  static constexpr double kMaxWeight = 100.0;
  static constexpr std::size_t kMaxName = 255;
  // Of all nodes together: 192 MiB.
  static constexpr std::size_t kMaxPoints = std::size_t{1} << 24;

  // Without nodes. `virtual_nodes`: 1 to kMaxVirtualNodes; more of them bring shares nearer to
  // fair, cost memory in proportion, and move keys when the number changes.
  // Errors: invalid_argument (virtual_nodes).
  [[nodiscard]] static Result<HashRing> create(int virtual_nodes = kDefaultVirtualNodes);

  // How many points a node of this weight has. Both must be within their bounds.
  [[nodiscard]] static std::size_t point_count(int virtual_nodes, double weight) noexcept;

  // `name`: 1 to kMaxName bytes. `weight`: kMinWeight to kMaxWeight; a node's share is in
  // proportion to it, less exactly the smaller it is.
  // Errors: invalid_argument (name, weight, virtual_nodes if there would be more than kMaxPoints),
  // already_exists (name).
  Result<void> add_node(std::string_view name, double weight = 1.0);

  // Errors: not_found (name).
  Result<void> remove_node(std::string_view name);

  // The name of the key's node; valid until the ring changes. Any bytes are a key.
  // Errors: not_found: the ring has no nodes.
  [[nodiscard]] Result<std::string_view> node(std::string_view key) const;
  // As above: its position among the names in their order, which is that of `distribution`.
  [[nodiscard]] Result<std::size_t> node_index(std::string_view key) const;

  struct Share {
    std::string name{};
    double weight = 1.0;
    std::size_t points = 0;
    double share = 0.0;  // of all keys, 0 to 1; together 1
  };
  // In the order of the names. The shares are those of the space of hashes, exact but for the
  // rounding to double; those of some keys stray from it like any sample.
  [[nodiscard]] std::vector<Share> distribution() const;

  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] int virtual_nodes() const noexcept { return virtual_nodes_; }

  // Where a key stands on the ring.
  [[nodiscard]] static std::uint64_t position(std::string_view key) noexcept;

  struct Move {
    std::string from{};
    std::string to{};
    double share = 0.0;  // of all keys, above 0
  };
  // Which keys have another node in `after` than in `before`, in the order of the names. Exact, as
  // `distribution`. Empty where either has no nodes.
  [[nodiscard]] static std::vector<Move> moves(const HashRing& before, const HashRing& after);

 private:
  struct Node {
    std::string name;
    double weight = 1.0;
    std::size_t points = 0;
  };

  explicit HashRing(int virtual_nodes) noexcept : virtual_nodes_(virtual_nodes) {}
  // The number of the node that a position belongs to. There must be one.
  [[nodiscard]] std::uint32_t owner_of(std::uint64_t position) const noexcept;

  int virtual_nodes_;
  std::vector<Node> nodes_;            // by name
  std::vector<std::uint64_t> points_;  // sorted
  std::vector<std::uint32_t> owners_;  // the index in nodes_ of each; ascending where points meet
};

}  // namespace stint
