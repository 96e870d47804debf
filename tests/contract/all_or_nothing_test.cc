// An admission charges every bucket or none, in whatever order they stand.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/contract/store_contract.h"

namespace stint::store {
namespace {

STINT_STORE_CONTRACT(AllOrNothing);

TEST_P(AllOrNothing, ChargesEveryLimitOfEveryBucketWhenAllFit) {
  const auto two = limits({requests_per(kMinute, 10), tokens_per(kHour, 1000)});
  const auto one = limits({requests_per(kDay, 5)});
  const Call made = acquired({{"a", two, {{1}, {250}}}, {"b", one, {{2}}}});
  EXPECT_TRUE(made.admitted());
  EXPECT_EQ(value("a", 0), 1);
  EXPECT_EQ(value("a", 1), 250);
  EXPECT_EQ(value("b"), 2);
}

TEST_P(AllOrNothing, AFullTeamCostsTheKeyNothingInAnyOrderAndBesideAShadowThatRefuses) {
  const auto per_key = limits({requests_per(kMinute, 100)});
  const auto per_team = limits({requests_per(kMinute, 2)});
  const auto nothing = limits({requests_per(kMinute, 0)});
  std::vector<int> order = {0, 1, 2};
  int round = 0;
  do {
    for (const bool with_shadow : {false, true}) {
      const std::string suffix = std::to_string(round++);
      std::vector<BucketAsk> buckets;
      for (const int which : order) {
        if (which == 0) buckets.push_back({"key" + suffix, per_key});
        if (which == 1) buckets.push_back({"team" + suffix, per_team});
        if (which == 2 && with_shadow) {
          buckets.push_back({"shadow" + suffix, nothing, {{1}}, /*shadow=*/true});
        }
      }
      SCOPED_TRACE("round " + suffix);
      EXPECT_EQ(admitted_of(50, buckets), 2);
      EXPECT_EQ(value("key" + suffix), 2);
      EXPECT_EQ(value("team" + suffix), 2);
      EXPECT_EQ(value("shadow" + suffix), 0);
    }
  } while (std::ranges::next_permutation(order).found);
}

TEST_P(AllOrNothing, OneLimitThatRefusesKeepsTheOthersOfItsBucketUncharged) {
  for (std::size_t narrow = 0; narrow < 5; ++narrow) {
    std::vector<Limit> all = {requests_per(kMinute, 100),
                              requests_per(kMinute, 100, Algorithm::sliding_window),
                              requests_per(kMinute, 100, Algorithm::sliding_log),
                              requests_per(kMinute, 100, Algorithm::token_bucket), in_flight(100)};
    all[narrow].quota = 3;
    const auto set = limits(all);
    const std::string key = "narrow" + std::to_string(narrow);
    SCOPED_TRACE(key);
    EXPECT_EQ(admitted_of(20, {{key, set}}), 3);
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(remaining(key, set, i), all[i].quota - 3) << "limit " << i;
    }
  }
}

TEST_P(AllOrNothing, ARefusalSaysHowEachLimitStandsWithoutACharge) {
  const auto set = limits({requests_per(kMinute, 10), tokens_per(kMinute, 100)});
  acquired({{"a", set, {{1}, {60}}}});
  const Call refused = acquired({{"a", set, {{1}, {50}}}});
  EXPECT_EQ(refused.record().outcome, Outcome::refused);
  EXPECT_FALSE(refused.bucket().charged);
  EXPECT_EQ(refused.slot(0).verdict, Verdict::fits);
  EXPECT_EQ(refused.slot(0).remaining, 9);
  EXPECT_EQ(refused.slot(0).charged, limit::Charge{});
  EXPECT_EQ(refused.slot(1).verdict, Verdict::refused);
  EXPECT_EQ(refused.slot(1).remaining, 40);
  EXPECT_EQ(refused.slot(1).charged, limit::Charge{});
}

TEST_P(AllOrNothing, ARefusedCallMakesNoBucket) {
  const auto wide = limits({requests_per(kMinute, 100)});
  const auto nothing = limits({requests_per(kMinute, 0)});
  EXPECT_FALSE(acquired({{"wide", wide}, {"none", nothing}}).admitted());
  EXPECT_FALSE(acquired({{"none", nothing}, {"wide", wide}}).admitted());
  EXPECT_TRUE(list().empty());
}

TEST_P(AllOrNothing, AShadowBucketIsChargedWithAnAdmissionThatItWouldAdmit) {
  const auto set = limits({requests_per(kMinute, 10)});
  const Call made = acquired({{"real", set}, {"shadow", set, {{1}}, true}});
  EXPECT_TRUE(made.admitted());
  EXPECT_TRUE(made.bucket(1).charged);
  EXPECT_EQ(made.slot(0, 1).remaining, 9);
  EXPECT_EQ(value("shadow"), 1);
}

TEST_P(AllOrNothing, AShadowBucketThatWouldRefuseNeitherRefusesNorIsCharged) {
  const auto wide = limits({requests_per(kMinute, 10)});
  const auto narrow = limits({requests_per(kMinute, 1), tokens_per(kMinute, 100)});
  const std::vector<BucketAsk> buckets = {{"real", wide}, {"shadow", narrow, {{1}, {5}}, true}};
  EXPECT_TRUE(acquired(buckets).admitted());
  const Call second = acquired(buckets);
  EXPECT_TRUE(second.admitted());
  EXPECT_TRUE(second.bucket(0).charged);
  EXPECT_FALSE(second.bucket(1).charged);
  EXPECT_EQ(second.slot(0, 1).verdict, Verdict::refused);
  EXPECT_EQ(second.slot(0, 1).wait, kMinute);
  EXPECT_EQ(second.slot(1, 1).verdict, Verdict::fits);
  EXPECT_EQ(second.slot(1, 1).remaining, 95);
  EXPECT_EQ(value("real"), 2);
  EXPECT_EQ(value("shadow", 0), 1);
  EXPECT_EQ(value("shadow", 1), 5);
}

TEST_P(AllOrNothing, AShadowBucketIsNotChargedWhenTheAdmissionIsRefused) {
  const auto wide = limits({requests_per(kMinute, 10)});
  const auto nothing = limits({requests_per(kMinute, 0)});
  const Call made = acquired({{"shadow", wide, {{1}}, true}, {"real", nothing}});
  EXPECT_FALSE(made.admitted());
  EXPECT_FALSE(made.bucket(0).charged);
  EXPECT_EQ(made.slot(0, 0).verdict, Verdict::fits);
  EXPECT_EQ(made.slot(0, 0).remaining, 10);
  EXPECT_EQ(value("shadow"), 0);
}

TEST_P(AllOrNothing, ShadowBucketsAloneAdmitAlways) {
  const auto narrow = limits({requests_per(kMinute, 2)});
  EXPECT_EQ(admitted_of(10, {{"shadow", narrow, {{1}}, true}}), 10);
  EXPECT_EQ(value("shadow"), 2);
}

TEST_P(AllOrNothing, AnAdmissionOfNoBucketsIsAdmitted) {
  const Call made = acquired({});
  EXPECT_TRUE(made.admitted());
  EXPECT_TRUE(list().empty());
}

TEST_P(AllOrNothing, ARecordThatIsUsedAgainAfterARefusalIsJudgedAnew) {
  const auto set = limits({requests_per(kMinute, 1)});
  acquired({{"a", set}});
  Call again = call({{"a", set}});
  EXPECT_EQ(acquire(again), Outcome::refused);
  advance(kMinute);
  EXPECT_EQ(acquire(again), Outcome::admitted);
  EXPECT_EQ(again.slot().verdict, Verdict::fits);
  EXPECT_EQ(again.slot().wait, Duration{0});
  EXPECT_TRUE(again.bucket().charged);
}

}  // namespace
}  // namespace stint::store
