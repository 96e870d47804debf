#include "observe/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace stint::observe {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

TEST(Metrics, TextOfEachKind) {
  Metrics metrics;
  const Counter counter = metrics.counter("stint_decisions_total", "Decisions.",
                                          {{"policy", "team"}, {"outcome", "admitted"}});
  const Gauge gauge = metrics.gauge("stint_leases", "Slots in use.");
  const Histogram histogram =
      metrics.histogram("stint_wait_seconds", "Waits.", {1ms, 1500ms}, {{"shard", "a"}});
  counter.add();
  counter.add(41);
  gauge.set(5);
  gauge.add(-8);
  histogram.observe(500us);
  histogram.observe(1ms);  // a bound belongs to its bucket
  histogram.observe(1001us);
  histogram.observe(2s);
  histogram.observe(-1s);

  EXPECT_EQ(counter.value(), 42U);
  EXPECT_EQ(gauge.value(), -3);
  EXPECT_EQ(histogram.count(), 5U);
  EXPECT_EQ(metrics.text(),
            "# HELP stint_decisions_total Decisions.\n"
            "# TYPE stint_decisions_total counter\n"
            "stint_decisions_total{policy=\"team\",outcome=\"admitted\"} 42\n"
            "# HELP stint_leases Slots in use.\n"
            "# TYPE stint_leases gauge\n"
            "stint_leases -3\n"
            "# HELP stint_wait_seconds Waits.\n"
            "# TYPE stint_wait_seconds histogram\n"
            "stint_wait_seconds_bucket{shard=\"a\",le=\"0.001\"} 3\n"
            "stint_wait_seconds_bucket{shard=\"a\",le=\"1.5\"} 4\n"
            "stint_wait_seconds_bucket{shard=\"a\",le=\"+Inf\"} 5\n"
            "stint_wait_seconds_sum{shard=\"a\"} 2.002501\n"
            "stint_wait_seconds_count{shard=\"a\"} 5\n");
}

TEST(Metrics, CountsBeyondTheIntegersOfADouble) {
  Metrics metrics;
  const Counter counter = metrics.counter("big_total", "");
  counter.add((std::uint64_t{1} << 53) + 1);
  EXPECT_THAT(metrics.text(), HasSubstr("big_total 9007199254740993\n"));
}

// The reference implementation of the text format, fed with the same names and numbers.
TEST(Metrics, SameTextAsPrometheusCpp) {
  const std::vector<std::string> values = {
      "plain", "back\\slash", "quo\"te", "line\nend", "caf\u00e9 \u26a1",
      "",      "{a=\"b\"}",   "tab\t",   "\\n",       "comma,brace}"};
  const std::string help = "Help.";  // of which prometheus-cpp 1.0 escapes nothing

  Metrics ours;
  std::vector<Counter> counters;
  std::vector<Histogram> histograms;
  prometheus::Registry theirs;
  auto& family = prometheus::BuildCounter().Name("a_total").Help(help).Register(theirs);
  auto& waits = prometheus::BuildHistogram().Name("b_seconds").Help("Waits.").Register(theirs);
  std::uint64_t amount = 1;
  for (const std::string& value : values) {
    counters.push_back(ours.counter("a_total", help, {{"name", value}}));
    counters.back().add(amount);
    family.Add({{"name", value}}).Increment(static_cast<double>(amount));
    histograms.push_back(ours.histogram("b_seconds", "Waits.", {5ms, 1s}, {{"name", value}}));
    histograms.back().observe(250ms);
    waits.Add({{"name", value}}, prometheus::Histogram::BucketBoundaries{0.005, 1}).Observe(0.25);
    amount += 7;
  }

  const auto lines = [](const std::string& text) {
    std::vector<std::string> out(1);
    for (const char c : text) {
      if (c == '\n') {
        out.emplace_back();
      } else {
        out.back() += c;
      }
    }
    return out;
  };
  const std::string expected = prometheus::TextSerializer().Serialize(theirs.Collect());
  EXPECT_THAT(lines(ours.text()), testing::UnorderedElementsAreArray(lines(expected)));
}

