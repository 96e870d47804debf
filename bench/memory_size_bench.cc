// Bytes of memory for each bucket beside the text of its key, as the allocator counts them.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <string>

#include "bench/records.h"

namespace stint::bench {
namespace {

// In use, allocated by mmap included; what malloc adds to each block counts.
std::size_t allocated() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

void bytes_per_bucket(benchmark::State& state, const std::vector<Limit>& limit_list) {
  constexpr int kBuckets = 1'000'000;
  const auto limits = make_limits(limit_list);
  for (auto _ : state) {
    const std::size_t before = allocated();
    std::size_t text = 0;
    const auto store = make_store();
    for (int i = 0; i < kBuckets; ++i) {
      const std::string key = "key-limit:api_key=" + std::to_string(1'000'000'000 + i);
      text += key.size();
      store::AdmissionRecord record = make_record(key, limits);
      store->acquire(record);
    }
    const auto bytes = static_cast<double>(allocated() - before - text);
    state.counters["bytes_per_bucket"] = bytes / kBuckets;
    if (store->stats().buckets != kBuckets) state.SkipWithError("buckets are missing");
  }
}

void one_fixed_window(benchmark::State& state) {
  bytes_per_bucket(state, {requests_per(std::chrono::days{1}, 1'000'000)});
}
void four_sliding_windows(benchmark::State& state) {
  using namespace std::chrono_literals;
  bytes_per_bucket(state, {requests_per(3600s, 1000, Algorithm::sliding_window),
                           requests_per(86400s, 1000, Algorithm::sliding_window),
                           requests_per(7 * 86400s, 1000, Algorithm::sliding_window),
                           requests_per(30 * 86400s, 1000, Algorithm::sliding_window)});
}
BENCHMARK(one_fixed_window)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(four_sliding_windows)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stint::bench
