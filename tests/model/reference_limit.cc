#include "tests/model/reference_limit.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace stint::model {
namespace {

using base::Id;
using limit::Charge;
using limit::Check;
using limit::Reading;
using limit::Spec;

__extension__ using Wide = __int128;

constexpr Duration kSlotHint = std::chrono::seconds{1};
constexpr Duration kAnyTtl = std::chrono::days{366};

Wide floor_div(Wide a, Wide b) { return a / b - (a % b < 0 ? 1 : 0); }
Wide ceil_div(Wide a, Wide b) { return -floor_div(-a, b); }

// fixed_window and sliding_window: what was charged in each aligned window. A fixed window looks
// at the window of now, a sliding one also at the one before.
class Windows final : public ReferenceLimit {
 public:
  explicit Windows(const Spec& spec) : ReferenceLimit(spec) {}
  [[nodiscard]] std::unique_ptr<ReferenceLimit> copy() const override {
    return std::make_unique<Windows>(*this);
  }

  void advance(TimePoint now, Duration /*lease_ttl*/) override {
    now_ = now;
    const std::int64_t us = now.time_since_epoch().count();
    const Wide number = floor_div(us, spec_.window().count());
    window_ = TimePoint{spec_.window() * static_cast<std::int64_t>(number)};
    // The clock was set back: all windows go back with it, the newest into the window of now,
    // so that nothing is given away.
    const Duration ahead = counts_.empty() ? Duration{0} : counts_.rbegin()->first - window_;
    if (ahead > Duration{0}) {
      std::map<TimePoint, std::int64_t> moved;
      for (const auto& [start, count] : counts_) moved[start - ahead] = count;
      counts_ = std::move(moved);
    }
    const TimePoint oldest = sliding() ? window_ - spec_.window() : window_;
    std::erase_if(counts_, [&](const auto& entry) { return entry.first < oldest; });
    counts_.try_emplace(window_, 0);
    for (auto& [start, count] : counts_) count = std::min(count, spec_.max_level);
  }

  [[nodiscard]] bool ahead(TimePoint now, Duration /*lease_ttl*/) const override {
    return !counts_.empty() && counts_.rbegin()->first > now;
  }
  [[nodiscard]] bool whole() const override {
    return std::ranges::all_of(counts_, [](const auto& entry) { return entry.second == 0; });
  }
  [[nodiscard]] std::int64_t value() const override { return count_of(window_); }

  Charge charge(std::int64_t amount, const Id& /*id*/, TimePoint /*lease_end*/) override {
    add(amount);
    return {amount, window_};
  }

  void settle(const Charge& charged, std::int64_t actual, const Id& /*id*/) override {
    if (actual > charged.amount) {
      add(actual - charged.amount);
    } else if (const auto found = counts_.find(charged.window); found != counts_.end()) {
      found->second = std::max<std::int64_t>(found->second - (charged.amount - actual), 0);
    }
  }

 protected:
  [[nodiscard]] bool fits(std::int64_t need) const override { return used() + need <= spec_.quota; }
  [[nodiscard]] std::int64_t remaining() const override {
    return static_cast<std::int64_t>(std::max<Wide>(spec_.quota - used(), 0));
  }
  [[nodiscard]] TimePoint horizon() const override { return window_ + 2 * spec_.window(); }

 private:
  [[nodiscard]] bool sliding() const { return spec_.name.algorithm == Algorithm::sliding_window; }
  [[nodiscard]] std::int64_t count_of(TimePoint window) const {
    const auto found = counts_.find(window);
    return found == counts_.end() ? 0 : found->second;
  }
  [[nodiscard]] Wide used() const {
    if (!sliding()) return count_of(window_);
    // Of the previous window: the part that a window ending now still covers, in ticks.
    const Duration left = window_ + spec_.window() - now_;
    const Wide ticks =
        std::min<Wide>(ceil_div(left.count(), spec_.tick.count()), spec_.window_ticks);
    const Wide previous = count_of(window_ - spec_.window());
    return count_of(window_) + ceil_div(previous * ticks, spec_.window_ticks);
  }
  void add(std::int64_t amount) {
    counts_[window_] = std::min(counts_[window_] + amount, spec_.max_level);
  }

  TimePoint window_{};                        // the one of now
  std::map<TimePoint, std::int64_t> counts_;  // by the start of the window
};

// sliding_log: the admitted requests; each counts for one window from its instant on.
class Log final : public ReferenceLimit {
 public:
  explicit Log(const Spec& spec) : ReferenceLimit(spec) {}
  [[nodiscard]] std::unique_ptr<ReferenceLimit> copy() const override {
    return std::make_unique<Log>(*this);
  }

