// Damaged files end in faults, whatever the damage.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "config/bootstrap.h"
#include "config/read_file.h"
#include "config/snapshot.h"

namespace stint::config {
namespace {

constexpr unsigned kSeed = 20'260'801;

std::string example(const std::string& name) {
  return read_file(std::string(STINT_SOURCE_DIR) + "/deploy/" + name).value_or("");
}

void load(const std::string& text) {
  const auto resources = load_snapshot("f", text, {}, 1);
  ASSERT_NE(resources.value.has_value(), !resources.faults.empty()) << text;
  const auto bootstrap = parse_bootstrap("f", text, {});
  ASSERT_NE(bootstrap.value.has_value(), !bootstrap.faults.empty()) << text;
}

TEST(DamagedFiles, CutAnywhere) {
  for (const char* name : {"resources.example.yaml", "stint.example.yaml"}) {
    const std::string text = example(name);
    ASSERT_FALSE(text.empty());
    for (std::size_t i = 0; i < text.size(); i += 3) load(text.substr(0, i));
  }
}

TEST(DamagedFiles, WithBytesThatMeanSomethingElsewhere) {
  std::mt19937 random(kSeed);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  const std::string bytes = "{}[]:,-#&*!|>'\"%@`$?~ \t\n\r01.xX\x80\xFF\\";
  const std::string text = example("resources.example.yaml");
  for (int round = 0; round < 1'000; ++round) {
    std::string damaged = text;
    for (std::size_t i = 0; i < 1 + below(3); ++i) {
      const std::size_t at = below(damaged.size());
      const std::size_t length = below(4);
      damaged.replace(at, length, 1, bytes[below(bytes.size())]);
    }
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", round " + std::to_string(round));
    load(damaged);
  }
}

TEST(DamagedFiles, NestedWithoutEnd) {
  for (const char* open : {"[", "{a: ", "- ", "a:\n", "? "}) {
    std::string text;
    for (int i = 0; i < 10'000; ++i) text += open;
    load(text);
  }
  std::string indented;
  for (std::size_t i = 0; i < 1'000; ++i) indented += std::string(i, ' ') + "a:\n";
  load(indented);
}

}  // namespace
}  // namespace stint::config
