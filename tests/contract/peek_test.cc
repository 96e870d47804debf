// A peek says what an admission would say, and changes nothing.
#include <string>
#include <vector>

#include "tests/contract/store_contract.h"

namespace stint::store {
namespace {

STINT_STORE_CONTRACT(Peek);

limit::LimitSetPtr mixed() {
  return limits({requests_per(kMinute, 5), requests_per(kMinute, 7, Algorithm::sliding_window),
                 requests_per(kMinute, 6, Algorithm::sliding_log), token_bucket(3, kMinute, 8),
                 in_flight(6)});
}

TEST_P(Peek, SaysWhatTheAdmissionThenSays) {
  const auto first = mixed();
  const auto second = limits({requests_per(kHour, 30)});
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    const std::vector<BucketAsk> buckets = {
        {"a", first}, {"b", second, {{.need = 1, .charge = 2}}}, {"c", first, {{1}}, true}};
    const Call seen = peeked(buckets);
    const Call made = acquired(buckets);
    EXPECT_EQ(seen.record().outcome, made.record().outcome);
    EXPECT_EQ(seen.record().now, made.record().now);
    for (std::size_t k = 0; k < made.record().slots.size(); ++k) {
      const LimitSlot& told = seen.record().slots[k];
      const LimitSlot& then = made.record().slots[k];
      EXPECT_EQ(told.verdict, then.verdict) << "slot " << k;
      EXPECT_EQ(told.remaining, then.remaining) << "slot " << k;
      EXPECT_EQ(told.reset, then.reset) << "slot " << k;
      EXPECT_EQ(told.wait, then.wait) << "slot " << k;
    }
    advance(Duration{4'321'987});
  }
}

TEST_P(Peek, ChargesNothing) {
  const auto set = mixed();
  ASSERT_TRUE(acquired({{"a", set}}).admitted());
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(peeked({{"a", set}}).admitted());
  const Call seen = peeked({{"a", set}});
  EXPECT_EQ(seen.slot(0).remaining, 3) << "5 - 1 - the one it asks for";
  EXPECT_EQ(remaining("a", set, 0), 4);
  EXPECT_EQ(value("a", 4), 1);
}

TEST_P(Peek, ChargesNoBucket) {
  const Call seen = peeked({{"a", mixed()}});
  EXPECT_TRUE(seen.admitted());
  EXPECT_FALSE(seen.bucket().charged);
}

TEST_P(Peek, CreatesNothing) {
  EXPECT_TRUE(peeked({{"a", mixed()}, {"b", mixed()}}).admitted());
  EXPECT_TRUE(list().empty());
}

TEST_P(Peek, OfARefusalTellsTheSameWait) {
  const auto set = limits({requests_per(kMinute, 1)});
  ASSERT_TRUE(admits("a", set));
  advance(20 * kSecond);
  const Call seen = peeked({{"a", set}});
  EXPECT_EQ(seen.record().outcome, Outcome::refused);
  EXPECT_EQ(seen.slot().verdict, Verdict::refused);
  EXPECT_EQ(seen.wait(), 40 * kSecond);
}

TEST_P(Peek, ByOtherLimitsDoesNotTouchTheBucket) {
  // Somebody asks what other policies would say; the ones in force go on.
  const auto in_force = limits({requests_per(kMinute, 5), tokens_per(kHour, 100)});
  const auto others = limits({requests_per(kHour, 3), token_bucket(1, kHour, 1)});
  ASSERT_TRUE(acquired({{"a", in_force, {{1}, {40}}}}).admitted());
  EXPECT_TRUE(peeked({{"a", others}}).admitted());
  EXPECT_EQ(remaining("a", in_force, 0), 4);
  EXPECT_EQ(remaining("a", in_force, 1), 60);
  const auto lower = limits({requests_per(kMinute, 1), tokens_per(kHour, 10)});
  EXPECT_EQ(peeked({{"a", lower}}).record().outcome, Outcome::refused);
  EXPECT_EQ(remaining("a", in_force, 0), 4);
  EXPECT_EQ(value("a", 1), 40);
}

TEST_P(Peek, AtALaterTimeSeesWhatIsFreeThen) {
  const auto set = limits({token_bucket(60, kMinute, 3)});
  ASSERT_TRUE(admits("a", set, 3));
  EXPECT_FALSE(peeked({{"a", set}}).admitted());
  advance(2 * kSecond);
  EXPECT_EQ(peeked({{"a", set}}).slot().remaining, 1);
  EXPECT_EQ(peeked({{"a", set}}).slot().remaining, 1);
}

TEST_P(Peek, TakesNoLease) {
  const auto set = limits({in_flight(1)});
  Call seen = peeked({{"a", set}});
  EXPECT_TRUE(seen.admitted());
  EXPECT_EQ(seen.slot().remaining, 0) << "as if charged";
  renew({&seen});
  EXPECT_TRUE(admits("a", set));
}

}  // namespace
}  // namespace stint::store
