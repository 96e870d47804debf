#include "http/path.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint::http {
namespace {

using Cases = std::vector<std::pair<std::string_view, std::string_view>>;

TEST(PathTest, SpellingsOfOnePathAreOneText) {
  const Cases cases = {
      {"/", "/"},
      {"/v1/models", "/v1/models"},
      {"/v1/models/", "/v1/models/"},
      // Escapes: unreserved characters are decoded, others get upper-case digits.
      {"/%61%2D%5f%7E%39", "/a-_~9"},
      {"/v1/%6dodels", "/v1/models"},
      {"/a%2fb", "/a%2Fb"},
      {"/a%2Fb", "/a%2Fb"},
      {"/%c3%a9", "/%C3%A9"},
      {"/%20", "/%20"},
      {"/100%25", "/100%25"},
      {"/%2561", "/%2561"},  // decoded once, never twice
      {"/a%3Fb%23c", "/a%3Fb%23c"},
      {"/a;b=c,d:e@f!$&'()*+", "/a;b=c,d:e@f!$&'()*+"},
      {"/a%3Bb", "/a%3Bb"},  // reserved: escaped means another thing than plain
      {"/{x}|^`\"<>", "/%7Bx%7D%7C%5E%60%22%3C%3E"},
      {"/%7bx%7d", "/%7Bx%7D"},
      {"/[1]", "/%5B1%5D"},
      // Dot segments.
      {"/a/./b", "/a/b"},
      {"/a/../b", "/b"},
      {"/a/b/../../c", "/c"},
      {"/a/%2e%2E/b", "/b"},
      {"/a/.%2e/b", "/b"},
      {"/.", "/"},
      {"/a/.", "/a/"},
      {"/a/b/..", "/a/"},
      {"/a/..", "/"},
      {"/...", "/..."},
      {"/.a/..b/c.", "/.a/..b/c."},
      {"/a/..%2Fb", "/a/..%2Fb"},  // not a dot segment: the slash is data
      // Slashes in a row.
      {"//", "/"},
      {"//a///b//", "/a/b/"},
      {"/a//../b", "/b"},
      {"///..a", "/..a"},
  };
  for (const auto& [path, expected] : cases) {
    EXPECT_EQ(normalize_path(path), expected) << path;
  }
}

TEST(PathTest, WhatHasNoSafeReadingIsRefused) {
  using namespace std::string_view_literals;
  for (const std::string_view bad : {
           ""sv,
           "a"sv,
           "*"sv,
           "http://x/"sv,
           // Escapes that are none, of control bytes, of a backslash.
           "/%"sv,
           "/%4"sv,
           "/%zz"sv,
           "/%4g"sv,
           "/a%"sv,
           "/% 1"sv,
           "/%+1"sv,
           "/%00"sv,
           "/a%00b"sv,
           "/%0a"sv,
           "/%0D%0A"sv,
           "/%1f"sv,
           "/%7F"sv,
           "/%5c"sv,
           "/%5C"sv,
           // Raw bytes that do not stand in a path.
           "/a\0b"sv,
           "/a b"sv,
           "/a\tb"sv,
           "/a\nb"sv,
           "/\x7f"sv,
           "/\xc3\xa9"sv,
           "/a\\b"sv,
           "/a?b"sv,
           "/a#b"sv,
           // Above the root.
           "/.."sv,
           "/../a"sv,
           "/a/../.."sv,
           "/%2e%2e/a"sv,
           "//../a"sv,
           "/a/../../a/b"sv,
       }) {
    EXPECT_FALSE(normalize_path(bad).has_value()) << bad;
  }
}

TEST(PathTest, TheNormalFormIsItsOwnNormalForm) {
  constexpr unsigned kSeed = 11;
  std::mt19937 random(kSeed);
  const std::vector<std::string> parts = {"/", "/", "a", ".", "..",  "%2e", "%2F", "%41", "%c3",
                                          "{", ";", "b", "%", "%5c", "\\",  "%7d", "~"};
  int accepted = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::string path = "/";
    for (unsigned k = random() % 10; k > 0; --k) path += parts[random() % parts.size()];
    const std::optional<std::string> normal = normalize_path(path);
    if (!normal) continue;
    ++accepted;
    ASSERT_EQ(normalize_path(*normal), normal) << path << ", seed " << kSeed;
    ASSERT_TRUE(normal->starts_with('/')) << path;
    ASSERT_FALSE((*normal + "/").contains("/../")) << path;
    ASSERT_FALSE((*normal + "/").contains("/./")) << path;
    ASSERT_FALSE(normal->contains("//")) << path;
  }
  EXPECT_GT(accepted, 10'000);
}

}  // namespace
}  // namespace stint::http
