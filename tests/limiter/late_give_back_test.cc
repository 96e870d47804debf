// What a reservation gives back late belongs to the bucket that was charged.
#include "tests/limiter/fixture.h"

namespace stint::test {
namespace {

// What a reservation gives back belongs to the bucket that was charged, not to its successor.
class LateGiveBack : public LimiterTest {
 protected:
  void SetUp() override {
    limit({{.id = "p",
            .group_by = {"api_key"},
            .limits = {tokens_per(60s, 100)},
            .token_admission = TokenAdmission::reserve}},
          {.max_buckets = 1});
  }
  static constexpr Cost kForty{.input_tokens = 40, .output_cap = 0};
};

TEST_F(LateGiveBack, AfterAResetLowersNoBucketThatCameLater) {
  Admission first = admit("k", kForty);
  EXPECT_EQ(limiter_->reset("*").removed, 1U);
  const Admission second = admit("k", kForty);
  ASSERT_TRUE(first.reservation.release());
  EXPECT_EQ(counter("p:api_key=k"), 40);
}

TEST_F(LateGiveBack, AfterAnEvictionLowersNoBucketThatCameLater) {
  Admission first = admit("k", kForty);
  ASSERT_TRUE(admit("other", kForty).reservation.release());  // takes the one place
  const Admission second = admit("k", kForty);
  ASSERT_TRUE(first.reservation.release());
  EXPECT_EQ(counter("p:api_key=k"), 40);
}

// Full again at 60 s, whatever the first one used: what it gives back then is made good already.
TEST_F(LateGiveBack, AfterTheBucketHasBeenFullIsDropped) {
  limit({{.id = "p",
          .limits = {tokens_per(60s, 100, Algorithm::token_bucket)},
          .token_admission = TokenAdmission::reserve}});
  Admission first = admit("k", {.input_tokens = 100, .output_cap = 0});
  clock_.advance(60s);
  const Admission second = admit("k", {.input_tokens = 70, .output_cap = 0});
  ASSERT_TRUE(first.reservation.release());
  EXPECT_EQ(counter("p"), 30);
  EXPECT_FALSE(admit("k", {.input_tokens = 31, .output_cap = 0}).admitted());
}

}  // namespace
}  // namespace stint::test
