// `stint check`.
#include "cli/check.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <string>

#include "tests/config/folder_testing.h"

namespace stint::cli {
namespace {

TEST(Check, SaysWhatIsThere) {
  const config::Folder folder;
  folder.write("stint.yaml", "resources_file: r.yaml\n");
  folder.write("r.yaml",
               "_format_version: \"1\"\n"
               "api_keys: [{key: a, rate_limit: {rpm: 1}}, {key: b}]\n");
  const auto result = check(folder.path("stint.yaml"), {});
  EXPECT_EQ(result.text, "ok: 0 provider keys, 0 models, 2 API keys, 0 routes, 1 policy\n");
  EXPECT_EQ(result.exit_code, 0);
}

TEST(Check, SaysEveryFaultOfBothFiles) {
  const config::Folder folder;
  const std::string bootstrap = folder.path("stint.yaml");
  const std::string resources = folder.path("r.yaml");
  folder.write("stint.yaml", "resources_file: r.yaml\nproxy: {worker: 1}\ncahce: {}\n");
  folder.write("r.yaml", "_format_version: \"1\"\nmodel: []\nroute: []\n");
  const auto result = check(bootstrap, {{"STINT_X__Y", "z"}});
  EXPECT_EQ(result.text, bootstrap + ":2:9: proxy.worker: unknown key; did you mean workers?\n" +
                             bootstrap + ":3:1: cahce: unknown key; did you mean cache?\n" +
                             "warning: environment variable STINT_X__Y: names no key\n" +
                             resources + ":2:1: model: unknown key; did you mean models?\n" +
                             resources + ":3:1: route: unknown key; did you mean routes?\n");
  EXPECT_EQ(result.exit_code, 1);
}

TEST(Check, FailsForTheOneFileThoughTheOtherIsGood) {
  const config::Folder folder;
  folder.write("stint.yaml", "resources_file: r.yaml\ncahce: {}\n");
  folder.write("r.yaml", "_format_version: \"1\"\n");
  EXPECT_EQ(check(folder.path("stint.yaml"), {}).exit_code, 1);
}

TEST(Check, PassesWithWarnings) {
  const config::Folder folder;
  folder.write("r.yaml",
               "_format_version: \"1\"\n"
               "api_keys: [{key: a, allowed_models: [gpt]}]\n");
  const auto result = check(std::nullopt, {{"STINT_RESOURCES_FILE", folder.path("r.yaml")}});
  EXPECT_EQ(result.text, "warning: " + folder.path("r.yaml") +
                             ":2:38: api_keys[0].allowed_models[0]: there is no model 'gpt'\n"
                             "ok: 0 provider keys, 0 models, 1 API key, 0 routes, 0 policies\n");
  EXPECT_EQ(result.exit_code, 0);
}

TEST(Check, SaysWhichFilesOfTlsCannotBeRead) {
  const config::Folder folder;
  const std::string bootstrap = folder.path("stint.yaml");
  folder.write("r.yaml", "_format_version: \"1\"\n");
  folder.write("ca.pem", "");
  folder.write("stint.yaml",
               "resources_file: r.yaml\nupstream:\n  tls:\n    ca_file: " + folder.path("ca.pem") +
                   "\n    cert_file: " + folder.path("none.pem") +
                   "\n    key_file: " + folder.path("") + "\n");
  const auto result = check(bootstrap, {});
  EXPECT_EQ(result.text, bootstrap + ":5:16: upstream.tls.cert_file: '" + folder.path("none.pem") +
                             "' cannot be read: No such file or directory\n" + bootstrap +
                             ":6:15: upstream.tls.key_file: '" + folder.path("") +
                             "' is no regular file\n");
  EXPECT_EQ(result.exit_code, 1);
}

TEST(Check, LooksAtTheTlsOfRedisWhereItIsUsed) {
  const config::Folder folder;
  folder.write("r.yaml", "_format_version: \"1\"\n");
  folder.write("stint.yaml",
               "resources_file: r.yaml\nratelimit:\n  backend: ${BACKEND}\n  redis:\n"
               "    {url: \"rediss://h\", tls: {ca_file: /none.pem}}\n");
  EXPECT_EQ(check(folder.path("stint.yaml"), {{"BACKEND", "memory"}}).exit_code, 0);
  EXPECT_EQ(check(folder.path("stint.yaml"), {{"BACKEND", "redis"}}).text,
            folder.path("stint.yaml") +
                ":5:40: ratelimit.redis.tls.ca_file: '/none.pem' cannot be read: No such file or "
                "directory\n");
}

TEST(Check, KnowsHowIpv6ClientsAreToldApart) {
  const config::Folder folder;
  folder.write("stint.yaml", "resources_file: r.yaml\nproxy: {real_ip: {ipv6_prefix: 48}}\n");
  folder.write(
      "r.yaml",
      "_format_version: \"1\"\nrate_limit_policies:\n  - name: p\n    limits: {rpm: 1}\n"
      "    conditions: [{dimension: client_ip, operator: ==, value: \"2001:db8::/48\"}]\n");
  EXPECT_EQ(check(folder.path("stint.yaml"), {}).exit_code, 0);
}

TEST(Check, WaitsForNoPipe) {
  const config::Folder folder;
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  for (const std::string& file : {folder.path("pipe"), std::string("/dev/zero"), folder.path("")}) {
    const auto result = check(std::nullopt, {{"STINT_RESOURCES_FILE", file}});
    EXPECT_EQ(result.text, file + ": is no regular file\n");
    EXPECT_EQ(result.exit_code, 1);
  }
}

TEST(Check, SaysWhichFileIsMissing) {
  const config::Folder folder;
  folder.write("stint.yaml", "resources_file: r.yaml\n");
  EXPECT_EQ(check(folder.path("stint.yaml"), {}).text,
            folder.path("r.yaml") + ": cannot be read: No such file or directory\n");
  const auto result = check(folder.path("none.yaml"), {});
  EXPECT_EQ(result.text,
            folder.path("none.yaml") + ": cannot be read: No such file or directory\n");
  EXPECT_EQ(result.exit_code, 1);
}

}  // namespace
}  // namespace stint::cli
