// Buckets in this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "store/rate_store.h"
#include "store/time_source.h"

namespace stint::store {

struct MemoryStoreOptions {
  // See LimiterOptions::max_buckets. Beside them one shared bucket for each policy may exist.
  std::size_t max_buckets = 1'000'000;
  // How many buckets whose time has come are looked at in each call of acquire. 0: none below
  // the cap, so that nothing is freed until then; at most 64. Costs a few ns each.
  std::size_t expire_per_call = 4;
  // Seeds the hash of the keys; must be unknown to whoever chooses keys.
  std::uint64_t hash_seed = 0;
  // See LimiterOptions::on_warning.
  std::function<void(std::string_view)> on_warning{};
};

// Striped: a call locks the stripes of its buckets, in order, so an admission over several
// buckets is one step to everybody. Freeing memory looks at no more than 64 entries a call.
// Thread rule: as RateStore; `done` is always called before the call returns, without a lock held.
class MemoryStore final : public RateStore {
 public:
  MemoryStore(MemoryStoreOptions options, std::unique_ptr<TimeSource> time);
  ~MemoryStore() override;

  void acquire(AdmissionRecord& record, Done done) override;
  void peek(AdmissionRecord& record, Done done) override;
  void settle(AdmissionRecord& record, Settled done) override;
  void renew(std::span<AdmissionRecord* const> records, Done done) override;
  void reset(std::string_view pattern, std::uint64_t cursor, ResetPage& page, Done done) override;
  void list(std::string_view pattern, std::uint64_t cursor, std::size_t page_size, BucketPage& page,
            Done done) override;
  [[nodiscard]] StoreStats stats() const override;

  // The same without a callback.
  void acquire(AdmissionRecord& record);
  void peek(AdmissionRecord& record);
  void settle(AdmissionRecord& record);
  void renew(std::span<AdmissionRecord* const> records);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stint::store
