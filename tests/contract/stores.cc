// The stores that need nothing but this process: the memory store, and the reference it is
// compared with.
#include <atomic>
#include <memory>
#include <utility>

#include "store/memory/memory_store.h"
#include "tests/contract/store_contract.h"
#include "tests/model/reference_store.h"

namespace stint::store {
namespace {

// A time that stands where it is put. Shared by the store, which owns a TimeSource, and the test.
using SharedTime = std::shared_ptr<std::atomic<TimePoint>>;

class SetTime final : public TimeSource {
 public:
  explicit SetTime(SharedTime time) : time_(std::move(time)) {}
  [[nodiscard]] TimePoint now() noexcept override { return time_->load(); }

 private:
  SharedTime time_;
};

class LocalStore final : public TestedStore {
 public:
  LocalStore(SharedTime time, std::unique_ptr<RateStore> store)
      : time_(std::move(time)), store_(std::move(store)) {}
  [[nodiscard]] RateStore& store() override { return *store_; }
  void set_time(TimePoint now) override { time_->store(now); }

 private:
  SharedTime time_;
  std::unique_ptr<RateStore> store_;
};

std::unique_ptr<TestedStore> make_memory(TimePoint start, std::size_t expire_per_call) {
  auto time = std::make_shared<std::atomic<TimePoint>>(start);
  MemoryStoreOptions options;
  options.expire_per_call = expire_per_call;
  options.hash_seed = 20'260'101;
  auto store = std::make_unique<MemoryStore>(options, std::make_unique<SetTime>(time));
  return std::make_unique<LocalStore>(std::move(time), std::move(store));
}

std::unique_ptr<TestedStore> make_reference(TimePoint start) {
  auto time = std::make_shared<std::atomic<TimePoint>>(start);
  auto store = std::make_unique<model::ReferenceStore>([time] { return time->load(); });
  return std::make_unique<LocalStore>(std::move(time), std::move(store));
}

}  // namespace

std::vector<StoreFactory> tested_stores() {
  return {
      {"Memory", [](TimePoint start) { return make_memory(start, 4); }},
      {"MemoryThatKeepsAll", [](TimePoint start) { return make_memory(start, 0); }},
      {"Reference", make_reference},
  };
}

}  // namespace stint::store
