#include "tests/model/history_gen.h"

#include <algorithm>
#include <utility>

#include "limit/spec.h"

namespace stint::model {
namespace {

namespace gen = rc::gen;

constexpr std::int64_t kMillisecond = 1'000;
constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kMinute = 60 * kSecond;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kDay = 24 * kHour;
constexpr std::int64_t kCentury = 36'525 * kDay;

// Both ends included.
rc::Gen<std::int64_t> from_to(std::int64_t low, std::int64_t high) {
  return gen::inRange<std::int64_t>(low, high + 1);
}
rc::Gen<std::size_t> below(std::size_t end) { return gen::inRange<std::size_t>(0, end); }

template <class T>
rc::Gen<std::vector<T>> lists(std::size_t at_least, std::size_t at_most, rc::Gen<T> element) {
  return gen::mapcat(gen::inRange<std::size_t>(at_least, at_most + 1),
                     [element = std::move(element)](std::size_t size) {
                       return gen::container<std::vector<T>>(size, element);
                     });
}

rc::Gen<std::int64_t> quotas() {
  return gen::weightedOneOf<std::int64_t>({
      {8, from_to(1, 5)},
      {6, from_to(6, 100)},
      {1, gen::just<std::int64_t>(0)},
      {2, from_to(101, 1'000'000'000)},
      {1, from_to((std::int64_t{1} << 31) - 2, (std::int64_t{1} << 31) + 2)},
      {1, from_to(kMaxQuantity - 2, kMaxQuantity)},
      {1, from_to(1, kMaxQuantity)},
  });
}

rc::Gen<std::int64_t> windows() {
  return gen::weightedOneOf<std::int64_t>({
      {5, gen::element(kMinute, kSecond, kHour, kDay)},
      {2, gen::element(kMillisecond, 2 * kMillisecond, 366 * kDay, 7 * kDay)},
      {2, from_to(kMillisecond, 10 * kMillisecond)},
      {2, from_to(kMillisecond, 100 * kSecond)},
      {1, from_to(kMillisecond, 366 * kDay)},
  });
}

// Makes a limit out of five numbers; what cannot be counted exactly enough is made smaller.
Limit limit_of(Algorithm algorithm, bool tokens, std::int64_t window, std::int64_t quota,
               std::int64_t burst) {
  Limit limit{.unit = tokens ? Unit::tokens : Unit::requests,
              .quota = quota,
              .window = Duration{window},
              .algorithm = algorithm};
  if (algorithm == Algorithm::concurrency) {
    limit.unit = Unit::concurrency;
    limit.window = Duration{0};
  }
  if (algorithm == Algorithm::sliding_log) {
    limit.unit = Unit::requests;
    limit.quota %= kMaxSlidingLogQuota + 1;
  }
  if (algorithm == Algorithm::token_bucket && burst >= 0) limit.burst = burst;
  while (!validate(limit)) {
    limit.quota /= 2;
    if (limit.burst) limit.burst = *limit.burst / 2;
  }
  return limit;
}

rc::Gen<Limit> limits() {
  return gen::apply(
      limit_of,
      gen::element(Algorithm::fixed_window, Algorithm::sliding_window, Algorithm::token_bucket,
                   Algorithm::sliding_log, Algorithm::concurrency),
      gen::arbitrary<bool>(), windows(), quotas(),
      gen::oneOf(gen::just<std::int64_t>(-1), quotas()));
}

// The limits of one policy: no two of the same name.
rc::Gen<std::vector<Limit>> policies() {
  return gen::map(lists(1, 4, limits()), [](const std::vector<Limit>& drawn) {
    std::vector<Limit> policy;
    for (const Limit& limit : drawn) {
      policy.push_back(limit);
      if (!validate(policy)) policy.pop_back();
    }
    return policy;
  });
}

rc::Gen<Amount> amounts() {
  const auto small = from_to(0, 3);
  return gen::weightedOneOf<Amount>({
      {10, gen::construct<Amount>(gen::just<std::int64_t>(0), gen::just<std::int64_t>(1))},
      {4, gen::construct<Amount>(gen::just<std::int64_t>(0), small)},
      {3, gen::construct<Amount>(gen::just<std::int64_t>(4), from_to(-1, 1))},
      {4, gen::construct<Amount>(from_to(1, 3), from_to(-1, 1))},
      {1, gen::construct<Amount>(from_to(5, 16), from_to(-1, 1))},
      {1, gen::construct<Amount>(gen::just<std::int64_t>(0), from_to(0, kMaxQuantity))},
  });
}

// What was really used, by what was charged: often the same, nothing, or more.
rc::Gen<Amount> actuals() {
  return gen::weightedOneOf<Amount>({
      {4, gen::construct<Amount>(gen::just<std::int64_t>(0), gen::just<std::int64_t>(0))},
      {3, gen::construct<Amount>(gen::just<std::int64_t>(4), gen::just<std::int64_t>(0))},
      {3, gen::construct<Amount>(from_to(1, 3), from_to(-1, 1))},
      {3, gen::construct<Amount>(gen::just<std::int64_t>(4), from_to(-3, 3))},
      {2, gen::construct<Amount>(from_to(4, 16), from_to(0, 100))},
      {1, gen::construct<Amount>(gen::just<std::int64_t>(4), from_to(0, kMaxQuantity))},
  });
}

rc::Gen<Ask> asks() {
  return gen::map(gen::tuple(amounts(), amounts(), below(5), below(4)), [](const auto& drawn) {
    const auto& [need, other, differs, skips] = drawn;
    return Ask{need, differs == 1 ? other : need, skips == 1};
  });
}

rc::Gen<std::vector<Use>> uses() {
  const auto use = gen::map(gen::tuple(below(4), below(2), below(6), lists(1, 4, asks())),
                            [](const auto& drawn) {
                              const auto& [policy, key, shadow, asked] = drawn;
                              return Use{policy, key, shadow == 1, asked};
                            });
  return gen::weightedOneOf<std::vector<Use>>({{3, lists(1, 1, use)}, {2, lists(2, 4, use)}});
}

rc::Gen<std::int64_t> offsets() { return gen::element<std::int64_t>(0, -1, 1); }

rc::Gen<std::int64_t> spans() {
  return gen::weightedOneOf<std::int64_t>({
      {2, from_to(0, 10)},
      {2, from_to(0, 2 * kMillisecond)},
      {4, from_to(0, kMinute)},
      {3, from_to(0, kHour)},
      {2, from_to(0, 30 * kDay)},
      {1, from_to(0, kCentury)},
  });
}

template <class T>
rc::Gen<Op> op(rc::Gen<T> of) {
  return gen::map(std::move(of), [](T drawn) { return Op{std::move(drawn)}; });
}

rc::Gen<Op> operations(bool stepping) {
  const auto wait = [](std::int64_t span) { return Wait{Duration{span}}; };
  const auto reset = [](std::size_t what, std::size_t policy, std::size_t key) {
    Reset drawn;
    if (what > 0) drawn.policy = policy;
    if (what > 1) drawn.key = key;
    return drawn;
  };
  const auto relayout = [](std::size_t policy, std::size_t rotate, std::size_t limit,
                           std::int64_t window) {
    return Relayout{policy, rotate, limit, Duration{window}};
  };
  const auto edge = [](std::size_t policy, std::size_t limit, std::int64_t offset) {
    return Edge{policy, limit, Duration{offset}};
  };
  const auto told = [](std::int64_t offset) { return AsTold{Duration{offset}}; };
  const std::size_t back = stepping ? 6 : 0;
  return gen::weightedOneOf<Op>({
      {16, op(gen::construct<Acquire>(uses()))},
      {3, op(gen::construct<Peek>(uses()))},
      {6, op(gen::construct<Settle>(below(8), lists(1, 4, actuals())))},
      {2, op(gen::construct<Renew>(lists(1, 3, below(8))))},
      {1, op(gen::apply(reset, below(6), below(4), below(2)))},
      {2, op(gen::construct<Reload>(below(4), below(4), quotas(), quotas()))},
      {1, op(gen::apply(relayout, below(4), below(4), below(4), windows()))},
      {5, op(gen::map(spans(), wait))},
      {4, op(gen::apply(edge, below(4), below(4), offsets()))},
      {6, op(gen::map(offsets(), told))},
      {back, op(gen::map(spans(), [](std::int64_t span) { return Wait{Duration{-span}}; }))},
  });
}

rc::Gen<History> histories(bool stepping) {
  const auto start = gen::map(from_to(1'000'000'000, 2'000'000'000), [](std::int64_t seconds) {
    return TimePoint{std::chrono::seconds{seconds} + Duration{seconds % 1'000'003}};
  });
  const auto ttl = gen::element(Duration{30 * kSecond}, Duration{3 * kSecond}, Duration{kHour});
  return gen::construct<History>(start, ttl, lists(1, 4, policies()),
                                 gen::container<std::vector<Op>>(operations(stepping)));
}

}  // namespace

rc::Gen<History> forward_histories() { return histories(false); }
rc::Gen<History> stepping_histories() { return histories(true); }

}  // namespace stint::model
