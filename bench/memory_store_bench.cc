// The memory store by itself: one acquire of one bucket that is there already.
#include <benchmark/benchmark.h>

#include <string>

#include "bench/records.h"

namespace stint::bench {
namespace {

using store::AdmissionRecord;
using store::MemoryStore;

void acquire_again(benchmark::State& state, MemoryStore& store, const std::string& key,
                   const limit::LimitSetPtr& limits) {
  AdmissionRecord record = make_record(key, limits);
  for (auto _ : state) {
    store.acquire(record);
    benchmark::DoNotOptimize(record.outcome);
  }
  if (record.outcome != Outcome::admitted) state.SkipWithError("refused");
  state.SetItemsProcessed(state.iterations());
}

void warm_bucket(benchmark::State& state, Algorithm algorithm, std::size_t count) {
  const auto store = make_store();
  std::vector<Limit> limits = four_limits(algorithm);
  limits.resize(count);
  acquire_again(state, *store, "key-limit:api_key=0123456789abcdef", make_limits(limits));
}

void fixed_window_1(benchmark::State& state) { warm_bucket(state, Algorithm::fixed_window, 1); }
void fixed_window_4(benchmark::State& state) { warm_bucket(state, Algorithm::fixed_window, 4); }
void sliding_window_4(benchmark::State& state) { warm_bucket(state, Algorithm::sliding_window, 4); }
void token_bucket_4(benchmark::State& state) { warm_bucket(state, Algorithm::token_bucket, 4); }
BENCHMARK(fixed_window_1);
BENCHMARK(fixed_window_4);
BENCHMARK(sliding_window_4);
BENCHMARK(token_bucket_4);

// What one read of the store's clock costs of that.
void store_clock(benchmark::State& state) {
  store::ForwardClock clock(system_clock(), nullptr);
  for (auto _ : state) benchmark::DoNotOptimize(clock.now());
}
BENCHMARK(store_clock);

// Compare items_per_second of one and of two threads.
void different_buckets(benchmark::State& state) {
  static std::unique_ptr<MemoryStore> store;
  if (state.thread_index() == 0) store = make_store();
  static const auto limits = make_limits(four_limits(Algorithm::fixed_window));
  for (auto _ : state) {
    // The first round waits for all threads; only after it the store is there for everybody.
    const std::string key = "key-limit:api_key=thread-" + std::to_string(state.thread_index());
    AdmissionRecord record = make_record(key, limits);
    for (int i = 0; i < 1000; ++i) {
      store->acquire(record);
      benchmark::DoNotOptimize(record.outcome);
    }
  }
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(different_buckets)->Threads(1)->Threads(2)->UseRealTime();

void the_same_bucket(benchmark::State& state) {
  static std::unique_ptr<MemoryStore> store;
  if (state.thread_index() == 0) store = make_store();
  static const auto limits = make_limits(four_limits(Algorithm::fixed_window));
  for (auto _ : state) {
    const std::string key = "key-limit:api_key=everybody";
    AdmissionRecord record = make_record(key, limits);
    for (int i = 0; i < 1000; ++i) {
      store->acquire(record);
      benchmark::DoNotOptimize(record.outcome);
    }
  }
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(the_same_bucket)->Threads(1)->Threads(2)->UseRealTime();

// Two buckets, of a key and of its team, in one admission.
void two_buckets(benchmark::State& state) {
  const auto store = make_store();
  const auto limits = make_limits({requests_per(std::chrono::minutes{1}, 1'000'000'000)});
  AdmissionRecord record = make_record("keys:api_key=0123456789abcdef", limits);
  store::BucketSlot team = record.buckets[0];
  team.key = team.text = "teams:team=red";
  team.first_slot = 1;
  record.buckets.push_back(team);
  record.slots.push_back(record.slots[0]);
  for (auto _ : state) {
    store->acquire(record);
    benchmark::DoNotOptimize(record.outcome);
  }
}
BENCHMARK(two_buckets);

// New keys only, at the cap: each makes another bucket go.
void flood_at_the_cap(benchmark::State& state) {
  const auto store = make_store(100'000);
  const auto limits = make_limits({requests_per(std::chrono::days{1}, 1'000'000'000)});
  std::string key;
  std::uint64_t number = 0;
  const auto flood = [&] {
    key = "flood:client_ip=" + std::to_string(number++);
    AdmissionRecord record = make_record(key, limits);
    store->acquire(record);
  };
  for (int i = 0; i < 200'000; ++i) flood();
  for (auto _ : state) flood();
}
BENCHMARK(flood_at_the_cap);

}  // namespace
}  // namespace stint::bench
