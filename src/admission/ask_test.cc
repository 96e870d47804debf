#include "admission/ask.h"

#include <gtest/gtest.h>

namespace stint::admission {
namespace {

using namespace std::chrono_literals;

store::LimitSlot asked(Limit limit, TokenAdmission admission, const Cost& cost,
                       std::optional<std::int64_t> mean = std::nullopt) {
  return ask(*limit::compile(limit), admission, cost, mean);
}
Limit tokens(Unit unit, std::int64_t quota) {
  Limit limit = tokens_per(60s, quota);
  limit.unit = unit;
  return limit;
}

TEST(Ask, RequestsNeedWhatTheyCharge) {
  const auto slot = asked(requests_per(60s, 10), TokenAdmission::postpaid, {.requests = 3});
  EXPECT_EQ(slot.need, 3);
  EXPECT_EQ(slot.charge, 3);
  EXPECT_FALSE(slot.skip);
}

TEST(Ask, ASlotIsOneOrSkipped) {
  EXPECT_EQ(asked(in_flight(5), TokenAdmission::postpaid, {}).charge, 1);
  EXPECT_TRUE(asked(in_flight(5), TokenAdmission::postpaid, {.holds_slot = false}).skip);
}

TEST(Ask, PostpaidNeedsOneAndChargesWhatIsExpected) {
  const Cost cost{.input_tokens = 100, .output_cap = 1000};
  const auto postpaid = TokenAdmission::postpaid;
  EXPECT_EQ(asked(tokens(Unit::tokens, 10'000), postpaid, cost).need, 1);
  EXPECT_EQ(asked(tokens(Unit::tokens, 10'000), postpaid, cost).charge, 356);
  EXPECT_EQ(asked(tokens(Unit::input_tokens, 10'000), postpaid, cost).charge, 100);
  EXPECT_EQ(asked(tokens(Unit::output_tokens, 10'000), postpaid, cost).charge, 256);
  EXPECT_EQ(asked(tokens(Unit::tokens, 10'000), postpaid, cost, 900).charge, 1000);
  EXPECT_EQ(asked(tokens(Unit::tokens, 10'000), postpaid, cost, 5000).charge, 1100);  // the cap
  EXPECT_EQ(asked(tokens(Unit::tokens, 200), postpaid, cost).charge, 200);  // a full bucket
  EXPECT_EQ(asked(tokens(Unit::tokens, 10'000), postpaid, {.output_cap = 8}).charge, 8);
}

TEST(Ask, WithoutACapALearnedMeanIsNotCut) {
  const auto limit = tokens(Unit::tokens, 10'000);
  EXPECT_EQ(asked(limit, TokenAdmission::postpaid, {}).charge, 256);
  EXPECT_EQ(asked(limit, TokenAdmission::postpaid, {}, 700).charge, 700);
  EXPECT_EQ(asked(limit, TokenAdmission::reserve, {}, 700).charge, 256);
}

TEST(Ask, ReserveNeedsTheWholeEstimateUpToAFullBucket) {
  const Cost cost{.input_tokens = 100, .output_cap = 1000};
  const auto reserve = TokenAdmission::reserve;
  EXPECT_EQ(asked(tokens(Unit::tokens, 10'000), reserve, cost, 5).need, 1100);
  EXPECT_EQ(asked(tokens(Unit::tokens, 10'000), reserve, cost, 5).charge, 1100);
  EXPECT_EQ(asked(tokens(Unit::input_tokens, 10'000), reserve, cost).need, 100);
  EXPECT_EQ(asked(tokens(Unit::output_tokens, 10'000), reserve, cost).need, 1000);
  EXPECT_EQ(asked(tokens(Unit::tokens, 500), reserve, cost).need, 500);
  Limit bucket = tokens(Unit::tokens, 500);
  bucket.algorithm = Algorithm::token_bucket;
  bucket.burst = 800;
  EXPECT_EQ(asked(bucket, reserve, cost).need, 800);
}

TEST(Ask, SumsOfTheLargestCostsDoNotWrap) {
  const Cost cost{.input_tokens = kMaxQuantity, .output_cap = kMaxQuantity};
  EXPECT_EQ(asked(tokens(Unit::tokens, kMaxQuantity), TokenAdmission::reserve, cost).need,
            kMaxQuantity);
}

}  // namespace
}  // namespace stint::admission
