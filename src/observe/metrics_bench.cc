#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "observe/metrics.h"

namespace stint::observe {
namespace {

using namespace std::chrono_literals;

Metrics& metrics() {
  static Metrics metrics;  // shared by the threads of a benchmark
  return metrics;
}

void counter_add(benchmark::State& state) {
  const Counter counter = metrics().counter("a_total", "A.");
  for (auto _ : state) counter.add();
}
BENCHMARK(counter_add)->ThreadRange(1, 2);

void histogram_observe(benchmark::State& state) {
  const Histogram histogram = metrics().histogram("b_seconds", "B.");
  for (auto _ : state) histogram.observe(7ms);
}
BENCHMARK(histogram_observe)->ThreadRange(1, 2);

void text_of_1000_series(benchmark::State& state) {
  Metrics many;
  std::vector<Counter> counters;
  for (int i = 0; i < 1'000; ++i) {
    counters.push_back(many.counter("a_total", "A.", {{"policy", std::to_string(i)}}));
    counters.back().add();
  }
  for (auto _ : state) benchmark::DoNotOptimize(many.text());
}
BENCHMARK(text_of_1000_series);

}  // namespace
}  // namespace stint::observe
