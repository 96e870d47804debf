// Every reservation is settled exactly once, on every way out.
#include "tests/limiter/fixture.h"

namespace stint::test {
namespace {

using SettledOnce = LimiterTest;

TEST_F(SettledOnce, TheSecondTimeDoesNothingAndSaysSo) {
  limit({{.id = "p", .limits = {tokens_per(60s, 100), in_flight(3)}}});
  Admission one = admit("k", {.input_tokens = 10, .output_cap = 0});
  const Admission other = admit("k", {.input_tokens = 10, .output_cap = 0});
  ASSERT_TRUE(one.reservation.commit({.input_tokens = 10}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(one.reservation.release().error().code, ErrorCode::already_settled);
    EXPECT_EQ(one.reservation.cancel().error().code, ErrorCode::already_settled);
    EXPECT_EQ(one.reservation.commit().error().code, ErrorCode::already_settled);
  }
  const auto page = limiter_->list("p");
  EXPECT_EQ(page->buckets[0].counters[0].value, 20);
  EXPECT_EQ(page->buckets[0].counters[1].value, 1);  // the other one's slot
}

TEST_F(SettledOnce, DestroyingAReservationReleasesIt) {
  limit({{.id = "p", .limits = {tokens_per(60s, 100), in_flight(1), requests_per(60s, 9)}}});
  {
    const Admission running = admit("k", {.input_tokens = 10, .output_cap = 0});
    EXPECT_FALSE(admitted("k"));
  }
  const Decision now = *limiter_->peek(Attributes{}, {.requests = 0, .output_cap = 0});
  EXPECT_TRUE(now.admitted());
  EXPECT_EQ(now.limits[0].remaining, 100);
  EXPECT_EQ(now.limits[2].remaining, 8);  // a request that was admitted was made
}

TEST_F(SettledOnce, AMovedReservationIsSettledByItsNewOwnerOnly) {
  limit({{.id = "p", .limits = {in_flight(2)}}});
  Reservation stream;
  EXPECT_FALSE(stream.holds());
  {
    Admission handler = admit("k");
    stream = std::move(handler.reservation);
    EXPECT_FALSE(handler.reservation.holds());
    EXPECT_EQ(handler.reservation.release().error().code, ErrorCode::already_settled);
  }
  EXPECT_TRUE(stream.holds());
  EXPECT_EQ(counter("p"), 1);
  stream = std::move(admit("k").reservation);  // releases the first
  EXPECT_EQ(counter("p"), 1);
  ASSERT_TRUE(stream.commit());
  EXPECT_EQ(limiter_->stats().held, 0U);
}

TEST_F(SettledOnce, CancelMakesTheRequestUnmade) {
  limit({{.id = "p",
          .limits = {requests_per(60s, 5), requests_per(60s, 5, Algorithm::sliding_log),
                     requests_per(60s, 5, Algorithm::token_bucket), tokens_per(60s, 50),
                     in_flight(5)}}});
  for (int i = 0; i < 20; ++i) {
    Admission admission = admit("k", {.requests = 2, .input_tokens = 10});
    ASSERT_TRUE(admission.admitted());
    ASSERT_TRUE(admission.reservation.cancel());
  }
  const Decision now = *limiter_->peek(Attributes{}, {.requests = 0, .output_cap = 0});
  for (const LimitStatus& status : now.limits) {
    EXPECT_EQ(status.remaining, status.limit.quota - (status.limit.window == 0us ? 1 : 0));
  }
}

TEST_F(SettledOnce, AnInvalidUsageChangesNothingAndLeavesTheReservationOpen) {
  limit({{.id = "p", .limits = {tokens_per(60s, 100)}}});
  Admission admission = admit("k", {.input_tokens = 10, .output_cap = 0});
  const auto negative = admission.reservation.commit({.input_tokens = -5});
  EXPECT_EQ(negative.error().field, "usage.input_tokens");
  EXPECT_EQ(negative.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(admission.reservation.commit({.output_tokens = INT64_MAX}).error().field,
            "usage.output_tokens");
  EXPECT_EQ(counter("p"), 10);
  EXPECT_TRUE(admission.reservation.commit({.input_tokens = 3}));
  EXPECT_EQ(counter("p"), 3);
}

TEST_F(SettledOnce, ASettlementIsByThePoliciesThatAdmitted) {
  const Policy policy{.id = "p", .limits = {tokens_per(60s, 100), in_flight(1)}};
  limit({policy});
  Admission running = admit("k", {.input_tokens = 40, .output_cap = 0});
  Policy other = policy;
  other.limits = {in_flight(1), requests_per(1h, 5), tokens_per(60s, 200)};
  ASSERT_TRUE(limiter_->set_policies({other}));
  EXPECT_FALSE(admitted("k"));  // its slot is still taken
  ASSERT_TRUE(running.reservation.commit({.input_tokens = 10}));
  const Decision now = *limiter_->peek(Attributes{}, {.requests = 0, .output_cap = 0});
  EXPECT_TRUE(now.admitted());
  EXPECT_EQ(now.limits[1].remaining, 5);
  EXPECT_EQ(now.limits[2].remaining, 190);
}

TEST_F(SettledOnce, ARefusedOrInvalidRequestHoldsNothing) {
  limit({{.id = "p", .limits = {requests_per(60s, 1), in_flight(5)}}});
  ASSERT_TRUE(admitted("k"));
  EXPECT_FALSE(admit("k").reservation.holds());
  EXPECT_EQ(limiter_->admit(Attributes{}, {.requests = -5}).error().field, "cost.requests");
  EXPECT_EQ(limiter_->admit(Attributes{}, {.input_tokens = -1}).error().field, "cost.input_tokens");
  EXPECT_EQ(limiter_->admit(Attributes{}, {.output_cap = -1}).error().field, "cost.output_cap");
  EXPECT_EQ(limiter_->admit(Attributes{}, {.requests = kMaxQuantity + 1}).error().field,
            "cost.requests");
  EXPECT_EQ(limiter_->peek(Attributes{}, {.requests = INT64_MIN}).error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(counter("p"), 1);
  EXPECT_EQ(limiter_->stats().held, 0U);
}

TEST_F(SettledOnce, WhatTheCallbackFormSettlesIsSettledToo) {
  limit({{.id = "p", .limits = {in_flight(1)}}});
  Admission admission = admit("k");
  int calls = 0;
  admission.reservation.release([&](const Result<void>& result) {
    EXPECT_TRUE(result);
    ++calls;
  });
  admission.reservation.commit({}, [&](const Result<void>& result) {
    EXPECT_EQ(result.error().code, ErrorCode::already_settled);
    ++calls;
  });
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(admitted("k"));
}

}  // namespace
}  // namespace stint::test