TEST(Metrics, HelpIsEscaped) {
  Metrics metrics;
  const Counter counter = metrics.counter("a_total", "A \\ and a\nline \"end\".");
  EXPECT_THAT(metrics.text(), HasSubstr("# HELP a_total A \\\\ and a\\nline \"end\".\n"));
}

TEST(Metrics, BytesThatAreNotUtf8AreReplaced) {
  Metrics metrics;
  const Counter counter = metrics.counter("a_total", "", {{"name", "x\xFFy\xC3"}});
  EXPECT_THAT(metrics.text(), HasSubstr("{name=\"x\uFFFDy\uFFFD\"}"));
}

TEST(Metrics, TheSameLabelsAreTheSameSeries) {
  Metrics metrics;
  const Counter one = metrics.counter("a_total", "A.", {{"policy", "p"}});
  const Counter same = metrics.counter("a_total", "A.", {{"policy", "p"}});
  const Counter other = metrics.counter("a_total", "A.", {{"policy", "q"}});
  one.add(2);
  same.add(3);
  EXPECT_EQ(one.value(), 5U);
  EXPECT_EQ(other.value(), 0U);
  EXPECT_EQ(metrics.series_count(), 2U);
}

TEST(Metrics, AReloadKeepsTotalsAndForgetsWhatIsGone) {
  Metrics metrics;
  struct Policies {
    std::vector<Counter> counters;
  };
  const auto make = [&](const std::vector<std::string>& names) {
    Policies policies;
    for (const std::string& name : names) {
      policies.counters.push_back(
          metrics.counter("stint_decisions_total", "Decisions.", {{"policy", name}}));
    }
    return policies;
  };

  Policies active = make({"stays", "goes"});
  active.counters[0].add(7);
  active.counters[1].add(9);
  {
    const Counter running = active.counters[1];  // of a request that outlives the reload
    active = make({"stays", "comes"});
    running.add(1);
    EXPECT_EQ(running.value(), 10U);
  }
  EXPECT_THAT(metrics.text(), HasSubstr("{policy=\"stays\"} 7\n"));
  EXPECT_THAT(metrics.text(), HasSubstr("{policy=\"comes\"} 0\n"));
  EXPECT_THAT(metrics.text(), Not(HasSubstr("goes")));

  for (int i = 0; i < 1'000; ++i) {
    active = make({"stays", "only in " + std::to_string(i)});
    EXPECT_EQ(metrics.series_count(), 2U);
    EXPECT_LE(metrics.entry_count("stint_decisions_total"), 16U);
  }
  EXPECT_EQ(active.counters[0].value(), 7U);
}

TEST(Metrics, ANameWithoutSeriesIsNotListed) {
  Metrics metrics;
  {
    const Counter gone = metrics.counter("a_total", "A.");
  }
  EXPECT_EQ(metrics.text(), "");
}

TEST(Metrics, HandlesMayOutliveTheRegistry) {
  Counter counter;
  {
    Metrics metrics;
    counter = metrics.counter("a_total", "A.");
  }
  counter.add(3);
  EXPECT_EQ(counter.value(), 3U);
}

TEST(Metrics, DefaultHandlesCountNowhere) {
  const Counter counter;
  const Gauge gauge;
  const Histogram histogram;
  counter.add();
  gauge.add(1);
  gauge.set(2);
  histogram.observe(1s);
  EXPECT_EQ(counter.value(), 0U);
  EXPECT_EQ(gauge.value(), 0);
  EXPECT_EQ(histogram.count(), 0U);
}

