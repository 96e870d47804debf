// Runs a history on several stores at once and compares them.
#pragma once

#include <string>

#include "tests/model/history.h"

namespace stint::model {

enum class Compared {
  // The reference, a memory store that keeps all it can, and one that frees spent buckets.
  all,
  // Without the last one: for histories in which time steps back, where a bucket that was freed
  // as spent would not have been spent any more.
  that_keep,
};

// The first disagreement with the reference as text, with what led to it; empty: none. Compared
// are the answers to every call, and in the end what a listing shows.
[[nodiscard]] std::string run(const History& history, Compared compared);

}  // namespace stint::model