  void advance(TimePoint now, Duration /*lease_ttl*/) override {
    now_ = now;
    for (Entry& entry : entries_) entry.at = std::min(entry.at, now);
    std::erase_if(entries_, [&](const Entry& entry) { return entry.at + spec_.window() <= now; });
  }

  [[nodiscard]] bool ahead(TimePoint now, Duration /*lease_ttl*/) const override {
    return std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.at > now; });
  }
  [[nodiscard]] bool whole() const override { return entries_.empty(); }
  [[nodiscard]] std::int64_t value() const override {
    std::int64_t sum = 0;
    for (const Entry& entry : entries_) sum += entry.cost;
    return sum;
  }

  Charge charge(std::int64_t amount, const Id& id, TimePoint /*lease_end*/) override {
    if (amount > 0) entries_.push_back({id, amount, now_});
    return {amount, TimePoint{}};
  }

  // An entry is one request, which was made or was not: it goes, or it stays as it is.
  void settle(const Charge& /*charged*/, std::int64_t actual, const Id& id) override {
    if (actual > 0) return;
    std::erase_if(entries_, [&](const Entry& entry) { return entry.id == id; });
  }

 protected:
  [[nodiscard]] bool fits(std::int64_t need) const override {
    return value() + need <= spec_.quota;
  }
  [[nodiscard]] std::int64_t remaining() const override {
    return std::max<std::int64_t>(spec_.quota - value(), 0);
  }
  [[nodiscard]] TimePoint horizon() const override { return now_ + spec_.window(); }

 private:
  struct Entry {
    Id id;
    std::int64_t cost = 0;
    TimePoint at{};
  };
  std::vector<Entry> entries_;
};

// token_bucket: the exact level, in units of 1 / window_ticks, so that one tick adds `quota`.
class Tokens final : public ReferenceLimit {
 public:
  explicit Tokens(const Spec& spec) : ReferenceLimit(spec), level_(full()) {}
  [[nodiscard]] std::unique_ptr<ReferenceLimit> copy() const override {
    return std::make_unique<Tokens>(*this);
  }

  void reload(const Spec& spec) override {
    // Another quota can come with another number of ticks in a window: whole units stay, the
    // parts of one stay parts of one.
    const Wide units = floor_div(level_, spec_.window_ticks);
    const Wide parts = level_ - units * spec_.window_ticks;
    spec_ = spec;
    level_ = units * spec_.window_ticks + std::min<Wide>(parts, spec_.window_ticks - 1);
  }

  void advance(TimePoint now, Duration /*lease_ttl*/) override {
    now_ = now;
    keep_in_bounds();
    if (spec_.quota == 0 && now >= horizon()) {
      level_ = full();  // it refuses everybody, full or not, and is let go after a quiet window
    } else if (counted_ <= now) {
      const std::int64_t ticks = (now - counted_) / spec_.tick;
      level_ += Wide{ticks} * spec_.quota;
      counted_ += ticks * spec_.tick;
    } else {
      counted_ = now;  // the clock was set back: nothing is refilled for that
    }
    keep_in_bounds();
    if (!whole()) return;
    counted_ = now;
    ++fills_;
  }

  [[nodiscard]] bool ahead(TimePoint now, Duration /*lease_ttl*/) const override {
    return counted_ > now;
  }
  [[nodiscard]] bool whole() const override { return level_ == full(); }
  [[nodiscard]] std::int64_t value() const override {
    return static_cast<std::int64_t>(floor_div(level_, spec_.window_ticks));
  }

  Charge charge(std::int64_t amount, const Id& /*id*/, TimePoint /*lease_end*/) override {
    level_ -= Wide{amount} * spec_.window_ticks;
    keep_in_bounds();
    return {amount, TimePoint{Duration{fills_}}};
  }

  void settle(const Charge& charged, std::int64_t actual, const Id& /*id*/) override {
    // Full since: it would be no fuller if less had been taken then.
    if (actual < charged.amount && charged.window != TimePoint{Duration{fills_}}) return;
    level_ += Wide{charged.amount - actual} * spec_.window_ticks;
    keep_in_bounds();
    if (whole()) ++fills_;
  }

 protected:
  [[nodiscard]] bool fits(std::int64_t need) const override { return value() >= need; }
  [[nodiscard]] std::int64_t remaining() const override {
    return spec_.quota == 0 ? 0 : std::max<std::int64_t>(value(), 0);
  }
  [[nodiscard]] TimePoint horizon() const override {
    if (spec_.quota == 0) return counted_ + spec_.window();
    // No wait is longer than 2^53 us, in whole ticks: 285 years.
    return counted_ + kMaxQuantity / spec_.tick.count() * spec_.tick;
  }

