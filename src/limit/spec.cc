#include "limit/spec.h"

#include <algorithm>
#include <string>

#include "base/saturating.h"

namespace stint::limit {
namespace {

constexpr std::int64_t kMaxProduct = (std::int64_t{1} << 52) - 1;

Result<void> check_quantity(const char* field, std::int64_t value) {
  if (value < 0) return invalid(field, "must not be negative");
  if (value > kMaxQuantity) {
    return invalid(field, "must be at most " + std::to_string(kMaxQuantity) + " (2^53 - 1)");
  }
  return {};
}

Result<void> check_concurrency(const Limit& limit) {
  if (limit.unit != Unit::concurrency || limit.algorithm != Algorithm::concurrency) {
    return invalid("algorithm",
                   "unit concurrency goes with algorithm concurrency, and no other unit does");
  }
  if (limit.window != Duration::zero()) {
    return invalid("window", "a concurrency limit has no window");
  }
  return {};
}

Result<void> check_window(const Limit& limit) {
  if (limit.window < kMinWindow || limit.window > kMaxWindow) {
    return invalid("window", "must be between 1 ms and 366 days");
  }
  return {};
}

Result<void> check_shape(const Limit& limit) {
  if (limit.unit > Unit::concurrency) return invalid("unit", "is no unit");
  if (limit.algorithm > Algorithm::concurrency) return invalid("algorithm", "is no algorithm");
  if (auto ok = check_quantity("quota", limit.quota); !ok) return ok;
  if (limit.burst) {
    if (limit.algorithm != Algorithm::token_bucket) {
      return invalid("burst", "belongs to a token_bucket only");
    }
    if (auto ok = check_quantity("burst", *limit.burst); !ok) return ok;
  }
  if (limit.unit == Unit::concurrency || limit.algorithm == Algorithm::concurrency) {
    return check_concurrency(limit);
  }
  if (limit.algorithm == Algorithm::sliding_log) {
    if (limit.unit != Unit::requests) {
      return invalid("algorithm", "sliding_log counts requests only");
    }
    if (limit.quota > kMaxSlidingLogQuota) {
      return invalid("quota", "must be at most 10000 with sliding_log, which keeps an entry each");
    }
  }
  return check_window(limit);
}

// Chooses tick, window_ticks and max_level.
Result<void> choose_tick(Spec& spec) {
  const std::int64_t largest = std::max({spec.quota, spec.capacity, std::int64_t{1}});
  const std::int64_t window = spec.window().count();
  std::int64_t tick = 1;
  while (tick * 100 < window && base::div_ceil(window, tick) > kMaxProduct / largest) tick *= 10;
  if (tick * 100 >= window) {
    return invalid(spec.capacity > spec.quota ? "burst" : "quota",
                   "is too large for its window: it cannot be counted to within 1 %");
  }
  spec.tick = Duration{tick};
  spec.window_ticks =
      spec.name.algorithm == Algorithm::token_bucket ? base::div_ceil(window, tick) : window / tick;
  spec.max_level = kMaxQuantity / spec.window_ticks;
  return {};
}

}  // namespace

Limit Spec::limit() const {
  Limit limit{.unit = name.unit,
              .quota = quota,
              .window = name.window,
              .algorithm = name.algorithm,
              .burst = std::nullopt};
  if (capacity != quota) limit.burst = capacity;
  return limit;
}

Result<Spec> compile(const Limit& limit) {
  if (auto ok = check_shape(limit); !ok) return std::unexpected(std::move(ok.error()));
  Spec spec{.name = {limit.unit, limit.algorithm, limit.window},
            .quota = limit.quota,
            .capacity = limit.capacity()};
  if (limit.algorithm == Algorithm::sliding_window || limit.algorithm == Algorithm::token_bucket) {
    if (auto ok = choose_tick(spec); !ok) return std::unexpected(std::move(ok.error()));
  }
  return spec;
}

}  // namespace stint::limit
