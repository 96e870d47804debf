#include "policy/condition.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::policy {
namespace {

bool holds(const Condition& condition, const Attributes& attributes) {
  return CompiledCondition(condition).holds(attributes);
}

// Whether the condition holds for a request whose team is `value`, or that has none.
bool for_team(const Condition& condition, std::optional<std::string_view> value) {
  Attributes attributes;
  if (value) attributes.set(Dimension::team, *value);
  return holds(condition, attributes);
}

const Condition kEqual = Condition::equal("team", "red");
const Condition kNotEqual = Condition::not_equal("team", "red");
const Condition kIn = Condition::in("team", {"red", "blue"});
const Condition kAbsent = Condition::equal("header:x-absent", "v");  // a leaf nobody meets

TEST(Leaf, EqualHoldsForTheValueOnly) {
  EXPECT_TRUE(for_team(kEqual, "red"));
  for (const char* other : {"", "Red", "red ", " red", "re", "redd", "blue"}) {
    EXPECT_FALSE(for_team(kEqual, other)) << other;
  }
}

TEST(Leaf, NotEqualHoldsForEveryOtherValue) {
  EXPECT_FALSE(for_team(kNotEqual, "red"));
  for (const char* other : {"", "Red", "red ", "blue"}) {
    EXPECT_TRUE(for_team(kNotEqual, other)) << other;
  }
}

TEST(Leaf, InHoldsForEachOfItsValues) {
  EXPECT_TRUE(for_team(kIn, "red"));
  EXPECT_TRUE(for_team(kIn, "blue"));
  for (const char* other : {"", "green", "red,blue", "redblue"}) {
    EXPECT_FALSE(for_team(kIn, other)) << other;
  }
}

TEST(Leaf, InDoesNotCareForTheOrderOfItsValuesNorForRepeatedOnes) {
  const Condition leaf = Condition::in("team", {"c", "a", "b", "a", ""});
  for (const char* value : {"a", "b", "c", ""}) EXPECT_TRUE(for_team(leaf, value)) << value;
  EXPECT_FALSE(for_team(leaf, "d"));
}

TEST(Leaf, NegatedSaysTheOppositeOfAValueThatIsThere) {
  for (const Condition& leaf : {kEqual, kNotEqual, kIn}) {
    for (const char* value : {"red", "blue", "green", ""}) {
      EXPECT_EQ(for_team(leaf.negated(), value), !for_team(leaf, value)) << value;
      EXPECT_EQ(for_team(leaf.negated().negated(), value), for_team(leaf, value)) << value;
    }
  }
}

TEST(Leaf, OnAnAbsentAttributeIsFalseNegatedOrNot) {
  for (const Condition& leaf : {kEqual, kNotEqual, kIn}) {
    EXPECT_FALSE(for_team(leaf, std::nullopt));
    EXPECT_FALSE(for_team(leaf.negated(), std::nullopt));
  }
}

TEST(Leaf, TellsAnEmptyValueFromAnAbsentOne) {
  const Condition empty = Condition::equal("team", "");
  EXPECT_TRUE(for_team(empty, ""));
  EXPECT_FALSE(for_team(empty, std::nullopt));
  EXPECT_TRUE(for_team(Condition::not_equal("team", "red"), ""));
  EXPECT_FALSE(for_team(Condition::not_equal("team", ""), ""));
}

TEST(Leaf, FindsHeadersInAnySpelling) {
  const Condition leaf = Condition::equal("header:X-Tenant", "Acme");
  Attributes attributes;
  attributes.set("header:x-tenANT", "Acme");
  EXPECT_TRUE(holds(leaf, attributes));
  attributes.set("header:x-tenant", "acme");  // of the value the case counts
  EXPECT_FALSE(holds(leaf, attributes));
}

TEST(Leaf, ComparesAllBytesOfAValue) {
  const std::string with_zero("a\0b", 3);
  EXPECT_TRUE(for_team(Condition::equal("team", with_zero), with_zero));
  EXPECT_FALSE(for_team(Condition::equal("team", with_zero), "a"));
  EXPECT_TRUE(for_team(Condition::in("team", {"\xFF", "\x01"}), "\xFF"));
}

TEST(Group, OfAllHoldsWhereEveryChildHolds) {
  const Condition group =
      Condition::all_of({Condition::equal("team", "red"), Condition::equal("model", "m")});
  Attributes attributes;
  EXPECT_FALSE(holds(group, attributes));
  attributes.set(Dimension::team, "red");
  EXPECT_FALSE(holds(group, attributes));
  attributes.set(Dimension::model, "m");
  EXPECT_TRUE(holds(group, attributes));
}

TEST(Group, OfAnyHoldsWhereOneChildHolds) {
  const Condition group =
      Condition::any_of({Condition::equal("team", "red"), Condition::equal("model", "m")});
  Attributes attributes;
  EXPECT_FALSE(holds(group, attributes));
  attributes.set(Dimension::team, "red");
  EXPECT_TRUE(holds(group, attributes));
  attributes.set(Dimension::model, "m");
  EXPECT_TRUE(holds(group, attributes));
  attributes.set(Dimension::team, "blue");
  EXPECT_TRUE(holds(group, attributes));
}

TEST(Group, NegatedSaysTheOpposite) {
  for (const Condition& group : {Condition::all_of({kEqual, kIn}), Condition::any_of({kEqual, kIn}),
                                 Condition::all_of({kEqual}), Condition::any_of({kNotEqual})}) {
    for (const std::optional<std::string_view> value :
         {std::optional<std::string_view>("red"), std::optional<std::string_view>("blue"),
          std::optional<std::string_view>("green"), std::optional<std::string_view>()}) {
      EXPECT_EQ(for_team(group.negated(), value), !for_team(group, value)) << value.value_or("-");
    }
  }
}

TEST(Group, NegatedOverAnAbsentLeafIsTrue) {
  EXPECT_TRUE(for_team(Condition::all_of({kAbsent}).negated(), "red"));
  EXPECT_TRUE(for_team(Condition::any_of({kAbsent}).negated(), "red"));
  EXPECT_TRUE(for_team(Condition::all_of({kAbsent.negated()}).negated(), "red"));
  EXPECT_TRUE(for_team(Condition::all_of({kEqual, kAbsent}).negated(), "red"));
  EXPECT_FALSE(for_team(Condition::any_of({kEqual, kAbsent}).negated(), "red"));
}

TEST(Group, AnAbsentLeafIsFalseToTheOthers) {
  EXPECT_FALSE(for_team(Condition::all_of({kEqual, kAbsent}), "red"));
  EXPECT_TRUE(for_team(Condition::any_of({kAbsent, kEqual}), "red"));
}

TEST(Group, OfGroupsIsJudgedFromTheInside) {
  // red, and not (with a model that is m or n)
  const Condition nested = Condition::all_of(
      {kEqual, Condition::any_of({Condition::equal("model", "m"), Condition::equal("model", "n")})
                   .negated()});
  Attributes attributes;
  attributes.set(Dimension::team, "red");
  EXPECT_TRUE(holds(nested, attributes));
  attributes.set(Dimension::model, "n");
  EXPECT_FALSE(holds(nested, attributes));
  EXPECT_TRUE(holds(nested.negated(), attributes));
  attributes.set(Dimension::model, "o");
  EXPECT_TRUE(holds(nested, attributes));
}

TEST(Condition, NegatedLeavesTheOriginalAsItIs) {
  const Condition leaf = Condition::in("team", {"a"});
  const Condition other = leaf.negated();
  EXPECT_FALSE(leaf.negate);
  EXPECT_TRUE(other.negate);
  EXPECT_EQ(other.op, Operator::in);
  EXPECT_EQ(other.values, std::vector<std::string>{"a"});
}

TEST(CompiledCondition, IsSelectiveIfOnlyItsValuesCanMeetIt) {
  const auto selective = [](const Condition& condition) {
    return CompiledCondition(condition).selective();
  };
  EXPECT_TRUE(selective(kEqual));
  EXPECT_TRUE(selective(kIn));
  EXPECT_FALSE(selective(kNotEqual));
  for (const Condition& leaf : {kEqual, kNotEqual, kIn}) EXPECT_FALSE(selective(leaf.negated()));
  EXPECT_FALSE(selective(Condition::all_of({kEqual})));
  EXPECT_FALSE(selective(Condition::any_of({kEqual}).negated()));
}

}  // namespace
}  // namespace stint::policy
