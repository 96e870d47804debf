// What the public face refuses, and what zeros mean (C01, C02).
#include "tests/limiter/fixture.h"

namespace stint::test {
namespace {

using Options = LimiterTest;

std::string refusal(const Policy& policy, LimiterOptions options = {}) {
  const auto limiter = Limiter::create({policy}, std::move(options));
  return limiter ? "accepted" : to_string(limiter.error());
}
std::string refusal(const Limit& limit) { return refusal({.id = "p", .limits = {limit}}); }

TEST_F(Options, EachFaultNamesItsField) {
  EXPECT_EQ(refusal(requests_per(60s, -1)), "policies[0].limits[0].quota: must not be negative");
  EXPECT_EQ(refusal(requests_per(0s, 1)),
            "policies[0].limits[0].window: must be between 1 ms and 366 days");
  EXPECT_EQ(refusal(requests_per(-60s, 1)),
            "policies[0].limits[0].window: must be between 1 ms and 366 days");
  EXPECT_EQ(refusal(requests_per(std::chrono::days{367}, 1)),
            "policies[0].limits[0].window: must be between 1 ms and 366 days");
  EXPECT_EQ(refusal(requests_per(60s, std::int64_t{1} << 53)),
            "policies[0].limits[0].quota: must be at most 9007199254740991 (2^53 - 1)");
  EXPECT_EQ(refusal(requests_per(60s, INT64_MAX, Algorithm::token_bucket)),
            "policies[0].limits[0].quota: must be at most 9007199254740991 (2^53 - 1)");
  EXPECT_EQ(refusal(Policy{.limits = {in_flight(1)}}), "policies[0].id: must not be empty");
  EXPECT_EQ(refusal(Policy{.id = "p"}), "policies[0].limits: must not be empty");
  const Policy good{.id = "p", .limits = {in_flight(1)}};
  EXPECT_EQ(refusal(good), "accepted");
  EXPECT_EQ(refusal(good, {.max_buckets = 0}), "max_buckets: must be at least 1");
  EXPECT_EQ(refusal(good, {.concurrency_ttl = 0s}), "concurrency_ttl: must be between 3 s and 1 h");
  EXPECT_EQ(refusal(good, {.concurrency_ttl = 3601s}),
            "concurrency_ttl: must be between 3 s and 1 h");
}

TEST_F(Options, AZeroRefusesEverybodyAndOneAdmitsOne) {
  for (const Algorithm algorithm : {Algorithm::fixed_window, Algorithm::sliding_window,
                                    Algorithm::sliding_log, Algorithm::token_bucket}) {
    limit({{.id = "p", .limits = {requests_per(60s, 0, algorithm)}}});
    EXPECT_EQ(count_admitted(1000, {}), 0);
    EXPECT_EQ(admit("k").decision.refused_by()->verdict, Verdict::never_fits);
    EXPECT_EQ(admit("k", {.requests = 0}).decision.retry_after(), std::nullopt);
    limit({{.id = "p", .limits = {requests_per(60s, 1, algorithm)}}});
    EXPECT_EQ(count_admitted(2, {}), 1);
  }
}

TEST_F(Options, TheLargestQuotaIsCountedExactly) {
  limit({{.id = "p", .limits = {requests_per(60s, kMaxQuantity)}}});
  EXPECT_TRUE(admitted("k", {.requests = kMaxQuantity - 1}));
  EXPECT_FALSE(admitted("k", {.requests = 2}));
  EXPECT_TRUE(admitted("k", {.requests = 1}));
  EXPECT_FALSE(admitted("k", {.requests = 1}));
  const std::int64_t quota = std::int64_t{1} << 31;
  limit({{.id = "p", .limits = {requests_per(60s, quota, Algorithm::token_bucket)}}});
  EXPECT_TRUE(admitted("k", {.requests = quota}));
  EXPECT_FALSE(admitted("k", {.requests = 1}));
  EXPECT_EQ(admit("k", {.requests = quota + 1}).decision.refused_by()->verdict,
            Verdict::never_fits);
}

TEST_F(Options, ARefusedCostMovesNoCounter) {
  limit({{.id = "p", .limits = {requests_per(60s, 10)}}});
  ASSERT_TRUE(admitted("k"));
  EXPECT_FALSE(limiter_->admit(Attributes{}, {.requests = -5}));
  EXPECT_EQ(counter("p"), 1);
}

TEST_F(Options, APageOfAListHasBounds) {
  limit({{.id = "p", .limits = {in_flight(1)}}});
  EXPECT_EQ(limiter_->list("*", 0, 0).error().field, "page_size");
  EXPECT_EQ(limiter_->list("*", 0, 1001).error().field, "page_size");
}

}  // namespace
}  // namespace stint::test
