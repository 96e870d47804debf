// Other policies put into force while requests run: what stays counted and what starts anew.
#include "tests/limiter/fixture.h"

namespace stint::test {
namespace {

using Reload = LimiterTest;

Policy rpm(std::int64_t quota) {
  return {.id = "p", .group_by = {"api_key"}, .limits = {requests_per(60s, quota)}};
}

TEST_F(Reload, AQuotaMayChangeAndTheCountStays) {
  limit({rpm(10)});
  EXPECT_EQ(count_admitted(6, of_key("k")), 6);
  ASSERT_TRUE(limiter_->set_policies({rpm(5)}));  // below use
  EXPECT_FALSE(admitted("k"));
  EXPECT_EQ(limiter_->peek(of_key("k"))->limits[0].remaining, 0);
  ASSERT_TRUE(limiter_->set_policies({rpm(8)}));
  EXPECT_EQ(count_admitted(5, of_key("k")), 2);
}

TEST_F(Reload, AnotherWindowOrAlgorithmStartsThatLimitAnewAndNoOther) {
  Policy policy = rpm(10);
  policy.limits.push_back(requests_per(1h, 100));
  limit({policy});
  EXPECT_EQ(count_admitted(6, of_key("k")), 6);
  policy.limits = {requests_per(1h, 100), requests_per(30s, 10)};
  ASSERT_TRUE(limiter_->set_policies({policy}));
  EXPECT_TRUE(admitted("k"));
  Decision now = *limiter_->peek(of_key("k"), {.requests = 0});
  EXPECT_EQ(now.limits[0].remaining, 93);
  EXPECT_EQ(now.limits[1].remaining, 9);
  policy.limits[1].algorithm = Algorithm::token_bucket;
  ASSERT_TRUE(limiter_->set_policies({policy}));
  now = *limiter_->peek(of_key("k"), {.requests = 0});
  EXPECT_EQ(now.limits[0].remaining, 93);
  EXPECT_EQ(now.limits[1].remaining, 10);
}

TEST_F(Reload, AnotherGroupByStartsAnew) {
  limit({rpm(2)});
  EXPECT_EQ(count_admitted(3, of_key("k")), 2);
  Policy policy = rpm(2);
  policy.group_by = {};
  ASSERT_TRUE(limiter_->set_policies({policy}));
  EXPECT_EQ(count_admitted(3, of_key("k")), 2);
}

TEST_F(Reload, AFaultyListIsRefusedWholeAndTheOldOneServesOn) {
  limit({rpm(1)});
  Policy faulty = rpm(-1);
  faulty.id = "q";
  const auto refused = limiter_->set_policies({rpm(100), faulty});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "policies[1].limits[0].quota");
  EXPECT_EQ(to_string(refused.error()), "policies[1].limits[0].quota: must not be negative");
  EXPECT_EQ(count_admitted(5, of_key("k")), 1);
}

TEST_F(Reload, ADecisionMayOutliveThePoliciesAndTheLimiter) {
  limit({rpm(1)});
  ASSERT_TRUE(admitted("k"));
  const Decision refused = admit("k").decision;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(limiter_->set_policies({rpm(i)}));
  limiter_.reset();
  EXPECT_EQ(refused.refused_by()->policy_id, "p");
}

}  // namespace
}  // namespace stint::test
