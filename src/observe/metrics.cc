#include "observe/metrics.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "base/mutex.h"
#include "base/utf8.h"
#include "observe/metrics_series.h"

namespace stint::observe {
namespace {

using detail::Kind;

bool is_name(std::string_view text, bool colons) {
  const auto letter = [colons](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (colons && c == ':');
  };
  return !text.empty() && letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

// The text format's escapes: of help a backslash and a line end, of a label's value quotes too.
void append_escaped(std::string& out, std::string_view text, bool quotes) {
  while (!text.empty()) {
    const std::size_t length = base::utf8_character(text);
    const char c = text.front();
    if (length == 0) {
      out += base::kReplacement;
    } else if (c == '\\' || (quotes && c == '"')) {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
}

std::string rendered(Labels labels) {
  std::string out;
  for (const Label& label : labels) {
    if (!out.empty()) out += ',';
    out += label.name;
    out += "=\"";
    append_escaped(out, label.value, true);
    out += '"';
  }
  return out;
}

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::counter:
      return "counter";
    case Kind::gauge:
      return "gauge";
    case Kind::histogram:
      return "histogram";
  }
  return "untyped";
}

[[noreturn]] void mistake(std::string_view name, std::string_view text) {
  throw std::logic_error("metric " + std::string(name) + ": " + std::string(text));
}

// All series of one name.
struct Family {
  Kind kind{};
  std::string help;
  std::vector<std::string> label_names;
  std::vector<Duration> bounds;
  std::map<std::string, std::weak_ptr<detail::Series>> series;  // by their labels
  std::size_t prune_at = 16;

  // Keeps what nobody holds any more below what is alive, at constant cost per registration.
  void prune_if_large() {
    if (series.size() < prune_at) return;
    std::erase_if(series, [](const auto& entry) { return entry.second.expired(); });
    prune_at = std::max<std::size_t>(16, 2 * series.size());
  }
};

}  // namespace

struct Metrics::Impl {
  mutable base::Mutex mutex;
  std::map<std::string, Family, std::less<>> families STINT_GUARDED_BY(mutex);

  Family& family(std::string_view name, std::string_view help, Kind kind, Labels labels,
                 const std::vector<Duration>& bounds) STINT_REQUIRES(mutex) {
    std::vector<std::string> label_names;
    for (const Label& label : labels) {
      const bool reserved = label.name.starts_with("__") ||
                            (kind == Kind::histogram && label.name == "le") ||
                            std::ranges::count(label_names, label.name) > 0;
      if (reserved || !is_name(label.name, false)) mistake(name, "malformed label name");
      label_names.emplace_back(label.name);
    }
    auto found = families.find(name);
    if (found == families.end()) {
      if (!is_name(name, true)) mistake(name, "malformed name");
      if (!std::ranges::is_sorted(bounds, std::less_equal<>{}) ||
          (!bounds.empty() && bounds.front() <= Duration{0})) {
        mistake(name, "bounds must be above 0 and ascend");
      }
      found = families
                  .emplace(std::string(name),
                           Family{kind, std::string(help), std::move(label_names), bounds, {}})
                  .first;
      return found->second;
    }
    Family& family = found->second;
    if (family.kind != kind) mistake(name, "registered before as another kind");
    if (family.help != help) mistake(name, "registered before with another help");
    if (family.label_names != label_names) mistake(name, "registered before with other labels");
    if (family.bounds != bounds) mistake(name, "registered before with other bounds");
    return family;
  }

  // The series of these labels: the one that is held, or a new one.
  template <class S>
  std::shared_ptr<S> series(std::string_view name, std::string_view help, Kind kind, Labels labels,
                            auto make, const std::vector<Duration>& bounds = {}) {
    const base::MutexLock lock(mutex);
    Family& in = family(name, help, kind, labels, bounds);
    in.prune_if_large();
    std::weak_ptr<detail::Series>& entry = in.series[rendered(labels)];
    if (const std::shared_ptr<detail::Series> there = entry.lock()) {
      auto same = std::dynamic_pointer_cast<S>(there);
      if (same == nullptr) mistake(name, "both counted here and watched");
      return same;
    }
    std::shared_ptr<S> made = make();
    entry = made;
    return made;
  }

