// Counters, gauges and histograms, and their text for Prometheus.
//
// The text is written here and not by prometheus-cpp: its serializer wants all series copied into
// objects of its own, counts in doubles, and leaves line ends in a help text as they are. A test
// compares the two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stint/time.h"

namespace stint::observe {

// A series lives as long as somebody holds a handle of it: asking again for the same name and
// labels gives the same series with its total, and a series that nobody holds any more is gone
// from the text and from memory. So a configuration that holds the handles of its policies takes
// over the totals of the one before it, if it is built before that one is dropped, and any number
// of reloads leaves no more series than policies.
// Handles are cheap to move, not to copy; copies count into the same series. A default-constructed
// one counts nowhere. Thread rule: any thread.

namespace detail {
class CounterSeries;
class GaugeSeries;
class HistogramSeries;
class WatchSeries;
}  // namespace detail

class Counter {
 public:
  Counter() = default;
  // No lock; threads have cache lines of their own. A few nanoseconds.
  void add(std::uint64_t amount = 1) const noexcept;
  // Other threads' additions under way may be missing.
  [[nodiscard]] std::uint64_t value() const noexcept;

 private:
  friend class Metrics;
  explicit Counter(std::shared_ptr<detail::CounterSeries> series) noexcept
      : series_(std::move(series)) {}
  std::shared_ptr<detail::CounterSeries> series_;
};

// One number for all threads: for what changes rarely, or is set at scrape time.
class Gauge {
 public:
  Gauge() = default;
  void set(std::int64_t value) const noexcept;
  void add(std::int64_t amount) const noexcept;
  [[nodiscard]] std::int64_t value() const noexcept;

 private:
  friend class Metrics;
  explicit Gauge(std::shared_ptr<detail::GaugeSeries> series) noexcept
      : series_(std::move(series)) {}
  std::shared_ptr<detail::GaugeSeries> series_;
};

// Durations; in the text in seconds, so its name ends in `_seconds`.
class Histogram {
 public:
  Histogram() = default;
  // As Counter::add, twice. A negative duration counts as 0.
  void observe(Duration duration) const noexcept;
  [[nodiscard]] std::uint64_t count() const noexcept;

 private:
  friend class Metrics;
  explicit Histogram(std::shared_ptr<detail::HistogramSeries> series) noexcept
      : series_(std::move(series)) {}
  std::shared_ptr<detail::HistogramSeries> series_;
};

// A number that is asked for at each scrape, until this is destroyed.
class Watch {
 public:
  Watch() = default;
  Watch(Watch&& other) noexcept;
  Watch& operator=(Watch&& other) noexcept;
  ~Watch();

 private:
  friend class Metrics;
  Watch(std::shared_ptr<detail::WatchSeries> series, std::uint64_t number) noexcept
      : series_(std::move(series)), number_(number) {}
  std::shared_ptr<detail::WatchSeries> series_;
  std::uint64_t number_ = 0;
};

struct Label {
  std::string_view name;
  std::string_view value;  // any text, from the configuration: never from a request
};
using Labels = std::initializer_list<Label>;

// From 1 ms to 60 s.
[[nodiscard]] const std::vector<Duration>& request_buckets();
// From 50 us to 1 s.
[[nodiscard]] const std::vector<Duration>& store_buckets();

// The metrics of one stint. Names follow Prometheus: "stint_decisions_total". All series of a
// name have the same kind, help and label names in the same order; another one, or a malformed
// name, throws std::logic_error: a mistake in the program.
// Thread rule: any thread. Handles may outlive it.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  [[nodiscard]] Counter counter(std::string_view name, std::string_view help, Labels labels = {});
  [[nodiscard]] Gauge gauge(std::string_view name, std::string_view help, Labels labels = {});
  // `bounds`: upper bounds, included, ascending; one without bound is added.
  [[nodiscard]] Histogram histogram(std::string_view name, std::string_view help,
                                    const std::vector<Duration>& bounds = request_buckets(),
                                    Labels labels = {});

  // For what is counted elsewhere, such as LimiterStats. `read` is called by `text`, on its
  // thread; it must be quick, must not throw and must not use this object, and is not called any
  // more when the destructor of the Watch has returned. A second watch of the same name and
  // labels takes the place of the first.
  [[nodiscard]] Watch watch_counter(std::string_view name, std::string_view help, Labels labels,
                                    std::function<std::uint64_t()> read);
  [[nodiscard]] Watch watch_gauge(std::string_view name, std::string_view help, Labels labels,
                                  std::function<double()> read);

  // All series in the text format 0.0.4, names and labels sorted.
  [[nodiscard]] std::string text() const;
  // The Content-Type of `text`.
  [[nodiscard]] static std::string_view content_type() noexcept;

  [[nodiscard]] std::size_t series_count() const;
  // Entries of a name for series that are alive, or gone and not yet cleared away: at most 16, or
  // twice the series that were alive at once.
  [[nodiscard]] std::size_t entry_count(std::string_view name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stint::observe
