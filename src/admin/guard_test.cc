#include "admin/guard.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "http/authority.h"

namespace stint::admin {
namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

// The status that a request with these lines gets; 0: it may go on.
int status(const Guard& guard, const std::string& host, const Lines& lines = {}) {
  http::RequestHead head;
  head.method = "GET";
  head.fields.add("Host", host);
  if (const auto authority = http::parse_authority(host, 80)) head.host = authority->host;
  for (const auto& [name, value] : lines) head.fields.add(name, value);
  const auto denial = guard.check(head);
  return denial ? denial->status : 0;
}

Guard without_keys(const std::string& addr = "127.0.0.1:3001") {
  return Guard(config::Admin{.enabled = true, .addr = addr});
}
Guard with_keys() {
  return Guard(config::Admin{
      .enabled = true, .addr = "0.0.0.0:3001", .admin_keys = {"first-key", "second-key"}});
}

TEST(AdminGuard, WithoutKeysItAnswersToNamesOfLoopback) {
  const Guard guard = without_keys();
  for (const char* host : {"127.0.0.1:3001", "127.0.0.1", "localhost:3001", "LOCALHOST",
                           "localhost.", "[::1]:3001", "[0:0:0:0:0:0:0:1]", "127.8.9.10:1"}) {
    EXPECT_EQ(status(guard, host), 0) << host;
  }
}

TEST(AdminGuard, WithoutKeysItAnswersToNoOtherName) {  // DNS rebinding
  const Guard guard = without_keys();
  for (const char* host :
       {"evil.example", "evil.example:3001", "127.0.0.1.evil.example", "127.evil.example",
        "localhost.evil.example", "10.0.0.1:3001", "[::ffff:127.0.0.1]", "0.0.0.0:3001", ""}) {
    EXPECT_EQ(status(guard, host), 403) << host;
  }
}

TEST(AdminGuard, WithKeysTheNameDoesNotMatter) {
  EXPECT_EQ(status(with_keys(), "stint.internal:3001", {{"Authorization", "Bearer first-key"}}), 0);
}

TEST(AdminGuard, ARequestOfAnotherOriginIsRefused) {
  const Guard guard = without_keys();
  const std::string host = "127.0.0.1:3001";
  for (const char* origin :
       {"http://evil.example", "https://evil.example:3001", "null", "http://127.0.0.1",
        "http://127.0.0.1:3002", "http://localhost:3001", "file://", "http://", ""}) {
    EXPECT_EQ(status(guard, host, {{"Origin", origin}}), 403) << origin;
  }
  EXPECT_EQ(status(guard, host, {{"Origin", "http://127.0.0.1:3001"}}), 0);
  EXPECT_EQ(status(guard, "localhost", {{"Origin", "http://localhost"}}), 0);
  EXPECT_EQ(status(guard, "localhost:80", {{"Origin", "http://LOCALHOST"}}), 0);
  EXPECT_EQ(status(guard, "localhost", {{"Origin", "http://localhost"}, {"Origin", "http://x"}}),
            403);
}

TEST(AdminGuard, ARequestThatABrowserCallsCrossSiteIsRefused) {
  const Guard guard = without_keys();
  for (const char* site : {"cross-site", "same-site", "whatever"}) {
    EXPECT_EQ(status(guard, "localhost", {{"Sec-Fetch-Site", site}}), 403) << site;
  }
  for (const char* site : {"same-origin", "none"}) {
    EXPECT_EQ(status(guard, "localhost", {{"Sec-Fetch-Site", site}}), 0) << site;
  }
}

TEST(AdminGuard, WithKeysOneOfThemIsNeeded) {
  const Guard guard = with_keys();
  const auto asked = [&](const Lines& lines) { return status(guard, "localhost", lines); };
  EXPECT_EQ(asked({{"Authorization", "Bearer first-key"}}), 0);
  EXPECT_EQ(asked({{"authorization", "bearer second-key"}}), 0);
  EXPECT_EQ(asked({}), 401);
  for (const char* value :
       {"Bearer first-ke", "Bearer first-key2", "Bearer ", "Bearer", "first-key",
        "Basic Zmlyc3Qta2V5", "Bearer first-key second-key", "Bearer  first-key"}) {
    EXPECT_EQ(asked({{"Authorization", value}}), 401) << value;
  }
  EXPECT_EQ(asked({{"Authorization", "Bearer first-key"}, {"Authorization", "Bearer first-key"}}),
            401);
}

TEST(AdminGuard, KeysDoNotOpenTheDoorToOtherOrigins) {
  EXPECT_EQ(status(with_keys(), "localhost",
                   {{"Authorization", "Bearer first-key"}, {"Origin", "http://evil.example"}}),
            403);
}

}  // namespace
}  // namespace stint::admin
