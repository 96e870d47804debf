#include "policy/table.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint::policy {
namespace {

using namespace std::chrono_literals;
using Ids = std::vector<std::string>;

Policy make(std::string id, std::vector<Condition> conditions = {},
            std::vector<std::string> group_by = {}) {
  Policy policy;
  policy.id = std::move(id);
  policy.conditions = std::move(conditions);
  policy.group_by = std::move(group_by);
  policy.limits = {requests_per(60s, 10)};
  return policy;
}

std::shared_ptr<const Table> table_of(const std::vector<Policy>& policies) {
  return Table::create(policies).value();  // throws if invalid, which fails the test
}

Ids matched(const Table& table, const Attributes& attributes) {
  Ids ids;
  for (const CompiledPolicy* policy : table.match(attributes)) ids.push_back(policy->id);
  return ids;
}

// The full key of the bucket of the one policy; empty if it does not apply.
std::string bucket(const Policy& policy, const Attributes& attributes) {
  const auto table = table_of({policy});
  const auto matches = table->match(attributes);
  if (matches.empty()) return "";
  std::string out = "what was there before ";
  const auto span = matches.front()->write_key(out, attributes);
  EXPECT_EQ(span.key_begin, span.text_begin);
  return out.substr(span.text_begin, span.text_size);
}

Attributes team(std::string_view value) {
  Attributes attributes;
  attributes.set(Dimension::team, value);
  return attributes;
}

TEST(Table, WithoutPoliciesMatchesNothing) {
  EXPECT_TRUE(matched(*table_of({}), {}).empty());
  EXPECT_TRUE(matched(*table_of({}), team("red")).empty());
}

TEST(Table, APolicyWithoutConditionsMatchesEveryRequest) {
  const auto table = table_of({make("all")});
  EXPECT_EQ(matched(*table, {}), Ids{"all"});
  EXPECT_EQ(matched(*table, team("red")), Ids{"all"});
}

TEST(Table, AllConditionsMustHold) {
  const auto table =
      table_of({make("p", {Condition::equal("team", "red"), Condition::equal("model", "m"),
                           Condition::not_equal("host", "h")})});
  Attributes attributes = team("red");
  EXPECT_EQ(matched(*table, attributes), Ids{});
  attributes.set(Dimension::model, "m");
  EXPECT_EQ(matched(*table, attributes), Ids{});
  attributes.set(Dimension::host, "other");
  EXPECT_EQ(matched(*table, attributes), Ids{"p"});
  attributes.set(Dimension::host, "h");
  EXPECT_EQ(matched(*table, attributes), Ids{});
}

TEST(Table, KeepsTheOrderOfThePoliciesHoweverTheyAreFound) {
  const auto table =
      table_of({make("by model", {Condition::equal("model", "m")}), make("looked at"),
                make("by team", {Condition::in("team", {"blue", "red"})}),
                make("negated", {Condition::equal("team", "blue").negated()}),
                make("by model too", {Condition::equal("model", "m")}),
                make("by header", {Condition::equal("header:X-A", "1")})});
  Attributes attributes = team("red");
  attributes.set(Dimension::model, "m").set("header:x-a", "1");
  EXPECT_EQ(matched(*table, attributes),
            (Ids{"by model", "looked at", "by team", "negated", "by model too", "by header"}));
}

TEST(Table, FindsAPolicyOnceByAnyOfItsValues) {
  const auto table = table_of({make("p", {Condition::in("team", {"a", "b", "a", "c", "b"}),
                                          Condition::in("model", {"a", "b"})})});
  for (const char* value : {"a", "b", "c"}) {
    Attributes attributes = team(value);
    attributes.set(Dimension::model, "a");
    EXPECT_EQ(matched(*table, attributes), Ids{"p"}) << value;
  }
  EXPECT_EQ(matched(*table, team("d")), Ids{});
}

TEST(Table, FindsPoliciesByAnEmptyValue) {
  const auto table = table_of({make("empty", {Condition::equal("team", "")}),
                               make("red", {Condition::equal("team", "red")})});
  EXPECT_EQ(matched(*table, team("")), Ids{"empty"});
  EXPECT_EQ(matched(*table, {}), Ids{});
}

TEST(Table, AManyValuedConditionThatIsNegatedIsNotAskedForByValue) {
  const auto table = table_of({make("p", {Condition::in("team", {"red", "blue"}).negated()})});
  EXPECT_EQ(matched(*table, team("red")), Ids{});
  EXPECT_EQ(matched(*table, team("green")), Ids{"p"});
  EXPECT_EQ(matched(*table, {}), Ids{});
}

TEST(Table, RefusesWhatValidateRefuses) {
  const auto table = Table::create({make("p"), make("p")});
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().field, "policies[1].id");
}

