#include "redis/command.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "redis/script.h"

namespace stint::redis {
namespace {

using Words = std::vector<std::string_view>;

TEST(Command, IsAnArrayOfTexts) {
  std::string out = "before";
  append_command(out, Words{"GET", "a"});
  EXPECT_EQ(out, "before*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
}

TEST(Command, IsBinarySafe) {
  std::string out;
  const std::string_view binary("\r\n\0$", 4);
  append_command(out, Words{"SET", "", binary});
  EXPECT_EQ(out, std::string("*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\n\r\n\0$\r\n", 29));
}

TEST(Command, LongWordsHaveLongLengths) {
  std::string out;
  const std::string word(12345, 'x');
  append_command(out, Words{word});
  EXPECT_EQ(out, "*1\r\n$12345\r\n" + word + "\r\n");
}

TEST(Command, EvalshaCountsItsKeys) {
  std::string out;
  append_evalsha(out, "abc", Words{"k1", "k2"}, Words{"x"});
  EXPECT_EQ(out,
            "*6\r\n$7\r\nEVALSHA\r\n$3\r\nabc\r\n$1\r\n2\r\n$2\r\nk1\r\n$2\r\nk2\r\n$1\r\nx\r\n");
  out.clear();
  append_evalsha(out, "abc", {}, {});
  EXPECT_EQ(out, "*3\r\n$7\r\nEVALSHA\r\n$3\r\nabc\r\n$1\r\n0\r\n");
  out.clear();
  const std::vector<std::string_view> many(12, "k");
  append_evalsha(out, "abc", many, {});
  EXPECT_TRUE(out.starts_with("*15\r\n$7\r\nEVALSHA\r\n$3\r\nabc\r\n$2\r\n12\r\n$1\r\nk\r\n"));
}

// The digests that `redis-cli SCRIPT LOAD` answers.
TEST(Script, HasTheDigestOfRedis) {
  const Script script("answer", "return 1");
  EXPECT_EQ(script.name(), "answer");
  EXPECT_EQ(script.body(), "return 1");
  EXPECT_EQ(script.sha1(), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
  EXPECT_EQ(Script("", "").sha1(), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
}

}  // namespace
}  // namespace stint::redis
