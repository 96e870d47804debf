// Admission records for benchmarks of a store, without the limiter above it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/memory/forward_clock.h"
#include "store/memory/memory_store.h"

namespace stint::bench {

inline std::unique_ptr<store::MemoryStore> make_store(std::size_t max_buckets = 2'000'000) {
  return std::make_unique<store::MemoryStore>(
      store::MemoryStoreOptions{.max_buckets = max_buckets, .hash_seed = 42, .on_warning = {}},
      std::make_unique<store::ForwardClock>(system_clock(), nullptr));
}

inline limit::LimitSetPtr make_limits(const std::vector<Limit>& limits) {
  return *limit::LimitSet::create(limits);
}

// Four limits of one bucket, as a careful operator sets them. Large enough never to refuse.
inline std::vector<Limit> four_limits(Algorithm algorithm) {
  using namespace std::chrono_literals;
  constexpr std::int64_t kPlenty = 1'000'000'000;
  return {requests_per(1s, kPlenty, algorithm), requests_per(60s, kPlenty, algorithm),
          requests_per(3600s, kPlenty, algorithm), requests_per(86400s, kPlenty, algorithm)};
}

// One request to one bucket. `key` must outlive the record.
inline store::AdmissionRecord make_record(const std::string& key, limit::LimitSetPtr limits) {
  store::AdmissionRecord record;
  record.lease_ttl = std::chrono::seconds{30};
  record.slots.resize(limits->size());
  for (store::LimitSlot& slot : record.slots) slot.need = slot.charge = 1;
  record.buckets.push_back({.key = key,
                            .text = key,
                            .policy = "bench",
                            .limits = std::move(limits),
                            .first_slot = 0,
                            .shadow = false,
                            .charged = false,
                            .overflow = false});
  return record;
}

}  // namespace stint::bench
