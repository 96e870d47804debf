#include "stint/attributes.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string_view>

#include "policy/attribute_name.h"

namespace stint {
namespace {

using policy::AttributeName;
using Text = std::optional<std::string_view>;

Dimension dimension(std::size_t index) { return static_cast<Dimension>(index); }

TEST(Attributes, DimensionsHaveTheNamesThatConfigurationsUse) {
  constexpr std::string_view kExpected[] = {"api_key",    "team",     "member", "model",
                                            "model_name", "provider", "route",  "client_ip",
                                            "method",     "path",     "host"};
  static_assert(std::size(kExpected) == kDimensions);
  for (std::size_t i = 0; i < kDimensions; ++i) {
    EXPECT_EQ(to_string(dimension(i)), kExpected[i]);
    EXPECT_EQ(parse_dimension(kExpected[i]), dimension(i));
  }
}

TEST(Attributes, ANameThatIsNoDimensionIsNone) {
  for (const std::string_view name : {"", "Team", "TEAM", "team ", "teams", "tea", "header:team"}) {
    EXPECT_EQ(parse_dimension(name), std::nullopt) << name;
  }
  EXPECT_EQ(to_string(dimension(kDimensions)), "unknown");
  EXPECT_EQ(to_string(dimension(255)), "unknown");
}

TEST(Attributes, AreAbsentUntilTheyAreSet) {
  const Attributes attributes;
  for (std::size_t i = 0; i < kDimensions; ++i) {
    EXPECT_EQ(attributes.get(dimension(i)), std::nullopt);
    EXPECT_EQ(attributes.get(to_string(dimension(i))), std::nullopt);
  }
  EXPECT_EQ(attributes.get("plan"), std::nullopt);
  EXPECT_EQ(attributes.get("header:x-tenant"), std::nullopt);
}

TEST(Attributes, AnEmptyValueIsAValue) {
  Attributes attributes;
  attributes.set(Dimension::team, "").set("plan", "").set("header:x-tenant", "");
  EXPECT_EQ(attributes.get(Dimension::team), Text(""));
  EXPECT_EQ(attributes.get("plan"), Text(""));
  EXPECT_EQ(attributes.get("header:x-tenant"), Text(""));
}

TEST(Attributes, SettingOneLeavesTheOthersAbsent) {
  for (std::size_t set = 0; set < kDimensions; ++set) {
    Attributes attributes;
    attributes.set(dimension(set), "v");
    for (std::size_t i = 0; i < kDimensions; ++i) {
      EXPECT_EQ(attributes.get(dimension(i)), i == set ? Text("v") : std::nullopt);
    }
  }
}

TEST(Attributes, ADimensionSetByItsNameIsTheDimension) {
  Attributes attributes;
  attributes.set("team", "red");
  EXPECT_EQ(attributes.get(Dimension::team), Text("red"));
  attributes.set(Dimension::team, "blue");
  EXPECT_EQ(attributes.get("team"), Text("blue"));
  EXPECT_EQ(attributes.get_other("team"), std::nullopt);
}

TEST(Attributes, SettingAgainReplaces) {
  Attributes attributes;
  attributes.set(Dimension::host, "a").set(Dimension::host, "b");
  attributes.set("plan", "a").set("size", "s").set("plan", "b");
  EXPECT_EQ(attributes.get(Dimension::host), Text("b"));
  EXPECT_EQ(attributes.get("plan"), Text("b"));
  EXPECT_EQ(attributes.get("size"), Text("s"));
}

TEST(Attributes, HeaderNamesAreComparedWithoutRegardToCase) {
  Attributes attributes;
  attributes.set("header:X-Tenant", "a");
  EXPECT_EQ(attributes.get("header:x-tenant"), Text("a"));
  EXPECT_EQ(attributes.get("header:X-TENANT"), Text("a"));
  EXPECT_EQ(attributes.get("header:x-tenan"), std::nullopt);
  EXPECT_EQ(attributes.get("header:x-tenant2"), std::nullopt);
  attributes.set("header:x-TENANT", "b");
  EXPECT_EQ(attributes.get("header:X-Tenant"), Text("b"));
}

TEST(Attributes, OnlyLettersOfAsciiHaveACase) {
  Attributes attributes;
  attributes.set("header:[", "bracket").set("header:\xC3\x84", "umlaut");
  EXPECT_EQ(attributes.get("header:{"), std::nullopt);  // 0x20 apart, as `A` and `a` are
  EXPECT_EQ(attributes.get("header:\xC3\xA4"), std::nullopt);
}

TEST(Attributes, NamesThatAreNoHeaderAreExact) {
  Attributes attributes;
  attributes.set("plan", "a").set("Header:x", "no header: the prefix is exact too");
  EXPECT_EQ(attributes.get("Plan"), std::nullopt);
  EXPECT_EQ(attributes.get("header:x"), std::nullopt);
  EXPECT_EQ(attributes.get("Header:X"), std::nullopt);
  attributes.set("Plan", "b");
  EXPECT_EQ(attributes.get("plan"), Text("a"));
}

TEST(Attributes, AreTheSameInWhateverOrderTheyWereSet) {
  Attributes one;
  one.set("header:x", "h").set("HEADER:x", "no header");
  Attributes other;
  other.set("HEADER:x", "no header").set("header:x", "h");
  for (const Attributes& attributes : {one, other}) {
    EXPECT_EQ(attributes.get("header:X"), Text("h"));
    EXPECT_EQ(attributes.get("HEADER:x"), Text("no header"));
  }
}

TEST(AttributeName, FindsDimensionsAndOthers) {
  Attributes attributes;
  attributes.set(Dimension::model, "m").set("plan", "p").set("header:X-Tenant", "t");
  EXPECT_EQ(AttributeName("model").in(attributes), Text("m"));
  EXPECT_EQ(AttributeName("plan").in(attributes), Text("p"));
  EXPECT_EQ(AttributeName("HEADER:x-tenant").in(attributes), std::nullopt);
  EXPECT_EQ(AttributeName("header:x-TENANT").in(attributes), Text("t"));
  EXPECT_EQ(AttributeName("team").in(attributes), std::nullopt);
}

TEST(AttributeName, OfAHeaderIsKeptInLowerCase) {
  EXPECT_EQ(AttributeName("header:X-Tenant").text(), "header:x-tenant");
  EXPECT_EQ(AttributeName("header:X-Tenant"), AttributeName("header:x-tenant"));
  EXPECT_EQ(AttributeName("Plan").text(), "Plan");
  EXPECT_NE(AttributeName("Plan"), AttributeName("plan"));
}

TEST(AttributeName, KnowsWhatTheSenderOfARequestCannotChoose) {
  for (const std::string_view name :
       {"api_key", "team", "member", "model", "model_name", "provider", "route"}) {
    EXPECT_TRUE(AttributeName(name).identity()) << name;
  }
  for (const std::string_view name :
       {"client_ip", "method", "path", "host", "header:team", "plan", "Team", ""}) {
    EXPECT_FALSE(AttributeName(name).identity()) << name;
  }
}

}  // namespace
}  // namespace stint
