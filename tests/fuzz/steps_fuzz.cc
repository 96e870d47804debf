// The steps of the algorithms, on any limit that is accepted and any history of times and amounts:
// nothing overflows (the undefined-behaviour sanitizer watches), and every answer keeps what
// stint/decision.h says of it.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/id.h"
#include "limit/counter.h"
#include "limit/spec.h"
#include "tests/fuzz/require.h"

namespace stint::limit {
namespace {

constexpr Duration kLongestWait = Duration{kMaxQuantity} - kMaxWindow;
constexpr Duration kTtl = std::chrono::seconds{30};
// Years 1970 to 3000 or so: what a wall clock may be set to.
constexpr std::int64_t kLastInstant = 32'503'680'000'000'000;

std::int64_t any_size(FuzzedDataProvider& in) {
  return in.ConsumeIntegralInRange<std::int64_t>(0, kMaxQuantity) >>
         in.ConsumeIntegralInRange(0, 53);
}

Limit any_limit(FuzzedDataProvider& in) {
  Limit limit;
  limit.algorithm = static_cast<Algorithm>(in.ConsumeIntegralInRange(0, 4));
  limit.quota = any_size(in);
  if (limit.algorithm == Algorithm::concurrency) {
    limit.unit = Unit::concurrency;
    return limit;
  }
  if (limit.algorithm != Algorithm::sliding_log)
    limit.unit = in.PickValueInArray({Unit::requests, Unit::tokens});
  limit.window = Duration{in.ConsumeIntegralInRange<std::int64_t>(1'000, kMaxWindow.count()) >>
                          in.ConsumeIntegralInRange(0, 34)};
  if (limit.algorithm == Algorithm::token_bucket && in.ConsumeBool()) limit.burst = any_size(in);
  return limit;
}

struct Charged {
  base::Id id;
  Charge charge;
};

class History {
 public:
  History(const Spec& spec, FuzzedDataProvider& in)
      : spec_(spec), in_(in), counter_(Counter::fresh(spec)) {}
  ~History() { counter_.destroy(spec_); }
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  void run() {
    now_ = TimePoint{Duration{in_.ConsumeIntegralInRange<std::int64_t>(0, kLastInstant)}};
    for (int step = 0; step < 64 && in_.remaining_bytes() > 0; ++step) {
      move_time();
      counter_.advance(spec_, moment(0));
      if (in_.ConsumeBool()) {
        admit(step + 1);
      } else {
        settle();
      }
      require_reading();
    }
  }

 private:
  [[nodiscard]] Moment moment(std::uint64_t number) const { return {now_, {1, number}, kTtl}; }

  void move_time() {
    const std::int64_t step = in_.ConsumeIntegralInRange<std::int64_t>(0, kLastInstant) >>
                              in_.ConsumeIntegralInRange(0, 55);
    const bool back = in_.ConsumeIntegralInRange(0, 7) == 0;
    const std::int64_t then = now_.time_since_epoch().count() + (back ? -step : step);
    now_ = TimePoint{Duration{std::clamp<std::int64_t>(then, 0, kLastInstant)}};
  }

  void admit(int number) {
    const bool leases = spec_.name.algorithm == Algorithm::concurrency;
    const std::int64_t need = leases ? 1 : any_size(in_);
    const Check check = counter_.check(spec_, need, now_);
    STINT_REQUIRE(check.wait >= Duration::zero());
    STINT_REQUIRE((check.verdict == Verdict::refused) == (check.wait > Duration::zero()));
    const bool never = need > spec_.capacity || spec_.quota == 0 || spec_.capacity == 0;
    STINT_REQUIRE((check.verdict == Verdict::never_fits) == never);
    const std::int64_t remaining = counter_.read(spec_, now_).remaining;
    if (check.verdict == Verdict::fits) STINT_REQUIRE(need <= remaining || need == 0);
    if (check.verdict == Verdict::refused) STINT_REQUIRE(need > remaining || need == 0);
    if (check.verdict == Verdict::refused && !leases) require_exact(need, check.wait);
    if (check.verdict != Verdict::fits) return;
    // An expected use may be more than what is left, but is never more than a full bucket.
    const bool expected = spec_.name.unit == Unit::tokens && in_.ConsumeBool();
    const std::int64_t amount = expected ? std::min(any_size(in_), spec_.capacity) : need;
    const Moment at = moment(static_cast<std::uint64_t>(number));
    charged_.push_back({at.id, counter_.charge(spec_, amount, at)});
  }

  // Whoever waits as told is admitted, and one microsecond earlier is not.
  void require_exact(std::int64_t need, Duration wait) const {
    if (wait > kLongestWait) return;  // cut to 285 years, see docs/algorithms.md
    for (const Duration early : {Duration{1}, Duration{0}}) {
      const Moment then{now_ + wait - early, {}, kTtl};
      Counter copy = counter_.clone(spec_);
      copy.advance(spec_, then);
      const Verdict verdict = copy.check(spec_, need, then.now).verdict;
      copy.destroy(spec_);
      STINT_REQUIRE(verdict == (early > Duration{0} ? Verdict::refused : Verdict::fits));
    }
  }

  void settle() {
    if (charged_.empty()) return;
    const Charged last = charged_.back();
    charged_.pop_back();
    const bool tokens = spec_.name.unit == Unit::tokens;
    const std::int64_t actual = tokens ? any_size(in_) : 0;
    counter_.settle(spec_, last.charge, actual, {now_, last.id, kTtl});
  }

  void require_reading() const {
    const Reading reading = counter_.read(spec_, now_);
    STINT_REQUIRE(reading.remaining >= 0 && reading.remaining <= spec_.capacity);
    STINT_REQUIRE(reading.reset >= Duration::zero());
    STINT_REQUIRE(counter_.value(spec_) <= spec_.max_level);
    STINT_REQUIRE(counter_.value(spec_) >= spec_.capacity - spec_.max_level);
    const TimePoint spent = counter_.spent_at(spec_);
    if (reading.remaining < spec_.capacity) STINT_REQUIRE(spent > now_);
    if (spec_.name.algorithm != Algorithm::concurrency) {
      STINT_REQUIRE((spent > now_) == (reading.reset > Duration::zero()));
    }
  }

  const Spec& spec_;
  FuzzedDataProvider& in_;
  Counter counter_;
  TimePoint now_{};
  std::vector<Charged> charged_;
};

}  // namespace
}  // namespace stint::limit

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider in(data, size);
  const auto spec = stint::limit::compile(stint::limit::any_limit(in));
  if (spec) stint::limit::History(*spec, in).run();
  return 0;
}
