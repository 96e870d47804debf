// A limiter on a clock that the test moves, and short words for what the tests say often.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/simulated_clock.h"
#include "stint/limiter.h"

namespace stint::test {

using namespace std::chrono_literals;

// 2026-01-02T00:00:00Z: the start of a day, an hour, a minute and of every window in the tests.
inline constexpr TimePoint kMidnight{std::chrono::seconds{1'767'312'000}};

class LimiterTest : public testing::Test {
 protected:
  void limit(const std::vector<Policy>& policies, LimiterOptions options = {}) {
    options.clock = &clock_;
    auto limiter = Limiter::create(policies, std::move(options));
    ASSERT_TRUE(limiter) << to_string(limiter.error());
    limiter_.emplace(std::move(*limiter));
  }

  [[nodiscard]] static Attributes of_key(std::string_view key) {
    Attributes attributes;
    attributes.set(Dimension::api_key, key);
    return attributes;
  }

  [[nodiscard]] Admission admit(const Attributes& attributes, const Cost& cost = {}) {
    auto admission = limiter_->admit(attributes, cost);
    EXPECT_TRUE(admission) << to_string(admission.error());
    return std::move(*admission);
  }
  [[nodiscard]] Admission admit(std::string_view key, const Cost& cost = {}) {
    return admit(of_key(key), cost);
  }

  // Whether a request that uses nothing but itself is admitted; it stays counted.
  [[nodiscard]] bool admitted(const Attributes& attributes, const Cost& cost = {}) {
    Admission admission = admit(attributes, cost);
    if (admission.admitted()) {
      EXPECT_TRUE(admission.reservation.commit());
    }
    return admission.admitted();
  }
  [[nodiscard]] bool admitted(std::string_view key, const Cost& cost = {}) {
    return admitted(of_key(key), cost);
  }

  // How many of `tries` such requests in a row are admitted.
  [[nodiscard]] int count_admitted(int tries, const Attributes& attributes) {
    int count = 0;
    for (int i = 0; i < tries; ++i) count += admitted(attributes) ? 1 : 0;
    return count;
  }

  // The value of the first counter of the bucket with this key; nothing if there is no bucket.
  [[nodiscard]] std::optional<std::int64_t> counter(std::string_view bucket) const {
    auto page = limiter_->list(bucket);
    EXPECT_TRUE(page);
    EXPECT_EQ(page->next, 0U);
    if (page->buckets.size() != 1) return std::nullopt;
    return page->buckets[0].counters[0].value;
  }

  base::SimulatedClock clock_{kMidnight};
  std::optional<Limiter> limiter_;
};

}  // namespace stint::test
