#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "policy/table.h"
#include "stint/policy.h"

namespace stint {
namespace {

using namespace std::chrono_literals;

Policy policy(std::string id = "p") {
  Policy made;
  made.id = std::move(id);
  made.limits = {requests_per(60s, 10)};
  return made;
}

Policy with_conditions(std::vector<Condition> conditions) {
  Policy made = policy();
  made.conditions = std::move(conditions);
  return made;
}

Policy with_group_by(std::vector<std::string> group_by) {
  Policy made = policy();
  made.group_by = std::move(group_by);
  return made;
}

Policy with_limits(std::vector<Limit> limits) {
  Policy made = policy();
  made.limits = std::move(limits);
  return made;
}

Condition leaf() { return Condition::equal("team", "red"); }

// The path of the field at fault; empty if there is none. A table is made of the same policies
// or of none.
std::string fault(const std::vector<Policy>& policies) {
  const auto valid = validate(policies);
  const auto table = policy::Table::create(policies);
  EXPECT_EQ(valid.has_value(), table.has_value());
  if (valid) return "";
  EXPECT_EQ(valid.error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(valid.error().message.empty());
  EXPECT_FALSE(valid.error().field.empty());
  if (!table) {
    EXPECT_EQ(to_string(table.error()), to_string(valid.error()));
  }
  return valid.error().field;
}

std::string fault(const Policy& made) { return fault(std::vector{made}); }

TEST(Validate, AcceptsNoPoliciesAndThePlainestOne) {
  EXPECT_EQ(fault(std::vector<Policy>{}), "");
  EXPECT_EQ(fault(policy()), "");
}

TEST(Validate, AnIdHas1To64Bytes) {
  EXPECT_EQ(fault(policy("")), "policies[0].id");
  EXPECT_EQ(fault(policy("i")), "");
  EXPECT_EQ(fault(policy(std::string(64, 'i'))), "");
  EXPECT_EQ(fault(policy(std::string(65, 'i'))), "policies[0].id");
  EXPECT_EQ(fault({policy(), policy(std::string(65, 'i'))}), "policies[1].id");
}

TEST(Validate, AnIdMayHaveAnyBytes) {
  for (const std::string id : {"a:b", "a=b", "%", "{x}", "\xFF", "\n", " "}) {
    EXPECT_EQ(fault(policy(id)), "") << id;
  }
}

TEST(Validate, IdsAreUniqueByteByByte) {
  EXPECT_EQ(fault({policy("a"), policy("b"), policy("a")}), "policies[2].id");
  EXPECT_EQ(fault({policy("a"), policy("A"), policy("a ")}), "");
}

TEST(Validate, NamesNeedNotBeThereNorUnique) {
  Policy one = policy("a");
  Policy two = policy("b");
  one.name = two.name = "same";
  EXPECT_EQ(fault({one, two}), "");
}

TEST(Validate, ALeafNamesAnAttribute) {
  EXPECT_EQ(fault(with_conditions({Condition::equal("", "v")})),
            "policies[0].conditions[0].dimension");
  EXPECT_EQ(fault(with_conditions({leaf(), Condition::equal("header:", "v")})),
            "policies[0].conditions[1].dimension");
  EXPECT_EQ(fault(with_conditions({Condition{}})), "policies[0].conditions[0].dimension");
  EXPECT_EQ(fault(with_conditions({Condition::equal("any name at all", "v")})), "");
}

TEST(Validate, EqualAndNotEqualTakeExactlyOneValue) {
  for (Condition one : {leaf(), Condition::not_equal("team", "red")}) {
    one.values.clear();
    EXPECT_EQ(fault(with_conditions({one})), "policies[0].conditions[0].value");
    one.values = {"a", "b"};
    EXPECT_EQ(fault(with_conditions({one})), "policies[0].conditions[0].value");
    one.values = {""};
    EXPECT_EQ(fault(with_conditions({one})), "");
  }
}

TEST(Validate, InTakesAtLeastOneValue) {
  EXPECT_EQ(fault(with_conditions({Condition::in("team", {})})), "policies[0].conditions[0].value");
  EXPECT_EQ(fault(with_conditions({Condition::in("team", {""})})), "");
  EXPECT_EQ(fault(with_conditions({Condition::in("team", std::vector<std::string>(1000, "v"))})),
            "");
}

TEST(Validate, PathsLeadIntoGroups) {
  const Condition no_value = Condition::in("team", {});
  EXPECT_EQ(fault({policy("a"), with_conditions({Condition::any_of({leaf(), leaf(), no_value})})}),
            "policies[1].conditions[0].children[2].value");
  EXPECT_EQ(fault(with_conditions(
                {leaf(), Condition::all_of({leaf(), Condition::any_of({leaf(), no_value})})})),
            "policies[0].conditions[1].children[1].children[1].value");
}

TEST(Validate, AGroupHasNoAttributeAndNoValuesOfItsOwn) {
  Condition group = Condition::all_of({leaf()});
  group.dimension = "team";
  EXPECT_EQ(fault(with_conditions({group})), "policies[0].conditions[0].dimension");
  group.dimension.clear();
  group.values = {"red"};
  EXPECT_EQ(fault(with_conditions({group})), "policies[0].conditions[0].dimension");
}

TEST(Validate, ConditionsNestThreeDeep) {
  const Condition two = Condition::all_of({leaf()});
  const Condition three = Condition::any_of({two});
  const Condition four = Condition::all_of({leaf(), three});
  EXPECT_EQ(fault(with_conditions({leaf(), two, three})), "");
  EXPECT_EQ(fault(with_conditions({four})),
            "policies[0].conditions[0].children[1].children[0].children[0]");
}

TEST(Validate, AVeryDeepConditionIsRefusedLikeOneThatIsOneTooDeep) {
  Condition deep = leaf();
  for (int i = 0; i < 200; ++i) deep = Condition::all_of({std::move(deep)});
  EXPECT_EQ(fault(with_conditions({deep})),
            "policies[0].conditions[0].children[0].children[0].children[0]");
}

TEST(Validate, APolicyHasAtMost16Leaves) {
  const std::vector<Condition> eight(8, leaf());
  EXPECT_EQ(fault(with_conditions(std::vector<Condition>(16, leaf()))), "");
  EXPECT_EQ(fault(with_conditions(std::vector<Condition>(17, leaf()))),
            "policies[0].conditions[16]");
  EXPECT_EQ(fault(with_conditions({Condition::any_of(eight), Condition::any_of(eight)})), "");
  EXPECT_EQ(fault(with_conditions({Condition::any_of(eight), Condition::any_of(eight), leaf()})),
            "policies[0].conditions[2]");
  EXPECT_EQ(fault(with_conditions({leaf(), Condition::any_of(eight), Condition::any_of(eight)})),
            "policies[0].conditions[2].children[7]");
}

TEST(Validate, LeavesAreCountedForEachPolicyByItself) {
  Policy one = with_conditions(std::vector<Condition>(16, leaf()));
  Policy two = one;
  two.id = "q";
  EXPECT_EQ(fault({one, two}), "");
}

TEST(Validate, GroupByNamesAttributes) {
  EXPECT_EQ(fault(with_group_by({"team", ""})), "policies[0].group_by[1]");
  EXPECT_EQ(fault(with_group_by({"header:"})), "policies[0].group_by[0]");
  EXPECT_EQ(fault(with_group_by({"team", "header:x", "plan"})), "");
}

TEST(Validate, GroupByHasAtMostEightAttributes) {
  std::vector<std::string> names{"1", "2", "3", "4", "5", "6", "7", "8"};
  EXPECT_EQ(fault(with_group_by(names)), "");
  names.emplace_back("9");
  EXPECT_EQ(fault(with_group_by(names)), "policies[0].group_by");
}

TEST(Validate, GroupByNamesAnAttributeOnce) {
  EXPECT_EQ(fault(with_group_by({"team", "member", "team"})), "policies[0].group_by[2]");
  EXPECT_EQ(fault(with_group_by({"header:X-A", "header:x-a"})), "policies[0].group_by[1]");
  EXPECT_EQ(fault(with_group_by({"plan", "Plan"})), "");
  EXPECT_EQ(fault(with_group_by({"header:x", "HEADER:x"})), "");
  EXPECT_EQ(fault(with_group_by({"HEADER:x", "header:x"})), "");
}

TEST(Validate, APolicyHas1To16Limits) {
  EXPECT_EQ(fault(with_limits({})), "policies[0].limits");
  std::vector<Limit> limits;
  for (int i = 1; i <= 16; ++i) limits.push_back(requests_per(std::chrono::seconds{i}, 10));
  EXPECT_EQ(fault(with_limits(limits)), "");
  limits.push_back(requests_per(17s, 10));
  EXPECT_EQ(fault(with_limits(limits)), "policies[0].limits");
}

TEST(Validate, PathsLeadIntoLimits) {
  EXPECT_EQ(fault(with_limits({requests_per(60s, -1)})), "policies[0].limits[0].quota");
  EXPECT_EQ(fault(with_limits({requests_per(60s, 1), requests_per(0s, 1)})),
            "policies[0].limits[1].window");
  Limit burst = requests_per(60s, 1);
  burst.burst = 5;
  EXPECT_EQ(fault({policy("a"), policy("b"), with_limits({in_flight(1), burst})}),
            "policies[2].limits[1].burst");
  Limit misfit = in_flight(1);
  misfit.unit = Unit::requests;
  EXPECT_EQ(fault(with_limits({misfit})), "policies[0].limits[0].algorithm");
  misfit.unit = static_cast<Unit>(99);
  EXPECT_EQ(fault(with_limits({misfit})), "policies[0].limits[0].unit");
}

TEST(Validate, ALimitOfZeroIsALimit) {
  EXPECT_EQ(fault(with_limits({requests_per(60s, 0), in_flight(0)})), "");
}

TEST(Validate, NoTwoLimitsShareUnitWindowAndAlgorithm) {
  EXPECT_EQ(fault(with_limits({requests_per(60s, 1), tokens_per(60s, 1), requests_per(60s, 2)})),
            "policies[0].limits[2]");
  EXPECT_EQ(fault(with_limits({in_flight(1), in_flight(2)})), "policies[0].limits[1]");
  EXPECT_EQ(fault(with_limits({requests_per(60s, 1), tokens_per(60s, 1), requests_per(61s, 1),
                               requests_per(60s, 1, Algorithm::sliding_window)})),
            "");
}

TEST(Validate, ValuesOutsideAnEnumerationAreRefused) {
  Policy made = policy();
  made.mode = static_cast<Mode>(2);
  EXPECT_EQ(fault(made), "policies[0].mode");
  made = policy();
  made.token_admission = static_cast<TokenAdmission>(2);
  EXPECT_EQ(fault(made), "policies[0].token_admission");
  made = policy();
  made.on_store_error = static_cast<OnStoreError>(4);
  EXPECT_EQ(fault(made), "policies[0].on_store_error");
  Condition condition = leaf();
  condition.op = static_cast<Operator>(3);
  EXPECT_EQ(fault(with_conditions({condition})), "policies[0].conditions[0].operator");
  condition = Condition::any_of({leaf()});
  condition.logic = static_cast<Logic>(2);
  EXPECT_EQ(fault(with_conditions({condition})), "policies[0].conditions[0].logic");
}

TEST(Validate, ReportsTheFirstFault) {
  Policy bad = with_conditions({Condition::in("team", {})});
  bad.limits.clear();
  EXPECT_EQ(fault({bad, policy("")}), "policies[0].conditions[0].value");
}

TEST(ParseOperator, KnowsThoseThatExist) {
  EXPECT_EQ(parse_operator("=="), Operator::equal);
  EXPECT_EQ(parse_operator("~="), Operator::not_equal);
  EXPECT_EQ(parse_operator("in"), Operator::in);
}

TEST(ParseOperator, SaysWhichAreNotAvailableYet) {
  const auto said = [](std::string_view text) { return to_string(parse_operator(text).error()); };
  EXPECT_EQ(said("~~"), "operator: '~~' is not available yet");
  EXPECT_EQ(said("~*"), "operator: '~*' is not available yet");
  EXPECT_EQ(said("ipmatch"), "operator: 'ipmatch' is not available yet");
}

TEST(ParseOperator, RefusesEverythingElse) {
  for (const std::string_view text : {"", "=", "===", " ==", "!=", "IN", "not in", "regex"}) {
    const auto parsed = parse_operator(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(to_string(parsed.error()),
              "operator: '" + std::string(text) + "' is none of ==, ~=, in");
  }
}

}  // namespace
}  // namespace stint
