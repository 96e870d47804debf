// Runs a history on several stores at once and compares them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "store/rate_store.h"
#include "tests/model/history.h"

namespace stint::model {

enum class Compared {
  // The reference, a memory store that keeps all it can, and one that frees spent buckets.
  all,
  // Without the last one: for histories in which time steps back, where a bucket that was freed
  // as spent would not have been spent any more. With logs or leases without memory stores: they
  // drop what has expired.
  that_keep,
};

// A store that is not made by the run: it must be empty, and decide by the time that it is told.
// It may answer later, on another thread.
struct Further {
  std::string name;
  store::RateStore* store = nullptr;
  std::function<void(TimePoint)> set_time;
};

// The first disagreement with the reference as text, with what led to it; empty: none. Compared
// are the answers to every call, and in the end what a listing shows.
[[nodiscard]] std::string run(const History& history, Compared compared,
                              const std::vector<Further>& further = {});

}  // namespace stint::model
