#include "http/message.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stint::http {
namespace {

std::vector<std::string> names(const Fields& fields) {
  std::vector<std::string> result;
  for (const Field& field : fields.all()) result.push_back(field.name);
  return result;
}

TEST(FieldsTest, NamesCompareWithoutCase) {
  Fields fields;
  fields.add("Content-Type", "text/plain");
  EXPECT_EQ(fields.get("content-TYPE"), "text/plain");
  EXPECT_EQ(fields.get("Content-Typ"), std::nullopt);
  EXPECT_EQ(fields.count("CONTENT-type"), 1U);
}

TEST(FieldsTest, LinesAreJoinedInTheirOrder) {
  Fields fields;
  fields.add("X-Forwarded-For", "a");
  fields.add("Other", "x");
  fields.add("x-forwarded-for", "b, c");
  EXPECT_EQ(fields.joined("X-Forwarded-For"), "a, b, c");
  EXPECT_EQ(fields.get("X-Forwarded-For"), "a") << "the first line";
  EXPECT_EQ(fields.joined("Absent"), std::nullopt);
  EXPECT_EQ(fields.count("X-Forwarded-For"), 2U);
}

TEST(FieldsTest, SetReplacesAllLinesInPlaceOfTheFirst) {
  Fields fields;
  fields.add("A", "1");
  fields.add("B", "2");
  fields.add("a", "3");
  fields.set("A", "4");
  EXPECT_EQ(names(fields), std::vector<std::string>({"A", "B"}));
  EXPECT_EQ(fields.get("a"), "4");
  fields.set("C", "5");
  EXPECT_EQ(names(fields), std::vector<std::string>({"A", "B", "C"}));
  fields.remove("b");
  EXPECT_EQ(names(fields), std::vector<std::string>({"A", "C"}));
}

TEST(FieldsTest, TokensAreElementsNotParts) {
  Fields fields;
  fields.add("Connection", "keep-alive, Upgrade");
  fields.add("connection", " close ");
  EXPECT_TRUE(has_token(fields, "Connection", "upgrade"));
  EXPECT_TRUE(has_token(fields, "Connection", "close"));
  EXPECT_FALSE(has_token(fields, "Connection", "keep"));
  EXPECT_FALSE(has_token(fields, "Absent", "close"));
}

TEST(MessageTest, HopByHopFieldsAreRemoved) {
  Fields fields;
  for (const char* name :
       {"Host", "Connection", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "TE",
        "Trailer", "Transfer-Encoding", "Upgrade", "X-Named", "Accept", "Tea"}) {
    fields.add(name, "x");
  }
  fields.set("Connection", "close, x-named");
  remove_hop_by_hop(fields);
  EXPECT_EQ(names(fields), std::vector<std::string>({"Host", "Accept", "Tea"}));
}

TEST(MessageTest, ReasonPhrases) {
  EXPECT_EQ(reason_phrase(200), "OK");
  EXPECT_EQ(reason_phrase(429), "Too Many Requests");
  EXPECT_EQ(reason_phrase(599), "");
}

}  // namespace
}  // namespace stint::http
