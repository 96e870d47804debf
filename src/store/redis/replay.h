// What an answer of lua/decide.lua means for the admissions that asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "redis/reply.h"
#include "store/redis/plan.h"

namespace stint::store {

// The script says who was admitted, and from which state each bucket began; the numbers of every
// limit (remaining, reset, wait, what was charged where) follow by the same steps that the memory
// store takes. So the script computes nothing that does not decide.
struct Answer {
  enum class Kind : std::uint8_t {
    decided,
    late,      // it ran after not_after and changed nothing
    unusable,  // not what the script answers; the outcome is unknown
  };
  enum class Fate : std::uint8_t { admitted, refused, undecided };

  Kind kind = Kind::unusable;
  TimePoint now{};
  // Of plan.asked(), in its order. Undecided: a bucket's key holds something else; `why` says so.
  std::vector<Fate> admissions{};
  enum class Change : std::uint8_t { unreadable, done, moved };  // as decide.lua writes them
  std::vector<Change> changes{};
  std::string why{};
  bool fault = false;  // `why` is one: the bucket has not just moved to another server
  // Admissions of which the steps in this program and those in the script say different things.
  std::size_t disagreements = 0;
};

// Fills in the slots of the records' buckets that the plan asked about, and BucketSlot::charged
// and ::birth; the records' outcome is left to the caller, who may have asked elsewhere too.
[[nodiscard]] Answer replay(const Plan& plan, const redis::Value& reply);

}  // namespace stint::store
