#include "observe/metrics_series.h"

#include <charconv>
#include <cmath>
#include <new>

namespace stint::observe::detail {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::int64_t kSecond = 1'000'000;

void append_name(std::string& out, const std::string& name, std::string_view suffix,
                 const std::string& labels, std::string_view more = {}) {
  out += name;
  out += suffix;
  if (!labels.empty() || !more.empty()) {
    out += '{';
    out += labels;
    if (!labels.empty() && !more.empty()) out += ',';
    out += more;
    out += '}';
  }
  out += ' ';
}

// Exact, whatever the number of microseconds: 1.5, 12, 0.000001.
void append_seconds(std::string& out, std::uint64_t microseconds) {
  append_number(out, microseconds / kSecond);
  const std::uint64_t rest = microseconds % kSecond;
  if (rest == 0) return;
  std::string digits = std::to_string(kSecond + static_cast<std::int64_t>(rest)).substr(1);
  while (digits.ends_with('0')) digits.pop_back();
  out += '.';
  out += digits;
}

}  // namespace

StripedCells::~StripedCells() {
  for (const auto& stripe : stripes_) {
    ::operator delete(stripe.load(std::memory_order_acquire), std::align_val_t{kLine});
  }
}

StripedCells::Cell* StripedCells::make_stripe() noexcept {
  const std::size_t bytes = (size_ * sizeof(Cell) + kLine - 1) / kLine * kLine;
  void* memory = ::operator new(bytes, std::align_val_t{kLine});
  auto* cells = static_cast<Cell*>(memory);
  for (std::size_t i = 0; i < size_; ++i) new (cells + i) Cell(0);
  // Another thread of the same stripe may have been faster.
  Cell* there = nullptr;
  auto& stripe = stripes_[stripe_of_this_thread()];
  if (stripe.compare_exchange_strong(there, cells, std::memory_order_acq_rel)) return cells;
  ::operator delete(memory, std::align_val_t{kLine});
  return there;
}

std::uint64_t StripedCells::sum(std::size_t cell) const noexcept {
  std::uint64_t total = 0;
  for (const auto& stripe : stripes_) {
    if (const Cell* cells = stripe.load(std::memory_order_acquire)) {
      total += cells[cell].load(std::memory_order_relaxed);
    }
  }
  return total;
}

void CounterSeries::write(std::string& out, const std::string& name,
                          const std::string& labels) const {
  append_name(out, name, "", labels);
  append_number(out, cells.sum(0));
  out += '\n';
}

void GaugeSeries::write(std::string& out, const std::string& name,
                        const std::string& labels) const {
  append_name(out, name, "", labels);
  out += std::to_string(value.load(std::memory_order_relaxed));
  out += '\n';
}

void HistogramSeries::write(std::string& out, const std::string& name,
                            const std::string& labels) const {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i <= bounds.size(); ++i) {
    count += cells.sum(i);
    std::string le = "le=\"";
    if (i < bounds.size()) {
      append_seconds(le, static_cast<std::uint64_t>(bounds[i].count()));
    } else {
      le += "+Inf";
    }
    le += '"';
    append_name(out, name, "_bucket", labels, le);
    append_number(out, count);
    out += '\n';
  }
  append_name(out, name, "_sum", labels);
  append_seconds(out, cells.sum(sum_cell()));
  out += '\n';
  append_name(out, name, "_count", labels);
  append_number(out, count);
  out += '\n';
}

std::uint64_t WatchSeries::set(Append append) {
  const base::MutexLock lock(mutex_);
  append_ = std::move(append);
  return ++number_;
}

void WatchSeries::clear(std::uint64_t number) {
  const base::MutexLock lock(mutex_);
  if (number == number_) append_ = nullptr;
}

void WatchSeries::write(std::string& out, const std::string& name,
                        const std::string& labels) const {
  const base::MutexLock lock(mutex_);
  if (!append_) return;
  append_name(out, name, "", labels);
  append_(out);
  out += '\n';
}

void append_number(std::string& out, std::uint64_t number) { out += std::to_string(number); }

void append_number(std::string& out, double number) {
  if (std::isnan(number)) {
    out += "NaN";
  } else if (std::isinf(number)) {
    out += number > 0 ? "+Inf" : "-Inf";
  } else {
    std::array<char, 32> text;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
    out.append(text.data(), end);
  }
}

}  // namespace stint::observe::detail
