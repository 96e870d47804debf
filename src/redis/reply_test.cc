#include "redis/reply.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace stint::redis {
namespace {

using Kind = Value::Kind;

TEST(Reply, HasTheFiveKinds) {
  EXPECT_TRUE(Reply::parse("$-1\r\n").is(Kind::nil));
  EXPECT_TRUE(Reply::parse("*-1\r\n").is(Kind::nil));
  EXPECT_EQ(Reply::parse(":-9223372036854775808\r\n").integer(),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(Reply::parse("+OK\r\n").text(), "OK");
  EXPECT_EQ(Reply::parse(std::string("$4\r\n\r\n\0x\r\n", 10)).text(),
            std::string_view("\r\n\0x", 4));
  EXPECT_TRUE(Reply::parse("$0\r\n\r\n").is(Kind::text));
  EXPECT_TRUE(Reply::parse("-ERR no\r\n").is(Kind::error));
  EXPECT_EQ(Reply::parse("-ERR no\r\n").text(), "ERR no");
  EXPECT_TRUE(Reply::parse("*0\r\n").is(Kind::array));
}

TEST(Reply, ArraysNest) {
  const Reply reply = Reply::parse("*3\r\n:1\r\n*2\r\n$1\r\na\r\n*0\r\n-ERR x\r\n");
  ASSERT_EQ(reply.size(), 3U);
  EXPECT_EQ(reply[0].integer(), 1);
  ASSERT_EQ(reply[1].size(), 2U);
  EXPECT_EQ(reply[1][0].text(), "a");
  EXPECT_EQ(reply[1][1].size(), 0U);
  EXPECT_TRUE(reply[2].is(Kind::error));
}

TEST(Reply, AnswersNothingForWhatItIsNot) {
  const Reply reply = Reply::parse("*1\r\n:7\r\n");
  EXPECT_TRUE(reply[1].is(Kind::nil));
  EXPECT_TRUE(reply[0][0].is(Kind::nil));
  EXPECT_EQ(reply[0].text(), "");
  EXPECT_EQ(reply.integer(), 0);
  EXPECT_EQ(reply.number(), std::nullopt);
  EXPECT_EQ(Reply().size(), 0U);
}

TEST(Reply, NumbersComeInTwoForms) {
  EXPECT_EQ(Reply::parse(":12\r\n").number(), 12);
  EXPECT_EQ(Reply::parse("$3\r\n-12\r\n").number(), -12);
  EXPECT_EQ(Reply::parse("$3\r\n1.5\r\n").number(), std::nullopt);
  EXPECT_EQ(Reply::parse("$0\r\n\r\n").number(), std::nullopt);
  EXPECT_EQ(Reply::parse("$20\r\n99999999999999999999\r\n").number(), std::nullopt);
  EXPECT_EQ(Reply::parse("-12\r\n").number(), std::nullopt);
}

TEST(Reply, MovesWithAllThatIsInIt) {
  Reply first = Reply::parse("*2\r\n$1\r\na\r\n$1\r\nb\r\n");
  Reply second = std::move(first);
  EXPECT_TRUE(first.is(Kind::nil));  // NOLINT(bugprone-use-after-move): what is promised
  EXPECT_EQ(second[1].text(), "b");
  first = std::move(second);
  EXPECT_EQ(first[0].text(), "a");
}

TEST(Reply, ParseWantsExactlyOne) {
  for (const std::string_view wrong : {"", ":1", ":1\r\n:2\r\n", ":1\r\n:", "?\r\n"}) {
    EXPECT_THROW((void)Reply::parse(wrong), std::invalid_argument) << wrong;
  }
}

TEST(ReplyReader, TakesRepliesInAnyPieces) {
  const std::string bytes = ":1\r\n*2\r\n$5\r\nhe\r\no\r\n*1\r\n+x\r\n$-1\r\n";
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    ReplyReader reader;
    std::vector<Reply> replies;
    for (std::size_t i = 0; i < bytes.size(); i += step) {
      reader.feed(std::string_view(bytes).substr(i, step));
      for (;;) {
        auto reply = reader.next();
        ASSERT_TRUE(reply) << reply.error();
        if (!*reply) break;
        replies.push_back(std::move(**reply));
      }
    }
    ASSERT_EQ(replies.size(), 3U) << step;
    EXPECT_EQ(replies[0].integer(), 1);
    EXPECT_EQ(replies[1][0].text(), "he\r\no");
    EXPECT_EQ(replies[1][1][0].text(), "x");
    EXPECT_TRUE(replies[2].is(Kind::nil));
    EXPECT_EQ(reader.unread_bytes(), 0U);
  }
}

TEST(ReplyReader, LongRepliesLeaveTheFirstBlock) {
  std::string bytes = "*1000\r\n";
  for (int i = 0; i < 1000; ++i) bytes += "$26\r\nabcdefghijklmnopqrstuvwxyz\r\n";
  const Reply reply = Reply::parse(bytes);
  ASSERT_EQ(reply.size(), 1000U);
  for (const Value& value : reply.elements()) ASSERT_EQ(value.text(), "abcdefghijklmnopqrstuvwxyz");
}

void expect_dead(std::string_view bytes) {
  ReplyReader reader;
  reader.feed(bytes);
  const auto first = reader.next();
  ASSERT_FALSE(first) << bytes;
  EXPECT_FALSE(first.error().empty());
  reader.feed("+OK\r\n");
  const auto second = reader.next();
  ASSERT_FALSE(second) << "it must stay dead";
  EXPECT_EQ(first.error(), second.error());
}

TEST(ReplyReader, IsDeadAfterWhatIsNoResp2) {
  for (const std::string_view bytes :
       {"HTTP/1.1 200 OK\r\n", "%1\r\n", "_\r\n", ">1\r\n+x\r\n", "$-5\r\n", "*-7\r\n", ":x\r\n",
        "*99999999999\r\n", "$99999999999999999999\r\n", "\r\n", "*1\r\n!\r\n"}) {
    expect_dead(bytes);
  }
}

TEST(ReplyReader, NestsSevenLevels) {
  const auto nested = [](int levels) {
    std::string bytes;
    for (int i = 0; i < levels; ++i) bytes += "*1\r\n";
    return bytes + ":1\r\n";
  };
  const Reply reply = Reply::parse(nested(7));
  EXPECT_EQ(reply[0][0][0][0][0][0][0].integer(), 1);
  expect_dead(nested(9));
  expect_dead(nested(100));
}

TEST(ReplyReader, AllocatesNoArrayBecauseSomebodySaysSo) {
  expect_dead("*2147483647\r\n");
  ReplyReader::Limits limits;
  limits.elements = 10;
  ReplyReader reader(limits);
  reader.feed("*2\r\n*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n");
  EXPECT_TRUE(reader.next()) << "ten in all";
  reader.feed("*2\r\n*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n*5\r\n");
  const auto reply = reader.next();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error(), "a reply of too many elements");
}