 private:
  [[nodiscard]] Wide full() const { return Wide{spec_.capacity} * spec_.window_ticks; }
  // Never above the capacity; and a debt stops where counters stop, in whole units.
  void keep_in_bounds() {
    const Wide lowest = Wide{spec_.capacity} - spec_.max_level;
    const Wide units = floor_div(level_, spec_.window_ticks);
    if (units < lowest) level_ += (lowest - units) * spec_.window_ticks;
    level_ = std::min(level_, full());
  }

  Wide level_;
  std::int64_t fills_ = 0;  // how often it was seen full
  TimePoint counted_{};     // the refill is in the level up to here
};

// concurrency: the expiry of each lease. It is live before that instant.
class Leases final : public ReferenceLimit {
 public:
  explicit Leases(const Spec& spec) : ReferenceLimit(spec) {}
  [[nodiscard]] std::unique_ptr<ReferenceLimit> copy() const override {
    return std::make_unique<Leases>(*this);
  }

  void advance(TimePoint now, Duration lease_ttl) override {
    now_ = now;
    std::erase_if(expiries_, [&](const auto& lease) { return lease.second <= now; });
    for (auto& [id, expiry] : expiries_) expiry = std::min(expiry, now + lease_ttl);
  }

  [[nodiscard]] bool ahead(TimePoint now, Duration lease_ttl) const override {
    return std::ranges::any_of(expiries_,
                               [&](const auto& lease) { return lease.second > now + lease_ttl; });
  }
  [[nodiscard]] bool whole() const override { return expiries_.empty(); }
  [[nodiscard]] std::int64_t value() const override {
    return static_cast<std::int64_t>(expiries_.size());
  }

  Charge charge(std::int64_t amount, const Id& id, TimePoint lease_end) override {
    if (amount > 0) expiries_[id] = lease_end;
    return {amount, TimePoint{}};
  }
  void settle(const Charge& /*charged*/, std::int64_t actual, const Id& id) override {
    if (actual == 0) expiries_.erase(id);
  }
  void renew(const Id& id, TimePoint lease_end) override { expiries_[id] = lease_end; }

 protected:
  [[nodiscard]] bool fits(std::int64_t need) const override {
    return value() + need <= spec_.quota;
  }
  [[nodiscard]] std::int64_t remaining() const override {
    return std::max<std::int64_t>(spec_.quota - value(), 0);
  }
  // Nobody knows when a slot is freed: `check` and `read` give a hint.
  [[nodiscard]] TimePoint horizon() const override { return now_ + kSlotHint; }

 private:
  std::map<Id, TimePoint> expiries_;
};

}  // namespace

std::unique_ptr<ReferenceLimit> ReferenceLimit::fresh(const Spec& spec) {
  switch (spec.name.algorithm) {
    case Algorithm::fixed_window:
    case Algorithm::sliding_window:
      return std::make_unique<Windows>(spec);
    case Algorithm::sliding_log:
      return std::make_unique<Log>(spec);
    case Algorithm::token_bucket:
      return std::make_unique<Tokens>(spec);
    case Algorithm::concurrency:
      return std::make_unique<Leases>(spec);
  }
  std::unreachable();
}

bool ReferenceLimit::spent(TimePoint now) const {
  const std::unique_ptr<ReferenceLimit> then = copy();
  then->advance(now, kAnyTtl);
  return then->whole();
}

Check ReferenceLimit::check(std::int64_t need) const {
  if (spec_.quota == 0 || spec_.capacity == 0 || need > spec_.capacity) {
    return {Verdict::never_fits, Duration{0}};
  }
  if (fits(need)) return {Verdict::fits, Duration{0}};
  if (spec_.name.algorithm == Algorithm::concurrency) return {Verdict::refused, kSlotHint};
  return {Verdict::refused, until([&](const ReferenceLimit& later) { return later.fits(need); })};
}

Reading ReferenceLimit::read() const {
  if (spec_.name.algorithm == Algorithm::concurrency) {
    return {remaining(), remaining() == 0 ? kSlotHint : Duration{0}};
  }
  if (whole()) return {remaining(), Duration{0}};
  return {remaining(), until([](const ReferenceLimit& later) { return later.whole(); })};
}

Duration ReferenceLimit::until(const std::function<bool(const ReferenceLimit&)>& holds) const {
  Duration too_short{0};
  Duration long_enough = horizon() - now_;
  while (long_enough - too_short > Duration{1}) {
    const Duration middle = too_short + (long_enough - too_short) / 2;
    const std::unique_ptr<ReferenceLimit> later = copy();
    later->advance(now_ + middle, kAnyTtl);
    (holds(*later) ? long_enough : too_short) = middle;
  }
  return long_enough;
}

}  // namespace stint::model
