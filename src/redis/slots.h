// The slots of a Redis Cluster: which one a key belongs to, and what nodes say about them.
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/call.h"

namespace stint::redis {

inline constexpr std::size_t kSlots = 16384;

// Of what is hashed: the hash tag without its braces, or a key without a tag. CRC16 (XMODEM).
[[nodiscard]] std::uint16_t slot_of(std::string_view hashed) noexcept;
// Of a whole key: of what is between the first '{' and the next '}', if that is not empty.
[[nodiscard]] std::uint16_t slot_of_key(std::string_view key) noexcept;

struct NodePlace {
  std::string host{};
  std::uint16_t port = 0;
  auto operator<=>(const NodePlace&) const = default;
};

struct SlotRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;  // included
  NodePlace master{};
  std::vector<NodePlace> replicas{};
};

// What one node says about all of them.
struct SlotsAnswer {
  std::vector<SlotRange> ranges{};
  std::int64_t epoch = 0;  // of the last change it has heard of
  bool ok = false;         // it takes part in a Cluster that works
};
// From the answers to CLUSTER INFO and CLUSTER SLOTS of the node at `asked`. A master without a
// host is that node's own (an endpoint that is "unknown" to itself). Error: why that is no answer.
[[nodiscard]] std::expected<SlotsAnswer, std::string> read_slots(const CallResult& info,
                                                                 const CallResult& slots,
                                                                 const NodePlace& asked);

// "MOVED 3999 10.0.0.1:6381" and "ASK ...": where the call is to go.
struct Redirection {
  bool ask = false;  // once, and with ASKING; else from now on
  std::uint16_t slot = 0;
  NodePlace to{};
};
// `by`: the node that said so. Nothing if it is no such error.
[[nodiscard]] std::optional<Redirection> read_redirection(const CallError& error,
                                                          const NodePlace& by);

}  // namespace stint::redis