TEST(Metrics, MistakesOfTheProgramThrow) {
  Metrics metrics;
  const Counter counter = metrics.counter("a_total", "A.", {{"policy", "p"}});
  const Histogram histogram = metrics.histogram("a_seconds", "A.", {1ms});
  const auto again = [&](auto make) { EXPECT_THROW(static_cast<void>(make()), std::logic_error); };
  again([&] { return metrics.gauge("a_total", "A.", {{"policy", "p"}}); });
  again([&] { return metrics.counter("a_total", "B.", {{"policy", "p"}}); });
  again([&] { return metrics.counter("a_total", "A.", {{"model", "p"}}); });
  again([&] { return metrics.counter("a_total", "A."); });
  again(
      [&] { return metrics.watch_counter("a_total", "A.", {{"policy", "p"}}, [] { return 1; }); });
  again([&] { return metrics.histogram("a_seconds", "A.", {2ms}); });
  again([&] { return metrics.counter("", "A."); });
  again([&] { return metrics.counter("1a", "A."); });
  again([&] { return metrics.counter("a-b", "A."); });
  again([&] { return metrics.counter("b_total", "A.", {{"a:b", "p"}}); });
  again([&] { return metrics.counter("b_total", "A.", {{"__a", "p"}}); });
  again([&] { return metrics.counter("b_total", "A.", {{"a", "p"}, {"a", "q"}}); });
  again([&] { return metrics.histogram("b_seconds", "A.", {1ms}, {{"le", "p"}}); });
  again([&] { return metrics.histogram("b_seconds", "A.", {2ms, 1ms}); });
  again([&] { return metrics.histogram("b_seconds", "A.", {1ms, 1ms}); });
  EXPECT_EQ(metrics.series_count(), 2U);
}

TEST(Watch, IsReadAtEachScrapeUntilItIsDropped) {
  Metrics metrics;
  std::uint64_t count = 1;
  double level = 0.5;
  Watch watch = metrics.watch_counter("a_total", "A.", {}, [&] { return count; });
  {
    const Watch gauge = metrics.watch_gauge("b", "B.", {{"x", "y"}}, [&] { return level; });
    EXPECT_THAT(metrics.text(), HasSubstr("a_total 1\n"));
    EXPECT_THAT(metrics.text(), HasSubstr("b{x=\"y\"} 0.5\n"));
    count = 2;
    level = std::numeric_limits<double>::infinity();
    EXPECT_THAT(metrics.text(), HasSubstr("a_total 2\n"));
    EXPECT_THAT(metrics.text(), HasSubstr("b{x=\"y\"} +Inf\n"));
    level = std::nan("");
    EXPECT_THAT(metrics.text(), HasSubstr("b{x=\"y\"} NaN\n"));
  }
  EXPECT_THAT(metrics.text(), Not(HasSubstr("b{")));
  watch = Watch();
  EXPECT_EQ(metrics.series_count(), 0U);
}

TEST(Watch, ALaterOneTakesThePlaceOfAnEarlierOne) {
  Metrics metrics;
  Watch first = metrics.watch_counter("a_total", "A.", {}, [] { return std::uint64_t{1}; });
  const Watch second = metrics.watch_counter("a_total", "A.", {}, [] { return std::uint64_t{2}; });
  EXPECT_THAT(metrics.text(), HasSubstr("a_total 2\n"));
  first = Watch();
  EXPECT_THAT(metrics.text(), HasSubstr("a_total 2\n"));
}

TEST(Watch, IsNotReadAfterItsEndEvenInTheMiddleOfAScrape) {
  Metrics metrics;
  bool ended = false;
  std::optional<Watch> later = metrics.watch_gauge("b", "B.", {}, [&] {
    EXPECT_FALSE(ended);
    return 1.0;
  });
  const Watch first = metrics.watch_gauge("a", "A.", {}, [&] {
    later.reset();
    ended = true;
    return 0.5;
  });
  EXPECT_THAT(metrics.text(), HasSubstr("a 0.5\n"));
  EXPECT_TRUE(ended);
}

TEST(Metrics, BucketsAscend) {
  Metrics metrics;
  EXPECT_NO_THROW(static_cast<void>(metrics.histogram("a_seconds", "A.", request_buckets())));
  EXPECT_NO_THROW(static_cast<void>(metrics.histogram("b_seconds", "B.", store_buckets())));
}

}  // namespace
}  // namespace stint::observe
