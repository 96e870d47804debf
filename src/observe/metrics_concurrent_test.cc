#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "observe/log.h"
#include "observe/metrics.h"
#include "observe/metrics_series.h"

namespace stint::observe {
namespace {

using namespace std::chrono_literals;

// More than there are stripes, so that some share one.
constexpr int kThreads = 48;

void in_threads(auto work) {
  std::latch together(kThreads);
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&work, &together, i] {
      together.arrive_and_wait();
      work(i);
    });
  }
}

TEST(MetricsConcurrent, NoAdditionIsLostWhileSomebodyReads) {
  constexpr std::uint64_t kEach = 10'000;
  Metrics metrics;
  const Counter counter = metrics.counter("a_total", "A.");
  const Histogram histogram = metrics.histogram("b_seconds", "B.");
  const Gauge gauge = metrics.gauge("c", "C.");
  std::atomic<bool> stop = false;
  std::jthread reader([&] {
    std::uint64_t last = 0;
    while (!stop) {
      EXPECT_FALSE(metrics.text().empty());
      const std::uint64_t now = counter.value();
      EXPECT_GE(now, last);
      last = now;
    }
  });
  in_threads([&](int thread) {
    for (std::uint64_t i = 0; i < kEach; ++i) {
      counter.add();
      histogram.observe(i % 2 == 0 ? 1ms : 3s);
      gauge.add(thread % 2 == 0 ? 1 : -1);
    }
  });
  stop = true;
  reader.join();
  EXPECT_EQ(counter.value(), kThreads * kEach);
  EXPECT_EQ(histogram.count(), kThreads * kEach);
  EXPECT_EQ(gauge.value(), 0);
}

TEST(MetricsConcurrent, TwoThreadsOfOneStripe) {
  constexpr std::uint64_t kEach = 3'000'000;
  Metrics metrics;
  const Counter counter = metrics.counter("a_total", "A.");
  std::latch numbered(1);
  std::latch together(2);
  const auto count = [&] {
    together.arrive_and_wait();
    for (std::uint64_t i = 0; i < kEach; ++i) counter.add();
  };
  std::jthread first([&] {
    counter.add(0);  // gives the thread its number
    numbered.count_down();
    count();
  });
  numbered.wait();
  for (std::size_t i = 1; i < detail::kStripes; ++i) {
    std::jthread([&] { counter.add(0); }).join();
  }
  std::jthread second(count);
  first.join();
  second.join();
  EXPECT_EQ(counter.value(), 2 * kEach);
}

TEST(MetricsConcurrent, ReloadsWhileOthersCountAndRead) {
  Metrics metrics;
  const Counter stays = metrics.counter("a_total", "A.", {{"policy", "stays"}});
  in_threads([&](int thread) {
    for (int i = 0; i < 50; ++i) {
      const Counter same = metrics.counter("a_total", "A.", {{"policy", "stays"}});
      const Counter own =
          metrics.counter("a_total", "A.", {{"policy", "of " + std::to_string(i % 10)}});
      const Watch watch =
          metrics.watch_gauge("b", "B.", {{"thread", std::to_string(thread)}}, [i] { return i; });
      same.add();
      own.add();
      if (thread == 0) {
        EXPECT_FALSE(metrics.text().empty());
      }
    }
  });
  EXPECT_EQ(stays.value(), kThreads * 50U);
  EXPECT_EQ(metrics.series_count(), 1U);
}

TEST(MetricsConcurrent, AWatchIsNotReadAfterItsEnd) {
  Metrics metrics;
  std::atomic<bool> stop = false;
  std::jthread reader([&] {
    while (!stop) static_cast<void>(metrics.text());
  });
  for (int i = 0; i < 2'000; ++i) {
    auto value = std::make_unique<double>(i);  // freed right after the watch
    const Watch watch = metrics.watch_gauge("a", "A.", {}, [at = value.get()] { return *at; });
    static_cast<void>(watch);
  }
  stop = true;
}

TEST(OncePerConcurrent, OneOfAllIsAdmitted) {
  OncePer limiter(1min);
  std::atomic<int> admitted = 0;
  in_threads([&](int /*thread*/) {
    for (int i = 0; i < 1'000; ++i) {
      if (limiter.admit(10s)) ++admitted;
    }
  });
  EXPECT_EQ(admitted, 1);
}

}  // namespace
}  // namespace stint::observe