  Watch watch(std::string_view name, std::string_view help, Kind kind, Labels labels,
              detail::WatchSeries::Append append) {
    auto watched = series<detail::WatchSeries>(
        name, help, kind, labels, [] { return std::make_shared<detail::WatchSeries>(); });
    const std::uint64_t number = watched->set(std::move(append));
    return {std::move(watched), number};
  }
};

void Counter::add(std::uint64_t amount) const noexcept {
  if (series_ != nullptr) series_->cells.add(0, amount);
}

std::uint64_t Counter::value() const noexcept {
  return series_ == nullptr ? 0 : series_->cells.sum(0);
}

void Gauge::set(std::int64_t value) const noexcept {
  if (series_ != nullptr) series_->value.store(value, std::memory_order_relaxed);
}

void Gauge::add(std::int64_t amount) const noexcept {
  if (series_ != nullptr) series_->value.fetch_add(amount, std::memory_order_relaxed);
}

std::int64_t Gauge::value() const noexcept {
  return series_ == nullptr ? 0 : series_->value.load(std::memory_order_relaxed);
}

void Histogram::observe(Duration duration) const noexcept {
  if (series_ == nullptr) return;
  const auto bound = std::ranges::lower_bound(series_->bounds, duration);
  series_->cells.add(static_cast<std::size_t>(bound - series_->bounds.begin()), 1);
  const Duration::rep microseconds = std::max<Duration::rep>(duration.count(), 0);
  series_->cells.add(series_->sum_cell(), static_cast<std::uint64_t>(microseconds));
}

std::uint64_t Histogram::count() const noexcept {
  if (series_ == nullptr) return 0;
  std::uint64_t count = 0;
  for (std::size_t i = 0; i <= series_->bounds.size(); ++i) count += series_->cells.sum(i);
  return count;
}

Watch::Watch(Watch&& other) noexcept : series_(std::move(other.series_)), number_(other.number_) {}

Watch& Watch::operator=(Watch&& other) noexcept {
  std::swap(series_, other.series_);
  std::swap(number_, other.number_);
  return *this;
}

Watch::~Watch() {
  if (series_ != nullptr) series_->clear(number_);
}

const std::vector<Duration>& request_buckets() {
  using namespace std::chrono_literals;
  static const std::vector<Duration> kBounds{1ms,   2ms, 5ms, 10ms, 20ms, 50ms, 100ms, 200ms,
                                             500ms, 1s,  2s,  5s,   10s,  20s,  60s};
  return kBounds;
}

const std::vector<Duration>& store_buckets() {
  using namespace std::chrono_literals;
  static const std::vector<Duration> kBounds{50us, 100us, 200us, 500us, 1ms,   2ms, 5ms,
                                             10ms, 20ms,  50ms,  100ms, 500ms, 1s};
  return kBounds;
}

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

Counter Metrics::counter(std::string_view name, std::string_view help, Labels labels) {
  return Counter(impl_->series<detail::CounterSeries>(
      name, help, Kind::counter, labels, [] { return std::make_shared<detail::CounterSeries>(); }));
}

Gauge Metrics::gauge(std::string_view name, std::string_view help, Labels labels) {
  return Gauge(impl_->series<detail::GaugeSeries>(
      name, help, Kind::gauge, labels, [] { return std::make_shared<detail::GaugeSeries>(); }));
}

Histogram Metrics::histogram(std::string_view name, std::string_view help,
                             const std::vector<Duration>& bounds, Labels labels) {
  return Histogram(impl_->series<detail::HistogramSeries>(
      name, help, Kind::histogram, labels,
      [&] { return std::make_shared<detail::HistogramSeries>(bounds); }, bounds));
}

Watch Metrics::watch_counter(std::string_view name, std::string_view help, Labels labels,
                             std::function<std::uint64_t()> read) {
  return impl_->watch(
      name, help, Kind::counter, labels,
      [read = std::move(read)](std::string& out) { detail::append_number(out, read()); });
}

Watch Metrics::watch_gauge(std::string_view name, std::string_view help, Labels labels,
                           std::function<double()> read) {
  return impl_->watch(name, help, Kind::gauge, labels, [read = std::move(read)](std::string& out) {
    detail::append_number(out, read());
  });
}

std::string Metrics::text() const {
  struct Listed {
    std::string name;
    std::string head;
    std::vector<std::pair<std::string, std::shared_ptr<detail::Series>>> series;
  };
  // Numbers are read without the lock: a watched one may take its time.
  std::vector<Listed> listed;
  {
    const base::MutexLock lock(impl_->mutex);
    for (const auto& [name, family] : impl_->families) {
      Listed entry{.name = name, .head = "# HELP " + name + ' ', .series = {}};
      append_escaped(entry.head, family.help, false);
      entry.head += "\n# TYPE " + name + ' ';
      entry.head += to_string(family.kind);
      entry.head += '\n';
      for (const auto& [labels, series] : family.series) {
        if (auto held = series.lock()) entry.series.emplace_back(labels, std::move(held));
      }
      if (!entry.series.empty()) listed.push_back(std::move(entry));
    }
  }
  std::string out;
  for (const Listed& entry : listed) {
    out += entry.head;
    for (const auto& [labels, series] : entry.series) series->write(out, entry.name, labels);
  }
  return out;
}

std::string_view Metrics::content_type() noexcept {
  return "text/plain; version=0.0.4; charset=utf-8";
}

std::size_t Metrics::series_count() const {
  const base::MutexLock lock(impl_->mutex);
  std::size_t count = 0;
  for (const auto& [name, family] : impl_->families) {
    count += static_cast<std::size_t>(std::ranges::count_if(
        family.series, [](const auto& entry) { return !entry.second.expired(); }));
  }
  return count;
}

std::size_t Metrics::entry_count(std::string_view name) const {
  const base::MutexLock lock(impl_->mutex);
  const auto found = impl_->families.find(name);
  return found == impl_->families.end() ? 0 : found->second.series.size();
}

}  // namespace stint::observe