TEST(Table, ShowsTheIdOfAPolicyWithoutAName) {
  Policy named = make("b");
  named.name = "Team budget";
  const auto table = table_of({make("a"), named});
  EXPECT_EQ(table->policies()[0].name, "a");
  EXPECT_EQ(table->policies()[1].name, "Team budget");
}

TEST(GroupBy, NothingGivesOneBucketForAll) {
  EXPECT_EQ(bucket(make("p"), {}), "p");
  EXPECT_EQ(bucket(make("p"), team("red")), "p");
}

TEST(GroupBy, GivesABucketForEachCombinationOfValues) {
  const Policy policy = make("p", {}, {"team", "model"});
  Attributes attributes = team("red");
  attributes.set(Dimension::model, "m");
  EXPECT_EQ(bucket(policy, attributes), "p:team=red:model=m");
  attributes.set(Dimension::team, "blue");
  EXPECT_EQ(bucket(policy, attributes), "p:team=blue:model=m");
}

TEST(GroupBy, APolicyDoesNotApplyWithoutAnIdentityItCountsBy) {
  for (const char* name :
       {"api_key", "team", "member", "model", "model_name", "provider", "route"}) {
    const Policy policy = make("p", {}, {"path", name});
    Attributes attributes;
    attributes.set(Dimension::path, "/");
    EXPECT_EQ(bucket(policy, attributes), "") << name;
    attributes.set(name, "");
    EXPECT_EQ(bucket(policy, attributes), "p:path=/:" + std::string(name) + "=");
  }
}

TEST(GroupBy, RequestsWithoutAnAttributeOfTheCallerShareTheBucketOfItsAbsence) {
  for (const char* name : {"client_ip", "method", "path", "host", "plan"}) {
    const Policy policy = make("p", {}, {name});
    Attributes attributes;
    EXPECT_EQ(bucket(policy, attributes), "p:" + std::string(name));
    attributes.set(name, "");
    EXPECT_EQ(bucket(policy, attributes), "p:" + std::string(name) + "=");
  }
}

TEST(GroupBy, AHeaderIsOneAttributeInAnySpelling) {
  const Policy policy = make("p", {}, {"header:X-Tenant"});
  EXPECT_EQ(bucket(policy, {}), "p:header%3Ax-tenant");
  Attributes attributes;
  attributes.set("header:X-TENANT", "Acme");
  EXPECT_EQ(bucket(policy, attributes), "p:header%3Ax-tenant=Acme");
}

TEST(GroupBy, SeparatorsInValuesAndIdsMakeNoTwoBucketsMeet) {
  const Policy pair = make("p", {}, {"plan", "size"});
  const auto two = [&](std::string_view plan, std::string_view size) {
    Attributes attributes;
    attributes.set("plan", plan).set("size", size);
    return bucket(pair, attributes);
  };
  EXPECT_EQ(two("a:b", "c"), "p:plan=a%3Ab:size=c");
  EXPECT_EQ(two("a", "b:c"), "p:plan=a:size=b%3Ac");
  EXPECT_NE(two("a:size=b", ""), two("a", "b:size="));
  EXPECT_NE(two("a%3Ab", ""), two("a:b", ""));
  Attributes y;
  y.set("k", "y:z");
  Attributes z;
  z.set("k", "z");
  EXPECT_EQ(bucket(make("x", {}, {"k"}), y), "x:k=y%3Az");
  EXPECT_EQ(bucket(make("x:k=y", {}, {"k"}), z), "x%3Ak%3Dy:k=z");
}

TEST(GroupBy, OneValueOfTwoAttributesHasTwoBuckets) {
  Attributes attributes;
  attributes.set(Dimension::member, "127.0.0.1").set(Dimension::client_ip, "127.0.0.1");
  EXPECT_EQ(bucket(make("p", {}, {"member"}), attributes), "p:member=127.0.0.1");
  EXPECT_EQ(bucket(make("p", {}, {"client_ip"}), attributes), "p:client_ip=127.0.0.1");
}

TEST(GroupBy, LongValuesHaveTheirHashAsKeyAndAreKeptApart) {
  const auto table = table_of({make("per key", {}, {"api_key"})});
  const std::string common(200, 'k');
  std::string out;
  const auto write = [&](const std::string& value) {
    Attributes attributes;
    attributes.set(Dimension::api_key, value);
    const auto span = table->policies()[0].write_key(out, attributes);
    EXPECT_EQ(out.substr(span.text_begin, span.text_size), "per key:api_key=" + value);
    return out.substr(span.key_begin, span.key_size);
  };
  const std::string one = write(common + "1");
  const std::string two = write(common + "2");
  EXPECT_NE(one, two);
  for (const std::string& key : {one, two}) {
    EXPECT_EQ(key.substr(0, 10), "per key:%#");
    EXPECT_EQ(key.size(), 10U + 32U);
  }
  EXPECT_EQ(write(common + "1"), one);
}

}  // namespace
}  // namespace stint::policy