TEST(ReplyReader, RefusesRepliesAboveItsLimit) {
  ReplyReader::Limits limits;
  limits.bytes = 1000;
  const auto dead_after = [&](std::string_view head, std::string_view more) {
    ReplyReader reader(limits);
    reader.feed(head);
    for (std::size_t fed = head.size(); fed < 2000; fed += more.size()) {
      reader.feed(more);
      const auto reply = reader.next();
      if (!reply) return fed + more.size();
    }
    return std::size_t{0};
  };
  EXPECT_EQ(dead_after("$5000\r\n", "x"), 1001U);
  const std::size_t in_array = dead_after("*5000\r\n", ":12345\r\n");
  EXPECT_GT(in_array, 1000U);
  EXPECT_LT(in_array, 1010U);

  // Each reply by itself may be so long.
  ReplyReader reader(limits);
  const std::string most = "$900\r\n" + std::string(900, 'x') + "\r\n";
  for (int i = 0; i < 5; ++i) {
    reader.feed(most);
    const auto reply = reader.next();
    ASSERT_TRUE(reply);
    ASSERT_TRUE(*reply);
  }
}

TEST(ReplyReader, GivesTheMemoryOfALongReplyBack) {
  ReplyReader reader;
  const std::string text(5'000'000, 'x');
  reader.feed("$5000000\r\n" + text + "\r\n");
  {
    const auto reply = reader.next();
    ASSERT_TRUE(reply && *reply);
    EXPECT_EQ((*reply)->text(), text);
  }
  EXPECT_GT(reader.buffer_bytes(), 4'000'000U);
  reader.feed("+OK\r\n");
  EXPECT_TRUE(reader.next());
  EXPECT_LT(reader.buffer_bytes(), 100'000U);
}

}  // namespace
}  // namespace stint::redis
