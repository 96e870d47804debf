#include "stint/decision.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace stint {
namespace {

using namespace std::chrono_literals;

LimitStatus standing(std::string_view id, const Limit& limit, std::int64_t remaining) {
  return {.policy_id = id, .policy_name = id, .limit = limit, .remaining = remaining};
}

LimitStatus refused(std::string_view id, const Limit& limit, Duration wait) {
  LimitStatus status = standing(id, limit, 0);
  status.verdict = Verdict::refused;
  status.wait = wait;
  return status;
}

LimitStatus never(std::string_view id, const Limit& limit) {
  LimitStatus status = standing(id, limit, 0);
  status.verdict = Verdict::never_fits;
  return status;
}

LimitStatus shadow(LimitStatus status) {
  status.shadow = true;
  return status;
}

LimitStatus skipped(std::string_view id) {
  LimitStatus status = standing(id, in_flight(1), 0);
  status.verdict = Verdict::skipped;
  return status;
}

Decision decision(Outcome outcome, std::vector<LimitStatus> limits) {
  Decision result;
  result.outcome = outcome;
  result.limits = std::move(limits);
  return result;
}

std::string refuser(std::vector<LimitStatus> limits) {
  const Decision result = decision(Outcome::refused, std::move(limits));
  const LimitStatus* status = result.refused_by();
  return status == nullptr ? "" : std::string(status->policy_id);
}

std::string tightest(std::vector<LimitStatus> limits) {
  const Decision result = decision(Outcome::admitted, std::move(limits));
  const LimitStatus* status = result.tightest();
  return status == nullptr ? "" : std::string(status->policy_id);
}

// The same answer in both orders.
std::string refuser_either_way(std::vector<LimitStatus> limits) {
  const std::string forward = refuser(limits);
  std::ranges::reverse(limits);
  EXPECT_EQ(refuser(std::move(limits)), forward);
  return forward;
}

std::string tightest_either_way(std::vector<LimitStatus> limits) {
  const std::string forward = tightest(limits);
  std::ranges::reverse(limits);
  EXPECT_EQ(tightest(std::move(limits)), forward);
  return forward;
}

TEST(Decision, IsUndecidedUntilItIsMade) {
  const Decision result;
  EXPECT_FALSE(result.admitted());
  EXPECT_EQ(result.refused_by(), nullptr);
  EXPECT_EQ(result.retry_after(), std::nullopt);
  EXPECT_EQ(result.tightest(), nullptr);
}

TEST(Decision, IsRefusedByTheLongestWaitWhateverTheOrder) {
  const auto minute = refused("minute", requests_per(60s, 60), 12s);
  const auto hour = refused("hour", tokens_per(1h, 1'000), 40min);
  const auto fits = standing("day", requests_per(24h, 5'000), 0);
  EXPECT_EQ(refuser_either_way({minute, hour, fits}), "hour");
  EXPECT_EQ(decision(Outcome::refused, {minute, fits, hour}).retry_after(), Duration{40min});
}

TEST(Decision, IsRefusedByWhatNeverFitsRatherThanByAnyWait) {
  const auto hour = refused("hour", tokens_per(1h, 1'000), 40min);
  const auto zero = never("zero", requests_per(1s, 0));
  EXPECT_EQ(refuser_either_way({hour, zero}), "zero");
  EXPECT_EQ(decision(Outcome::refused, {hour, zero}).retry_after(), std::nullopt);
}

TEST(Decision, EqualWaitsAreToldApartByWindowThenQuotaThenId) {
  EXPECT_EQ(refuser_either_way(
                {refused("a", requests_per(60s, 5), 9s), refused("b", requests_per(1h, 50), 9s)}),
            "b");
  EXPECT_EQ(refuser_either_way(
                {refused("a", requests_per(60s, 5), 9s), refused("b", requests_per(60s, 4), 9s)}),
            "b");
  EXPECT_EQ(refuser_either_way(
                {refused("a", requests_per(60s, 5), 9s), refused("b", requests_per(60s, 5), 9s)}),
            "b");
}

TEST(Decision, IsNotRefusedByShadowOrSkippedLimits) {
  const auto real = refused("real", requests_per(1s, 1), 1s);
  EXPECT_EQ(refuser_either_way({shadow(refused("shadow", requests_per(1h, 1), 1h)), real,
                                shadow(never("zero", requests_per(1h, 0))), skipped("slots")}),
            "real");
}

TEST(Decision, IsRefusedByNobodyUnlessItIsRefused) {
  for (const Outcome outcome : {Outcome::admitted, Outcome::undecided}) {
    const auto result = decision(outcome, {shadow(refused("shadow", requests_per(1h, 1), 1h))});
    EXPECT_EQ(result.refused_by(), nullptr);
    EXPECT_EQ(result.retry_after(), std::nullopt);
  }
}

TEST(Tightest, IsTheSmallestShareThatRemains) {
  EXPECT_EQ(tightest_either_way({standing("half", requests_per(60s, 10), 5),
                                 standing("third", requests_per(60s, 3'000), 1'000),
                                 standing("most", requests_per(60s, 100), 90)}),
            "third");
}

TEST(Tightest, IsTheLongerWindowOfEqualShares) {
  EXPECT_EQ(tightest_either_way({standing("minute", requests_per(60s, 10), 5),
                                 standing("hour", requests_per(1h, 1'000), 500)}),
            "hour");
}

TEST(Tightest, IsTheSmallerIdWhenAllElseIsEqual) {
  EXPECT_EQ(tightest_either_way({standing("a", requests_per(60s, 10), 5),
                                 standing("b", requests_per(60s, 20), 10)}),
            "a");
}

TEST(Tightest, MeasuresATokenBucketByItsBurst) {
  Limit bucket = requests_per(60s, 10, Algorithm::token_bucket);
  bucket.burst = 100;
  EXPECT_EQ(tightest_either_way(
                {standing("bucket", bucket, 40), standing("window", requests_per(60s, 10), 5)}),
            "bucket");
}

TEST(Tightest, IsALimitOfZeroBeforeAnyThatHasSomethingLeft) {
  EXPECT_EQ(tightest_either_way({standing("zero", requests_per(60s, 0), 0),
                                 standing("last", requests_per(1h, 1'000'000), 1)}),
            "zero");
}

TEST(Tightest, IsFoundExactlyAmongTheLargestQuotas) {
  EXPECT_EQ(
      tightest_either_way({standing("a", requests_per(60s, kMaxQuantity), kMaxQuantity - 1),
                           standing("b", requests_per(60s, kMaxQuantity - 1), kMaxQuantity - 2)}),
      "b");
}

TEST(Tightest, IsNoShadowOrSkippedLimit) {
  EXPECT_EQ(tightest_either_way({shadow(standing("shadow", requests_per(60s, 10), 0)),
                                 skipped("slots"), standing("real", requests_per(60s, 10), 9)}),
            "real");
  EXPECT_EQ(tightest({shadow(standing("shadow", requests_per(60s, 10), 0)), skipped("slots")}), "");
}

}  // namespace
}  // namespace stint
