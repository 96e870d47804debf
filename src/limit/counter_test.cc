#include "limit/counter.h"

#include <gtest/gtest.h>

#include "limit/step_testing.h"

namespace stint::limit {
namespace {

using namespace std::chrono_literals;

Limit of(Algorithm algorithm) {
  if (algorithm == Algorithm::concurrency) return in_flight(10);
  return requests_per(60s, 10, algorithm);
}

Moment moment(TimePoint now, std::uint64_t id) { return {now, {7, id}, 30s}; }

// Destroys what it holds, as the owner of a Counter has to.
struct Held {
  explicit Held(Algorithm algorithm)
      : spec(spec_of(of(algorithm))), counter(Counter::fresh(spec)) {}
  ~Held() { counter.destroy(spec); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  Spec spec;
  Counter counter;
};

constexpr Algorithm kAll[] = {Algorithm::fixed_window, Algorithm::sliding_window,
                              Algorithm::sliding_log, Algorithm::token_bucket,
                              Algorithm::concurrency};

TEST(Counter, StartsWhole) {
  for (const Algorithm algorithm : kAll) {
    Held held(algorithm);
    held.counter.advance(held.spec, moment(at(120s), 1));
    EXPECT_EQ(held.counter.check(held.spec, 10, at(120s)), kFits) << to_string(algorithm);
    EXPECT_EQ(held.counter.read(held.spec, at(120s)), (Reading{10, 0s})) << to_string(algorithm);
    EXPECT_EQ(held.counter.spent_at(held.spec), kAlwaysSpent) << to_string(algorithm);
  }
}

TEST(Counter, TakesAChargeAndGivesItBack) {
  for (const Algorithm algorithm : kAll) {
    Held held(algorithm);
    const Moment now = moment(at(120s), 1);
    held.counter.advance(held.spec, now);
    const Charge charge = held.counter.charge(held.spec, 1, now);
    EXPECT_EQ(charge.amount, 1);
    EXPECT_EQ(held.counter.read(held.spec, at(120s)).remaining, 9) << to_string(algorithm);
    EXPECT_EQ(held.counter.value(held.spec), algorithm == Algorithm::token_bucket ? 9 : 1);
    EXPECT_GT(held.counter.spent_at(held.spec), at(120s)) << to_string(algorithm);
    held.counter.settle(held.spec, charge, 0, now);
    EXPECT_EQ(held.counter.read(held.spec, at(120s)), (Reading{10, 0s})) << to_string(algorithm);
    held.counter.settle(held.spec, charge, 0, now);
    EXPECT_EQ(held.counter.read(held.spec, at(120s)), (Reading{10, 0s})) << to_string(algorithm);
  }
}

TEST(Counter, ChargeOfZeroTakesNothing) {
  for (const Algorithm algorithm : kAll) {
    Held held(algorithm);
    const Moment now = moment(at(120s), 1);
    held.counter.advance(held.spec, now);
    EXPECT_EQ(held.counter.charge(held.spec, 0, now).amount, 0);
    EXPECT_EQ(held.counter.read(held.spec, at(120s)), (Reading{10, 0s})) << to_string(algorithm);
  }
}

TEST(Counter, FreesASlotWhenItIsSettledByTheOneWhoHoldsIt) {
  Held held(Algorithm::concurrency);
  const Charge charge = held.counter.charge(held.spec, 1, moment(at(120s), 1));
  held.counter.settle(held.spec, charge, 0, moment(at(121s), 2));
  EXPECT_EQ(held.counter.value(held.spec), 1);
  held.counter.renew({7, 1}, at(160s));
  held.counter.advance(held.spec, moment(at(155s), 3));
  EXPECT_EQ(held.counter.value(held.spec), 1);
  held.counter.settle(held.spec, charge, 0, moment(at(156s), 1));
  EXPECT_EQ(held.counter.value(held.spec), 0);
}

}  // namespace
}  // namespace stint::limit
