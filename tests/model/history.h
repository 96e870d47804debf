// A history of calls to a store: plain values, written and read as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "stint/limit.h"
#include "stint/time.h"

namespace stint::model {

// A number relative to another one, so that it stays interesting whatever that is: of what a
// limit can hold, or of what was charged. Cut to 0 to kMaxQuantity. As text: "3", "4/4", "2/4-1".
struct Amount {
  std::int64_t quarters = 0;
  std::int64_t plus = 0;

  [[nodiscard]] std::int64_t of(std::int64_t whole) const;
};

struct Ask {
  Amount need;
  Amount charge;
  bool skip = false;
};

// One bucket of an admission. A policy with more limits than asks asks them in turn.
struct Use {
  std::size_t policy = 0;
  std::size_t key = 0;
  bool shadow = false;
  std::vector<Ask> asks;
};

// A use of a bucket that was named before in the same admission is left out.
struct Acquire {
  std::vector<Use> uses;
};
struct Peek {
  std::vector<Use> uses;
};
// Of the records that are admitted and not yet settled, by number, counted round.
struct Settle {
  std::size_t pick = 0;
  std::vector<Amount> actual;  // of what was charged, in turn; of leases always 0
};
struct Renew {
  std::vector<std::size_t> picks;
};
struct Reset {
  std::optional<std::size_t> policy;  // absent: all
  std::optional<std::size_t> key;     // absent: all of the policy
};
struct Reload {
  std::size_t policy = 0;
  std::size_t limit = 0;
  std::int64_t quota = 0;
  std::int64_t burst = 0;  // of a token bucket
};
// The limits change places, and one of them (if it has a window, and stays unlike the others) its
// window, with which it starts anew.
struct Relayout {
  std::size_t policy = 0;
  std::size_t rotate = 0;
  std::size_t limit = 0;
  Duration window{0};
};
struct Wait {
  Duration span{0};
};
// To the next start of a window of one limit (of leases: to the end of one made now).
struct Edge {
  std::size_t policy = 0;
  std::size_t limit = 0;
  Duration offset{0};
};
// To the longest wait that was told last, or else the shortest reset.
struct AsTold {
  Duration offset{0};
};

using Op = std::variant<Acquire, Peek, Settle, Renew, Reset, Reload, Relayout, Wait, Edge, AsTold>;

// Numbers of policies, limits and records that are too large are counted round, so any part of
// a history can be left out and the rest still makes sense.
struct History {
  TimePoint start{};
  Duration lease_ttl{0};
  std::vector<std::vector<Limit>> policies;  // each valid, at least one with at least one limit
  std::vector<Op> ops;
};

[[nodiscard]] std::string to_text(const Op& op);
[[nodiscard]] std::string to_text(const History& history);
// Throws std::runtime_error with the line that it cannot read. `#` starts a comment line.
[[nodiscard]] History parse_history(std::string_view text);

// For RapidCheck, which calls it by this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void showValue(const History& history, std::ostream& out);

}  // namespace stint::model
