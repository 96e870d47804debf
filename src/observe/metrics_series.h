// What a series counts in: cells that threads add to without meeting each other.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "stint/time.h"

namespace stint::observe::detail {

inline constexpr std::size_t kStripes = 32;

// Threads are numbered as they come, so that up to kStripes of them never share a line. (A hash
// of the thread's id, as in base/stripe.h, puts two of eight into one stripe more often than not.)
[[nodiscard]] inline std::size_t stripe_of_this_thread() noexcept {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed) % kStripes;
  return mine;
}

// `size` numbers for each stripe; the numbers of a stripe have their own cache lines and are made
// when a thread first uses them, so that a series costs what its threads use.
// Thread rule: any thread.
class StripedCells {
 public:
  explicit StripedCells(std::size_t size) noexcept : size_(size) {}
  ~StripedCells();
  StripedCells(const StripedCells&) = delete;
  StripedCells& operator=(const StripedCells&) = delete;

  void add(std::size_t cell, std::uint64_t amount) noexcept {
    Cell* cells = stripes_[stripe_of_this_thread()].load(std::memory_order_acquire);
    if (cells == nullptr) [[unlikely]] {
      cells = make_stripe();
    }
    cells[cell].fetch_add(amount, std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t sum(std::size_t cell) const noexcept;

 private:
  using Cell = std::atomic<std::uint64_t>;

  [[nodiscard]] Cell* make_stripe() noexcept;

  const std::size_t size_;
  std::array<std::atomic<Cell*>, kStripes> stripes_{};
};

enum class Kind : std::uint8_t { counter, gauge, histogram };

// One series of any kind. It does not know its name: the family it is listed in does.
class Series {
 public:
  virtual ~Series() = default;

  // Writes the lines of the series. `labels`: `a="b",c="d"`, or empty.
  virtual void write(std::string& out, const std::string& name,
                     const std::string& labels) const = 0;
};

class CounterSeries final : public Series {
 public:
  StripedCells cells{1};
  void write(std::string& out, const std::string& name, const std::string& labels) const override;
};

class GaugeSeries final : public Series {
 public:
  std::atomic<std::int64_t> value{0};
  void write(std::string& out, const std::string& name, const std::string& labels) const override;
};

class HistogramSeries final : public Series {
 public:
  explicit HistogramSeries(std::vector<Duration> upper_bounds)
      : bounds(std::move(upper_bounds)), cells(bounds.size() + 2) {}

  [[nodiscard]] std::size_t sum_cell() const noexcept { return bounds.size() + 1; }

  const std::vector<Duration> bounds;
  StripedCells cells;  // one for each bound, one above them all, and the sum in microseconds
  void write(std::string& out, const std::string& name, const std::string& labels) const override;
};

class WatchSeries final : public Series {
 public:
  using Append = std::function<void(std::string& out)>;

  // Gives the number of this watch, for `clear`.
  std::uint64_t set(Append append);
  // Forgets what the watch set, unless a later one has taken its place.
  void clear(std::uint64_t number);
  void write(std::string& out, const std::string& name, const std::string& labels) const override;

 private:
  mutable base::Mutex mutex_;  // held while the function runs, so that it ends before `clear`
  Append append_ STINT_GUARDED_BY(mutex_);
  std::uint64_t number_ STINT_GUARDED_BY(mutex_) = 0;
};

void append_number(std::string& out, std::uint64_t number);
// "NaN", "+Inf" and "-Inf" as Prometheus writes them; otherwise the shortest exact decimal.
void append_number(std::string& out, double number);

}  // namespace stint::observe::detail
