// An admission charges every bucket or none, whatever the order of the policies (C05, C06).
#include "tests/limiter/fixture.h"

namespace stint::test {
namespace {

using AllOrNothing = LimiterTest;

Policy key_policy() {
  return {.id = "key", .group_by = {"api_key"}, .limits = {requests_per(60s, 100)}};
}
Policy team_policy() {
  return {.id = "team", .group_by = {"team"}, .limits = {requests_per(60s, 2)}};
}
Policy shadow_of_zero() {
  return {.id = "shadow", .limits = {requests_per(60s, 0)}, .mode = Mode::shadow};
}

Attributes of_key_and_team() {
  Attributes attributes;
  attributes.set(Dimension::api_key, "k").set(Dimension::team, "t");
  return attributes;
}

TEST_F(AllOrNothing, ARefusalByTheTeamDoesNotChargeTheKey) {
  for (const auto& policies :
       std::vector<std::vector<Policy>>{{key_policy(), team_policy()},
                                        {team_policy(), key_policy()},
                                        {shadow_of_zero(), key_policy(), team_policy()},
                                        {key_policy(), shadow_of_zero(), team_policy()},
                                        {team_policy(), key_policy(), shadow_of_zero()}}) {
    limit(policies);
    EXPECT_EQ(count_admitted(50, of_key_and_team()), 2);
    EXPECT_EQ(counter("key:api_key=k"), 2);
    EXPECT_EQ(counter("team:team=t"), 2);
    EXPECT_EQ(counter("shadow"), std::nullopt);
  }
}

TEST_F(AllOrNothing, ALimitOfTheSamePolicyThatRefusesLeavesTheOthersUncharged) {
  limit({{.id = "p", .limits = {requests_per(1h, 100), requests_per(1s, 1)}}});
  EXPECT_EQ(count_admitted(20, {}), 1);
  EXPECT_EQ(counter("p"), 1);
}

// C06: one user's refused requests take nothing from what all share.
TEST_F(AllOrNothing, AnAbusiveUserDoesNotStarveTheSite) {
  const Policy site{.id = "site", .limits = {requests_per(60s, 100)}};
  const Policy user{.id = "user", .group_by = {"member"}, .limits = {requests_per(60s, 10)}};
  for (const auto& policies : std::vector<std::vector<Policy>>{{site, user}, {user, site}}) {
    limit(policies);
    Attributes abuser;
    abuser.set(Dimension::member, "x");
    EXPECT_EQ(count_admitted(200, abuser), 10);
    EXPECT_EQ(counter("site"), 10);
    int others = 0;
    for (int i = 0; i < 95; ++i) {
      const std::string name = "other-" + std::to_string(i);
      Attributes other;
      other.set(Dimension::member, name);
      others += admitted(other) ? 1 : 0;
    }
    EXPECT_EQ(others, 90);
  }
}

// C05: the client is told about the limit that refused, not about one that passed.
TEST_F(AllOrNothing, TheRefusalDescribesTheLimitThatRefused) {
  const Policy requests{.id = "a", .limits = {requests_per(60s, 60)}};
  const Policy tokens{.id = "b", .limits = {tokens_per(3600s, 1000)}};
  for (const auto& policies :
       std::vector<std::vector<Policy>>{{requests, tokens}, {tokens, requests}}) {
    limit(policies);
    Admission first = admit("k", {.input_tokens = 1000, .output_cap = 0});
    ASSERT_TRUE(first.admitted());
    ASSERT_TRUE(first.reservation.commit({.input_tokens = 1000}));
    clock_.advance(10s);
    const Admission second = admit("k");
    ASSERT_EQ(second.decision.outcome, Outcome::refused);
    const LimitStatus* refused = second.decision.refused_by();
    ASSERT_NE(refused, nullptr);
    EXPECT_EQ(refused->policy_id, "b");
    EXPECT_EQ(refused->limit.quota, 1000);
    EXPECT_EQ(refused->remaining, 0);
    EXPECT_EQ(second.decision.retry_after(), 3590s);
    EXPECT_EQ(refused->reset, 3590s);
    clock_.advance(3590s);
  }
}

TEST_F(AllOrNothing, OfSeveralThatRefuseTheLongestWaitIsReported) {
  limit({{.id = "minute", .limits = {requests_per(60s, 1)}},
         {.id = "day", .limits = {requests_per(24h, 1)}},
         {.id = "hour", .limits = {requests_per(1h, 1)}}});
  EXPECT_TRUE(admitted("k"));
  const Admission refused = admit("k");
  EXPECT_EQ(refused.decision.refused_by()->policy_id, "day");
  EXPECT_EQ(refused.decision.retry_after(), 24h);
}

TEST_F(AllOrNothing, ALimitThatNeverFitsIsReportedWithoutAWait) {
  limit({{.id = "day", .limits = {requests_per(24h, 6)}},
         {.id = "second", .limits = {requests_per(1s, 5)}}});
  EXPECT_TRUE(admitted("k"));
  const Admission refused = admit("k", {.requests = 6});
  EXPECT_EQ(refused.decision.refused_by()->policy_id, "second");
  EXPECT_EQ(refused.decision.refused_by()->verdict, Verdict::never_fits);
  EXPECT_EQ(refused.decision.retry_after(), std::nullopt);
}

TEST_F(AllOrNothing, ALoneClientThatWaitsAsToldIsAdmittedAndOneTickEarlierRefused) {
  for (const Algorithm algorithm : {Algorithm::fixed_window, Algorithm::sliding_window,
                                    Algorithm::sliding_log, Algorithm::token_bucket}) {
    limit(
        {{.id = "p", .limits = {requests_per(7s, 3, algorithm), requests_per(60s, 5, algorithm)}}});
    clock_.advance(1234567us);
    for (int round = 0; round < 30; ++round) {
      const Admission admission = admit("k");
      if (admission.admitted()) {
        clock_.advance(311ms);
        continue;
      }
      const Duration wait = *admission.decision.retry_after();
      clock_.advance(wait - 1us);
      ASSERT_FALSE(admitted("k")) << to_string(algorithm) << " round " << round;
      clock_.advance(1us);
      ASSERT_TRUE(admitted("k")) << to_string(algorithm) << " round " << round;
    }
  }
}

TEST_F(AllOrNothing, WithoutAPolicyThatAppliesTheRequestIsAdmittedWithoutLimits) {
  limit({team_policy()});
  Admission admission = admit("k");
  EXPECT_TRUE(admission.admitted());
  EXPECT_TRUE(admission.decision.limits.empty());
  EXPECT_EQ(admission.decision.tightest(), nullptr);
  EXPECT_TRUE(admission.reservation.commit({.input_tokens = 5}));
}

TEST_F(AllOrNothing, PeekSaysWhatAdmitWouldSayAndChargesNothing) {
  limit({key_policy(), team_policy()});
  for (int i = 0; i < 10; ++i) {
    const auto peeked = limiter_->peek(of_key_and_team());
    ASSERT_TRUE(peeked);
    EXPECT_TRUE(peeked->admitted());
    EXPECT_EQ(peeked->limits[1].remaining, 1);
  }
  EXPECT_EQ(limiter_->stats().buckets, 0U);
  EXPECT_EQ(count_admitted(3, of_key_and_team()), 2);
  EXPECT_EQ(limiter_->peek(of_key_and_team())->outcome, Outcome::refused);
}

TEST_F(AllOrNothing, AShadowPolicyIsChargedOnlyWhenItWouldAdmitToo) {
  Policy shadow{.id = "shadow", .limits = {requests_per(60s, 3)}, .mode = Mode::shadow};
  limit({{.id = "p", .limits = {requests_per(60s, 5)}}, shadow});
  EXPECT_EQ(count_admitted(9, {}), 5);
  EXPECT_EQ(counter("p"), 5);
  EXPECT_EQ(counter("shadow"), 3);
  // Two of the admitted ones and the four refused ones.
  EXPECT_EQ(limiter_->stats().shadow_refused, 6U);
  const Admission last = admit(Attributes{});
  EXPECT_EQ(last.decision.refused_by()->policy_id, "p");
  EXPECT_EQ(last.decision.tightest()->policy_id, "p");
}

}  // namespace
}  // namespace stint::test
