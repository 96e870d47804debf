#include "admin/query.h"

#include <gtest/gtest.h>

#include <string>

namespace stint::admin {
namespace {

std::string of_query(std::string_view query) {
  const auto parameters = Parameters::of_query(query, {"a", "b"});
  if (!parameters) return parameters.error();
  return std::string(parameters->get("a").value_or("-")) + "|" +
         std::string(parameters->get("b").value_or("-"));
}

TEST(AdminQuery, GivesWhatIsThere) {
  EXPECT_EQ(of_query(""), "-|-");
  EXPECT_EQ(of_query("?"), "-|-");
  EXPECT_EQ(of_query("?a=1&b=2"), "1|2");
  EXPECT_EQ(of_query("?a=&b"), "|");
  EXPECT_EQ(of_query("?&a=1&&"), "1|-");
  EXPECT_EQ(of_query("?a=x=y"), "x=y|-");
}

TEST(AdminQuery, DecodesEscapesAndLeavesThePlus) {
  EXPECT_EQ(of_query("?a=p%3Ateam%3Dred%2520+%2B"), "p:team=red%20++|-");
  EXPECT_EQ(of_query("?%61=%2a"), "*|-");
  EXPECT_EQ(of_query("?a=%"), "the query has a % that is no escape");
  EXPECT_EQ(of_query("?a=%4"), "the query has a % that is no escape");
  EXPECT_EQ(of_query("?a=%zz"), "the query has a % that is no escape");
}

TEST(AdminQuery, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(of_query("?c=1"), "the request has an unknown parameter; known are a, b");
  EXPECT_EQ(of_query("?a=1&a=1"), "the query has a twice");
  EXPECT_EQ(Parameters::of_query("?a=1", {}).error(), "the request takes no parameters");
}

TEST(AdminQuery, TakesAJsonObjectOfTexts) {
  const auto good = Parameters::of_json(R"({"a":"x\u00e4","b":""})", {"a", "b"});
  ASSERT_TRUE(good);
  EXPECT_EQ(good->get("a"), "x\u00e4");
  EXPECT_EQ(good->get("b"), "");
  const auto fault = [](std::string_view body) {
    return Parameters::of_json(body, {"a", "b"}).error();
  };
  EXPECT_EQ(fault(""), "the body is no JSON object");
  EXPECT_EQ(fault("[]"), "the body is no JSON object");
  EXPECT_EQ(fault("{\"a\":\"x\"}}"), "the body is no JSON object");
  EXPECT_EQ(fault("{\"a\":1}"), "a must be a text");
  EXPECT_EQ(fault("{\"z\":\"\"}"), "the request has an unknown parameter; known are a, b");
}

}  // namespace
}  // namespace stint::admin
