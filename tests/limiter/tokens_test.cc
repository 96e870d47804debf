// Token limits: admitted on an expectation or an estimate, settled by the real use (C04, C12).
#include "tests/limiter/fixture.h"

namespace stint::test {
namespace {

using Tokens = LimiterTest;

Policy tpm(std::int64_t quota, TokenAdmission admission = TokenAdmission::postpaid) {
  return {.id = "tpm",
          .group_by = {"api_key"},
          .limits = {tokens_per(60s, quota)},
          .token_admission = admission};
}

TEST_F(Tokens, PostpaidAdmitsWhileAnythingIsLeft) {
  limit({tpm(10)});
  for (const bool expected : {true, true, false}) {
    Admission admission = admit("k");
    ASSERT_EQ(admission.admitted(), expected);
    if (!expected) break;
    ASSERT_TRUE(admission.reservation.commit({.output_tokens = 8}));
  }
  EXPECT_EQ(counter("tpm:api_key=k"), 16);
}

TEST_F(Tokens, PostpaidInParallelOvershootsByOneRequestNotByAll) {
  limit({tpm(10)});
  for (int round = 0; round < 3; ++round) {  // unlearned, then with a learned mean
    std::vector<Reservation> running;
    for (int i = 0; i < 10; ++i) {
      Admission admission = admit("k");
      if (admission.admitted()) running.push_back(std::move(admission.reservation));
    }
    EXPECT_GE(running.size(), 1U);
    EXPECT_LE(running.size(), 2U);
    for (Reservation& one : running) ASSERT_TRUE(one.commit({.output_tokens = 8}));
    clock_.advance(60s);
  }
}

// C04: checked and charged in one step.
TEST_F(Tokens, ReserveAdmitsWhatFitsAndCommitReplacesTheEstimate) {
  limit({tpm(100, TokenAdmission::reserve)});
  std::vector<Reservation> running;
  for (int i = 0; i < 5; ++i) {
    Admission admission = admit("k", {.input_tokens = 10, .output_cap = 30});
    if (admission.admitted()) running.push_back(std::move(admission.reservation));
  }
  ASSERT_EQ(running.size(), 2U);
  EXPECT_EQ(counter("tpm:api_key=k"), 80);
  for (Reservation& one : running) {
    ASSERT_TRUE(one.commit({.input_tokens = 10, .output_tokens = 20}));
  }
  EXPECT_EQ(counter("tpm:api_key=k"), 60);
  EXPECT_TRUE(admit("k", {.input_tokens = 40, .output_cap = 0}).admitted());
}

// C12: refusals take nothing, failures give back, an unknown estimate takes a little.
TEST_F(Tokens, RefusedRequestsUseUpNothing) {
  limit({tpm(1000, TokenAdmission::reserve)});
  Admission first = admit("k", {.input_tokens = 900, .output_cap = 0});
  ASSERT_TRUE(first.reservation.commit({.input_tokens = 900}));
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(admit("k", {.input_tokens = 200, .output_cap = 0}).admitted());
  }
  EXPECT_TRUE(admitted("k", {.input_tokens = 100, .output_cap = 0}));
}

TEST_F(Tokens, AReleasedRequestGivesItsTokensBackAndStaysCounted) {
  limit({{.id = "p", .limits = {tokens_per(60s, 1000), requests_per(60s, 10)}}});
  Admission failed = admit("k", {.input_tokens = 100, .output_cap = 0});
  EXPECT_EQ(counter("p"), 100);
  ASSERT_TRUE(failed.reservation.release());
  const Decision now = *limiter_->peek(of_key("k"), {.requests = 0});
  EXPECT_EQ(now.limits[1].remaining, 9);
  EXPECT_EQ(counter("p"), 0);
}

TEST_F(Tokens, AnUnknownEstimateTakesALittleNotTheWholeLimit) {
  for (const auto admission : {TokenAdmission::postpaid, TokenAdmission::reserve}) {
    limit({tpm(1000, admission)});
    const Admission unknown = admit("k");
    EXPECT_EQ(counter("tpm:api_key=k"), kDefaultOutputTokens);
  }
}

TEST_F(Tokens, TheExpectedOutputIsLearnedForEachKeyAndModel) {
  limit({tpm(100'000)});
  Attributes attributes = of_key("k");
  attributes.set(Dimension::model, "m");
  const auto expected = [&](const Attributes& of) {
    const Admission admission = admit(of);
    return 100'000 - admission.decision.limits[0].remaining;  // released again at once
  };
  EXPECT_EQ(expected(attributes), 256);
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(admit(attributes).reservation.commit({.output_tokens = 40}));
    limiter_->reset("*");
  }
  EXPECT_EQ(expected(attributes), 40);
  Attributes other = of_key("k");
  other.set(Dimension::model, "n");
  EXPECT_EQ(expected(other), 256);
  Admission capped = admit(attributes, {.output_cap = 7});
  EXPECT_EQ(capped.decision.limits[0].remaining, 100'000 - 7);
}

TEST_F(Tokens, InputAndOutputAreCountedApart) {
  Limit input = tokens_per(60s, 100);
  input.unit = Unit::input_tokens;
  Limit output = tokens_per(60s, 50);
  output.unit = Unit::output_tokens;
  limit({{.id = "p", .limits = {input, output}, .token_admission = TokenAdmission::reserve}});
  Admission admission = admit("k", {.input_tokens = 60, .output_cap = 30});
  EXPECT_EQ(admission.decision.limits[0].remaining, 40);
  EXPECT_EQ(admission.decision.limits[1].remaining, 20);
  ASSERT_TRUE(admission.reservation.commit({.input_tokens = 70, .output_tokens = 10}));
  const Decision now = *limiter_->peek(Attributes{}, {.output_cap = 0});
  EXPECT_EQ(now.limits[0].remaining, 30);
  EXPECT_EQ(now.limits[1].remaining, 40);
  EXPECT_FALSE(admitted("k", {.input_tokens = 31, .output_cap = 0}));
}

TEST_F(Tokens, AnEstimateAboveTheLimitIsTakenAsAFullBucket) {
  limit({tpm(10, TokenAdmission::reserve)});
  EXPECT_TRUE(admitted("k", {.input_tokens = 1'000'000, .output_cap = 1'000'000}));
}

TEST_F(Tokens, ACommitAfterTheWindowChargesTheOverspendToTheCurrentOne) {
  limit({tpm(100, TokenAdmission::reserve)});
  Admission longer = admit("k", {.input_tokens = 10, .output_cap = 0});
  Admission shorter = admit("k", {.input_tokens = 50, .output_cap = 0});
  clock_.advance(60s);
  ASSERT_TRUE(longer.reservation.commit({.input_tokens = 10, .output_tokens = 25}));
  EXPECT_EQ(counter("tpm:api_key=k"), 25);
  ASSERT_TRUE(shorter.reservation.commit({.input_tokens = 5}));  // its window is gone
  EXPECT_EQ(counter("tpm:api_key=k"), 25);
}

TEST_F(Tokens, ATokenBucketMayOweAndPaysBackByRefill) {
  limit({{.id = "p", .limits = {tokens_per(60s, 60, Algorithm::token_bucket)}}});
  Admission greedy = admit("k", {.output_cap = 1});
  ASSERT_TRUE(greedy.reservation.commit({.output_tokens = 90}));
  const Admission refused = admit("k");
  EXPECT_EQ(refused.decision.limits[0].remaining, 0);
  EXPECT_EQ(refused.decision.retry_after(), 31s);  // owes 30, and one must be there
  clock_.advance(31s);
  EXPECT_TRUE(admit("k").admitted());
}

}  // namespace
}  // namespace stint::test
