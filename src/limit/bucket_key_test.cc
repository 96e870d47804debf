#include "limit/bucket_key.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace stint::limit {
namespace {

using namespace std::string_literals;

std::string escaped(std::string_view text) {
  std::string out;
  append_escaped(out, text);
  return out;
}

// What append_escaped undoes to: every `%` starts an escape.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

using Parts = std::vector<std::pair<std::string, std::optional<std::string>>>;

struct Written {
  std::string key;
  std::string text;
};

Written write(std::string_view policy, const Parts& parts, std::string out = "") {
  BucketKeyWriter writer(out, escaped(policy));
  for (const auto& [dimension, value] : parts) writer.add(escaped(dimension), value);
  const KeySpan span = writer.finish();
  return {out.substr(span.key_begin, span.key_size), out.substr(span.text_begin, span.text_size)};
}

std::string key(std::string_view policy, const Parts& parts) { return write(policy, parts).key; }

TEST(BucketKey, OfATextIsTheOneItWasWrittenWith) {
  for (const std::size_t length : {std::size_t{1}, std::size_t{100}, std::size_t{116},
                                   std::size_t{117}, std::size_t{118}, std::size_t{700}}) {
    const Written written = write("p:q", {{"t", std::string(length, 'v')}, {"absent", {}}});
    EXPECT_EQ(key_of(written.text), written.key) << length;
  }
  EXPECT_EQ(key_of(write("p", {}).text), "p");
  EXPECT_EQ(key_of(overflow_key("p")), "p:%overflow");
  EXPECT_EQ(key_of(""), "");
}

TEST(BucketKey, EscapesSeparatorsAndBraces) {
  EXPECT_EQ(escaped("a:b=c{d}e%f"), "a%3Ab%3Dc%7Bd%7De%25f");
  EXPECT_EQ(escaped("plain-_.~/|,+*?\"\\ text"), "plain-_.~/|,+*?\"\\ text");
  EXPECT_EQ(escaped(""), "");
}

TEST(BucketKey, EscapesControlBytes) {
  EXPECT_EQ(escaped("\0\t\r\n\x1F\x7F"s), "%00%09%0D%0A%1F%7F");
  EXPECT_EQ(escaped("a\xC2\x80"
                    "b\xC2\x9F"
                    "c"),
            "a%C2%80b%C2%9Fc");                // C1 controls, U+0080 and U+009F
  EXPECT_EQ(escaped("\xC2\xA0"), "\xC2\xA0");  // U+00A0 is none
}

TEST(BucketKey, KeepsValidUtf8) {
  for (const char* text :
       {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xE0\xA0\x80", "\xED\x9F\xBF",
        "\xEE\x80\x80", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "\xDF\xBF"}) {
    EXPECT_EQ(escaped(text), text);
  }
}

TEST(BucketKey, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(escaped("\x80"), "%80");
  EXPECT_EQ(escaped("\xC3"), "%C3");
  EXPECT_EQ(escaped("\xC3(\xC3\xA9"), "%C3(\xC3\xA9");
  EXPECT_EQ(escaped("\xC0\xAF"), "%C0%AF");                // overlong
  EXPECT_EQ(escaped("\xE0\x9F\xBF"), "%E0%9F%BF");         // overlong
  EXPECT_EQ(escaped("\xF0\x8F\xBF\xBF"), "%F0%8F%BF%BF");  // overlong
  EXPECT_EQ(escaped("\xED\xA0\x80"), "%ED%A0%80");         // surrogate
  EXPECT_EQ(escaped("\xF4\x90\x80\x80"), "%F4%90%80%80");  // above U+10FFFF
  EXPECT_EQ(escaped("\xF5\x80\x80\x80"), "%F5%80%80%80");
  EXPECT_EQ(escaped("\xFE\xFF"), "%FE%FF");
  EXPECT_EQ(escaped("\xE2\x82"), "%E2%82");  // cut short
  EXPECT_EQ(escaped("\xF0\x9F\x98:"), "%F0%9F%98%3A");
}

TEST(BucketKey, EscapingCanBeUndone) {
  std::mt19937_64 random(7);
  const std::string bytes = ":=%{}|aF0\xC2\xC3\x80\x85\xA9\xE2\x82\xAC\xF0\x9F\n\x7F\x00"s;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::uint64_t length = random() % 12; length > 0; --length) {
      text += bytes[random() % bytes.size()];
    }
    const std::string out = escaped(text);
    ASSERT_EQ(unescaped(out), text);
    ASSERT_EQ(out.find_first_of("{}:=\n\x7F"), std::string::npos);
  }
}

