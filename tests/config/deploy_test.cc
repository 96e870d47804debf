// What is shipped and written about the configuration is true.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "cli/check.h"
#include "config/bootstrap.h"
#include "config/read_file.h"
#include "config/resources.h"
#include "tests/config/folder_testing.h"

namespace stint::config {
namespace {

using testing::IsEmpty;

const std::string kRoot = STINT_SOURCE_DIR;

std::string read(const std::string& path) {
  auto text = read_file(kRoot + "/" + path);
  EXPECT_TRUE(text) << path;
  return text.value_or("");
}

TEST(Deploy, ExampleFilesAreGood) {
  const auto checked = cli::check(kRoot + "/deploy/stint.example.yaml", {});
  EXPECT_EQ(checked.text, "ok: 1 provider key, 2 models, 2 API keys, 2 routes, 7 policies\n");
  EXPECT_EQ(checked.exit_code, 0);
}

TEST(Deploy, ExampleOfTheReadmeIsGood) {
  std::vector<std::string> blocks;
  const std::string page = read("README.md");
  const std::string begin = "```yaml\n";
  for (std::size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at)) {
    at += begin.size();
    blocks.push_back(page.substr(at, page.find("```", at) - at));
  }
  ASSERT_EQ(blocks.size(), 3U);
  const Folder folder;
  folder.write("resources.yaml", blocks[1]);
  const Environment environment{{"OPENAI_API_KEY", "sk-x"}, {"ALICE_KEY", "sk-alice"}};
  for (const std::string& bootstrap : {blocks[0], blocks[0] + blocks[2]}) {
    folder.write("stint.yaml", bootstrap);
    EXPECT_EQ(cli::check(folder.path("stint.yaml"), environment).text,
              "ok: 1 provider key, 1 model, 1 API key, 1 route, 4 policies\n");
  }
}

// A block of text of the Kubernetes example ("  name: |"), without its indentation.
std::string block_of(const std::string& manifest, const std::string& name) {
  const std::string begin = "\n  " + name + ": |\n";
  std::istringstream lines(manifest.substr(manifest.find(begin) + begin.size()));
  std::string block;
  for (std::string line; std::getline(lines, line) && line.starts_with("    ");) {
    block += line.substr(4) + "\n";
  }
  return block;
}

TEST(Deploy, FilesOfTheKubernetesExampleAreGood) {
  const std::string manifest = read("deploy/kubernetes/stint.yaml");
  const Folder folder;
  for (const char* name : {"stint.yaml", "resources.yaml"}) {
    folder.write(name, block_of(manifest, name));
  }
  EXPECT_EQ(cli::check(folder.path("stint.yaml"), {}).text,
            "ok: 0 provider keys, 0 models, 0 API keys, 1 route, 1 policy\n");
  const auto loaded = load_bootstrap(folder.path("stint.yaml"), {});
  ASSERT_TRUE(loaded.value && loaded.value->ratelimit.redis);
  EXPECT_EQ(loaded.value->ratelimit.redis->shards.size(), 3U);
  // As long as one container may take to end, and a little more.
  EXPECT_NE(manifest.find("terminationGracePeriodSeconds: 30"), std::string::npos);
  EXPECT_LT(loaded.value->shutdown.max_drain, std::chrono::seconds{30});
}

TEST(Deploy, ContainerIsAllEnvironment) {
  Environment environment;
  std::istringstream lines(read("deploy/container.env"));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    environment.emplace(line.substr(0, line.find('=')), line.substr(line.find('=') + 1));
  }
  EXPECT_GE(environment.size(), 10U);
  const auto loaded = load_bootstrap(std::nullopt, environment);
  EXPECT_THAT(loaded.warnings, IsEmpty());
  ASSERT_THAT(loaded.faults, IsEmpty());
  EXPECT_EQ(loaded.value->resources_file, "/etc/stint/resources.yaml");
  EXPECT_THAT(loaded.value->proxy.real_ip.trusted_proxies,
              testing::ElementsAre("10.0.0.0/8", "fd00::/8"));
  EXPECT_EQ(loaded.value->shutdown.max_drain, std::chrono::seconds{25});
}

// The rows of the tables whose first cell is a key, by the heading above: key, then its cells.
using Tables = std::map<std::string, std::map<std::string, std::vector<std::string>>>;

Tables tables_of_the_page() {
  Tables tables;
  std::string heading;
  std::istringstream lines(read("docs/configuration.md"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("##")) {
      heading = line.substr(line.find(' ') + 1);
      std::erase(heading, '`');
    }
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, '|');) {
      const std::size_t begin = cell.find_first_not_of(' ');
      const std::size_t end = cell.find_last_not_of(' ');
      cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1));
    }
    std::string key = cells.at(1);
    std::erase(key, '`');
    EXPECT_TRUE(tables[heading].emplace(key, cells).second) << key << " stands there twice";
  }
  return tables;
}

// Maps of keys that have rows of their own.
bool is_block(const std::string& key, const std::vector<std::string>& keys) {
  return std::ranges::any_of(keys, [&](const std::string& other) {
    return other.starts_with(key + ".") || other.starts_with(key + "[].");
  });
}

TEST(Documentation, KnowsEveryBootstrapKeyAndItsDefault) {
  const Tables tables = tables_of_the_page();
  std::map<std::string, std::vector<std::string>> rows = tables.at("Bootstrap");
  for (const char* heading : {"ratelimit.redis", "etcd"}) {
    for (const auto& [key, cells] : tables.at(heading)) rows.emplace(key, cells);
  }
  const auto keys = known_bootstrap_keys();
  for (const std::string& key : keys) {
    EXPECT_TRUE(rows.contains(key) || is_block(key, keys)) << "undocumented: " << key;
  }
  for (const auto& [key, cells] : rows) {
    EXPECT_THAT(keys, testing::Contains(key)) << "documented, but unknown";
  }

  const auto loaded = parse_bootstrap("f", "resources_file: r\n", {});
  ASSERT_TRUE(loaded.value);
  for (const Setting& setting : loaded.value->settings) {
    if (setting.key == "resources_file") continue;
    const std::string written = setting.value.empty() ? "none" : "`" + setting.value + "`";
    EXPECT_EQ(rows[setting.key].at(3), written) << setting.key;
  }
}

// Where the page has a key of the resources: under which heading, by which name.
std::pair<std::string, std::string> entry_of(const std::string& key) {
  const std::string last = key.substr(key.rfind('.') + 1);
  if (key.find("conditions[].") != std::string::npos) return {"Conditions", last};
  for (const char* limits : {"rate_limit.", "rate_limit[].", "limits.", "limits[]."}) {
    if (key.find(limits) != std::string::npos) return {"Limits", last};
  }
  const std::size_t collection = key.find("[].");
  if (collection == std::string::npos) return {"Resources", key};
  return {key.substr(0, collection), key.substr(collection + 3)};
}

TEST(Documentation, KnowsEveryResourceKey) {
  Tables tables = tables_of_the_page();
  std::map<std::string, std::vector<std::string>> known;
  for (const std::string& key : known_resource_keys()) {
    const auto [heading, name] = entry_of(key);
    EXPECT_TRUE(tables[heading].contains(name)) << "undocumented: " << key;
    known[heading].push_back(name);
  }
  for (const auto& [heading, names] : known) {
    for (const auto& [key, cells] : tables[heading]) {
      EXPECT_THAT(names, testing::Contains(key)) << "documented, but unknown, in " << heading;
    }
  }
}

}  // namespace
}  // namespace stint::config
