#include "limit/limit_set.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace stint::limit {
namespace {

using namespace std::chrono_literals;

constexpr auto kSliding = Algorithm::sliding_window;
constexpr auto kBucket = Algorithm::token_bucket;

std::string fault(const std::vector<Limit>& limits) {
  const auto ok = validate(std::span<const Limit>(limits));
  return ok ? "" : ok.error().field;
}

LimitSetPtr set_of(const std::vector<Limit>& limits) { return LimitSet::create(limits).value(); }

TEST(LimitSet, KeepsTheLimitsInTheirOrder) {
  const auto set = set_of({requests_per(1s, 5), tokens_per(60s, 100), in_flight(3)});
  ASSERT_EQ(set->size(), 3U);
  EXPECT_EQ((*set)[0].limit(), requests_per(1s, 5));
  EXPECT_EQ((*set)[1].limit(), tokens_per(60s, 100));
  EXPECT_EQ((*set)[2].limit(), in_flight(3));
}

TEST(LimitSet, MayBeEmpty) { EXPECT_EQ(set_of({})->size(), 0U); }

TEST(LimitSet, NamesTheLimitAndTheFieldThatIsAtFault) {
  EXPECT_EQ(fault({requests_per(1s, 5), requests_per(60s, -1)}), "limits[1].quota");
  EXPECT_EQ(fault({requests_per(0s, 5)}), "limits[0].window");
  EXPECT_EQ(fault({requests_per(1s, std::numeric_limits<std::int64_t>::max())}), "limits[0].quota");
  Limit limit = requests_per(1s, 5);
  limit.burst = 5;
  EXPECT_EQ(fault({limit}), "limits[0].burst");
  EXPECT_EQ(fault({in_flight(1), tokens_per(1s, 5, Algorithm::sliding_log)}),
            "limits[1].algorithm");
}

TEST(LimitSet, RefusesTwoLimitsOfOneUnitWindowAndAlgorithm) {
  EXPECT_EQ(fault({requests_per(60s, 5), tokens_per(60s, 5), requests_per(60s, 9)}), "limits[2]");
  EXPECT_EQ(fault({requests_per(60s, 5), requests_per(1min, 5)}), "limits[1]");
  EXPECT_EQ(fault({in_flight(1), in_flight(2)}), "limits[1]");
  Limit with_burst = requests_per(60s, 5, kBucket);
  with_burst.burst = 50;
  EXPECT_EQ(fault({requests_per(60s, 5, kBucket), with_burst}), "limits[1]");
}

TEST(LimitSet, TellsLimitsApartByUnitWindowOrAlgorithm) {
  EXPECT_EQ(fault({requests_per(60s, 5), tokens_per(60s, 5), requests_per(61s, 5),
                   requests_per(60s, 5, kSliding), requests_per(60s, 5, kBucket),
                   requests_per(60s, 5, Algorithm::sliding_log), in_flight(5)}),
            "");
}

TEST(LimitSet, FindsALimitByItsName) {
  const auto set = set_of({requests_per(1s, 5), requests_per(60s, 9), in_flight(3)});
  EXPECT_EQ(set->find({Unit::requests, Algorithm::fixed_window, 60s}), 1U);
  EXPECT_EQ(set->find({Unit::concurrency, Algorithm::concurrency, 0s}), 2U);
  EXPECT_EQ(set->find({Unit::requests, kSliding, 60s}), std::nullopt);
  EXPECT_EQ(set->find({Unit::tokens, Algorithm::fixed_window, 60s}), std::nullopt);
  EXPECT_EQ(set->find({Unit::requests, Algorithm::fixed_window, 61s}), std::nullopt);
}

TEST(LimitSet, HasTheSameNamesWhateverTheQuotas) {
  const auto set = set_of({requests_per(1s, 5), tokens_per(60s, 100)});
  EXPECT_TRUE(set->same_names(*set_of({requests_per(1s, 7), tokens_per(60s, 0)})));
  EXPECT_FALSE(set->same_names(*set_of({tokens_per(60s, 100), requests_per(1s, 5)})));
  EXPECT_FALSE(set->same_names(*set_of({requests_per(1s, 5)})));
  EXPECT_FALSE(set->same_names(*set_of({requests_per(1s, 5), tokens_per(61s, 100)})));
  EXPECT_FALSE(set->same_names(*set_of({requests_per(1s, 5), tokens_per(60s, 100), in_flight(3)})));
}

TEST(LimitSet, LivesAsLongAsSomebodyHoldsIt) {
  LimitSetPtr first = set_of({requests_per(1s, 5)});
  const LimitSetPtr second = first;
  first.reset();
  EXPECT_EQ((*second)[0].quota, 5);
}

}  // namespace
}  // namespace stint::limit
