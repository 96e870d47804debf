#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "stint/hash_ring.h"

namespace stint {
namespace {

HashRing ring_of(std::int64_t nodes) {
  HashRing ring = *HashRing::create();
  for (std::int64_t i = 0; i < nodes; ++i) ring.add_node("redis-" + std::to_string(i)).value();
  return ring;
}

std::vector<std::string> keys(std::size_t length) {
  std::vector<std::string> keys;
  for (int i = 0; i < 4096; ++i) {
    std::string key = "per-client:client_ip=10.0." + std::to_string(i / 256) + '.' +
                      std::to_string(i % 256) + ":path=/";
    key.resize(std::max(length, key.size()), 'x');
    keys.push_back(std::move(key));
  }
  return keys;
}

// Of one key; arguments: nodes, bytes of the key.
void route(benchmark::State& state) {
  const HashRing ring = ring_of(state.range(0));
  const auto all = keys(static_cast<std::size_t>(state.range(1)));
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(ring.node_index(all[next]));
    next = (next + 1) % all.size();
  }
}
BENCHMARK(route)->ArgNames({"nodes", "bytes"})->ArgsProduct({{1, 3, 5, 16, 100}, {40, 120}});
BENCHMARK(route)->ArgNames({"nodes", "bytes"})->Args({5, 40})->Threads(2);

// A ring of so many nodes from its names.
void build(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(ring_of(state.range(0)));
}
BENCHMARK(build)->Arg(3)->Arg(16)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stint