TEST(BucketKey, ReadsAsPolicyDimensionAndValue) {
  EXPECT_EQ(key("p", {}), "p");
  EXPECT_EQ(key("p", {{"team", "a"}}), "p:team=a");
  EXPECT_EQ(key("p", {{"team", "a"}, {"header:x-id", "b"}}), "p:team=a:header%3Ax-id=b");
  EXPECT_EQ(key("p", {{"team", ""}}), "p:team=");
  EXPECT_EQ(key("p", {{"team", std::nullopt}}), "p:team");
}

TEST(BucketKey, DifferentListsNeverMeet) {
  std::vector<std::pair<std::string, Parts>> lists{
      {"x", {}},
      {"", {{"x", std::nullopt}}},
      {"", {{"", std::nullopt}}},
      {"", {{"", ""}}},
      {"x", {{"k", "y:z"}}},
      {"x:y", {{"k", "z"}}},
      {"x:k=y", {{"k", "z"}}},
      {"x", {{"k", "y"}, {"k", "z"}}},
      {"x", {{"k", "y:k=z"}}},
      {"x", {{"k=y", "z"}}},
      {"x", {{"k", "y=z"}}},
      {"x", {{"k", std::nullopt}}},
      {"x", {{"k", ""}}},
      {"x", {{"k", "="}}},
      {"x", {{"k=", std::nullopt}}},
      {"x", {{"k", ""}, {"l", std::nullopt}}},
      {"x", {{"k", std::nullopt}, {"l", ""}}},
      {"x", {{"k", std::nullopt}, {"l", std::nullopt}}},
      {"x", {{"k", ":l"}}},
      {"x", {{"k", "%"}}},
      {"x", {{"k", "%25"}}},
      {"x", {{"k", "%2525"}}},
      {"x", {{"k", "%3A"}}},
      {"x", {{"k", ":"}}},
      {"x", {{"k", "%3a"}}},
      {"x", {{"k", "\xC3"}}},
      {"x", {{"k", "%C3"}}},
      {"x", {{"k", "\xC2\x85"}}},
      {"x", {{"k", "%C2%85"}}},
      {"x", {{"k", "%overflow"}}},
      {"x", {{"%overflow", std::nullopt}}},
      {"x:%overflow", {}},
      {"x", {{"k", "\0"s}}},
      {"x", {{"k", "\0\0"s}}},
      {"x", {{"client_ip", "127.0.0.1"}}},
      {"x", {{"user", "127.0.0.1"}}},
      {"x", {{"api_key", "sk-123456789a"}}},
      {"x", {{"api_key", "sk-123456789b"}}},
  };
  for (const std::string separator :
       {":", "_", "|", "/", ",", "=", "%", "-", " ", "\n", "{", "}"}) {
    lists.push_back({"x", {{"k", "a" + separator + "b"}, {"l", "c"}}});
    lists.push_back({"x", {{"k", "a"}, {"l", "b" + separator + "c"}}});
    lists.push_back({"x", {{"k", "a" + separator + "b" + separator + "c"}}});
    lists.push_back({"x", {{"k", separator + "a"}, {"l", ""}}});
    lists.push_back({"x", {{"k", ""}, {"l", separator + "a"}}});
    lists.push_back({"x", {{"k", "a" + separator}, {"l", ""}}});
    lists.push_back({"x" + separator + "k", {{"l", "a"}}});
  }
  std::map<std::string, std::size_t> seen{{overflow_key(escaped("x")), 9'999}};
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const auto [other, fresh] = seen.insert({key(lists[i].first, lists[i].second), i});
    EXPECT_TRUE(fresh) << "lists " << other->second << " and " << i << ": " << other->first;
  }
}

TEST(BucketKey, StaysReadableUpTo120Bytes) {
  const std::string value(116, 'a');
  const Written written = write("p", {{"k", value}});
  EXPECT_EQ(written.key.size(), 120U);
  EXPECT_EQ(written.key, "p:k=" + value);
  EXPECT_EQ(written.text, written.key);
}

TEST(BucketKey, HashesValuesOver120BytesAndKeepsThePolicyAndTheText) {
  const std::string value(117, 'a');
  const Written written = write("p", {{"k", value}});
  EXPECT_EQ(written.key, "p:%#6EF438D89B627C973C574C01EFEC4079");  // SHA-256 of the text
  EXPECT_EQ(written.text, "p:k=" + value);
}

TEST(BucketKey, LongListsThatDifferInOneByteNeverMeet) {
  const std::string value(1'000, 'a');
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < value.size(); ++i) {
    std::string other = value;
    other[i] = 'b';
    seen.insert({key("p", {{"k", other}}), i});
  }
  EXPECT_EQ(seen.size(), value.size());
  EXPECT_NE(key("p", {{"k", value}}), key("p", {{"l", value}}));
  EXPECT_NE(key("p", {{"k", value}}), key("q", {{"k", value}}));
  EXPECT_NE(key("p", {{"k", value}, {"l", ""}}), key("p", {{"k", value}, {"l", std::nullopt}}));
}

TEST(BucketKey, ValueThatLooksLikeAHashMeetsNone) {
  const std::string hashed = key("p", {{"k", std::string(117, 'a')}});
  EXPECT_NE(key("p", {{hashed.substr(2), std::nullopt}}), hashed);
  EXPECT_NE(key(hashed, {}), hashed);
}

TEST(BucketKey, LongestPolicyIdOfEscapesStillGivesAKey) {
  const std::string policy(64, ':');
  const Written written = write(policy, {{"k", "v"}});
  EXPECT_EQ(written.key.size(), 64 * 3 + 3 + 32U);
  EXPECT_TRUE(written.key.starts_with("%3A%3A"));
}

TEST(BucketKey, IsWrittenBehindWhatIsThere) {
  const Written written = write("p", {{"k", std::string(117, 'a')}}, "before:p:k=z");
  EXPECT_EQ(written.key, "p:%#6EF438D89B627C973C574C01EFEC4079");
  EXPECT_EQ(written.text, "p:k=" + std::string(117, 'a'));
  EXPECT_EQ(write("p", {{"k", "v"}}, "before").key, "p:k=v");
}

TEST(Pattern, MatchesTextByStarsAndQuestionMarks) {
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_FALSE(matches("a", ""));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("**", "abc"));
  EXPECT_TRUE(matches("abc", "abc"));
  EXPECT_FALSE(matches("abc", "abcd"));
  EXPECT_FALSE(matches("abcd", "abc"));
  EXPECT_TRUE(matches("a?c", "abc"));
  EXPECT_FALSE(matches("?", ""));
  EXPECT_FALSE(matches("a?", "a"));
  EXPECT_TRUE(matches("p:team=*", "p:team=a:user=b"));
  EXPECT_FALSE(matches("p:team=*", "q:team=a"));
  EXPECT_TRUE(matches("*user=b", "p:team=a:user=b"));
  EXPECT_TRUE(matches("*a*b*", "xxaxxbxx"));
  EXPECT_FALSE(matches("*a*b*", "xxbxxaxx"));
  EXPECT_TRUE(matches("*ab", "aab"));
  EXPECT_TRUE(matches("*aab", "aaaaab"));
  EXPECT_TRUE(matches("a*?", "ab"));
  EXPECT_FALSE(matches("a*?", "a"));
  EXPECT_TRUE(matches("?*?", "ab"));
  EXPECT_FALSE(matches("?*?", "a"));
}

TEST(Pattern, TakesEveryOtherByteAsItIs) {
  EXPECT_TRUE(matches("[a-z]\\^$.", "[a-z]\\^$."));
  EXPECT_FALSE(matches("[a-z]", "b"));
  EXPECT_TRUE(matches("?", "\xC3"));
  EXPECT_TRUE(matches("\xC3\xA9*", "\xC3\xA9t\xC3\xA9"));
  EXPECT_TRUE(matches("a\0b"s, "a\0b"s));
  EXPECT_TRUE(matches("*", "*?*"));
  EXPECT_FALSE(matches("a", "*"));
}

// With one way back for each star this would take 2^100 steps.
TEST(Pattern, OfManyStarsTakesTheProductOfTheLengths) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  pattern += "*b";
  const std::string text(10'000, 'a');
  EXPECT_FALSE(matches(pattern, text));
  EXPECT_TRUE(matches(pattern, text + "b"));
  EXPECT_FALSE(matches(std::string(1'000, '*') + "b", text));
  EXPECT_FALSE(matches(std::string(1'000, '?') + "*b", text));
}

}  // namespace
}  // namespace stint::limit
