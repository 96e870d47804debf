#include "admission/learned_outputs.h"

#include <gtest/gtest.h>

#include <string>

#include "stint/limit.h"

namespace stint::admission {
namespace {

TEST(LearnedOutputs, KnowsNothingAtFirstAndThenTheFirstAnswer) {
  LearnedOutputs learned(1);
  const auto caller = learned.caller("key", "model");
  EXPECT_EQ(learned.mean(caller), std::nullopt);
  learned.learn(caller, 800);
  EXPECT_EQ(learned.mean(caller), 800);
}

TEST(LearnedOutputs, FollowsTheAnswersByAnEighthEach) {
  LearnedOutputs learned(1);
  const auto caller = learned.caller("key", "model");
  learned.learn(caller, 800);
  learned.learn(caller, 0);
  EXPECT_EQ(learned.mean(caller), 700);
  learned.learn(caller, 1500);
  EXPECT_EQ(learned.mean(caller), 800);
  for (int i = 0; i < 200; ++i) learned.learn(caller, 8);
  EXPECT_EQ(learned.mean(caller), 9);  // within a token, from above
}

TEST(LearnedOutputs, TellsKeysModelsAndTheirAbsenceApart) {
  LearnedOutputs learned(1);
  const auto caller = learned.caller("ab", "c");
  EXPECT_NE(caller, learned.caller("a", "bc"));
  EXPECT_NE(caller, learned.caller("ab", std::nullopt));
  EXPECT_NE(learned.caller("", "c"), learned.caller(std::nullopt, "c"));
  EXPECT_NE(learned.caller("ab", ""), learned.caller("ab", std::nullopt));
  EXPECT_NE(learned.caller(std::nullopt, std::nullopt), 0U);
}

TEST(LearnedOutputs, TheLargestAnswerDoesNotWrap) {
  LearnedOutputs learned(1);
  const auto caller = learned.caller("key", "model");
  for (int i = 0; i < 10; ++i) learned.learn(caller, kMaxQuantity);
  EXPECT_EQ(learned.mean(caller), kMaxQuantity);
}

// A flood of keys takes places, never memory: what is forgotten is expected like a stranger's.
TEST(LearnedOutputs, AFloodOfCallersNeverMixesTwo) {
  LearnedOutputs learned(7);
  for (int i = 0; i < 100'000; ++i) {
    learned.learn(learned.caller(std::to_string(i), "m"), i);
    ASSERT_EQ(learned.mean(learned.caller(std::to_string(i), "m")), i);
  }
  for (int i = 0; i < 100'000; ++i) {
    const auto mean = learned.mean(learned.caller(std::to_string(i), "m"));
    if (mean) {
      ASSERT_EQ(*mean, i);
    }
  }
}

}  // namespace
}  // namespace stint::admission
