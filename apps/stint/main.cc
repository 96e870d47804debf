// The program: reads the command line and the environment, makes the real clocks, and wires.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "cli/check.h"
#include "config/bootstrap.h"
#include "config/resources.h"
#include "demo.h"
#include "service.h"

extern char** environ;

namespace stint::app {
namespace {

config::Environment read_environment() {
  config::Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

std::optional<std::string> as_optional(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

int serve(const std::string& file, const config::Environment& environment) {
  const auto load = [file, environment] {
    return config::load_bootstrap(as_optional(file), environment);
  };
  auto loaded = load();
  for (const config::Fault& warning : loaded.warnings) {
    std::fprintf(stderr, "stint: warning: %s\n", to_string(warning).c_str());
  }
  for (const config::Fault& fault : loaded.faults) {
    std::fprintf(stderr, "stint: %s\n", to_string(fault).c_str());
  }
  if (!loaded.value) return 1;
  Service service(std::move(*loaded.value), environment, load);
  if (auto started = service.start(); !started) {
    std::fprintf(stderr, "stint: %s\n", started.error().text.c_str());
    return 1;
  }
  return service.run();
}

int run(int argc, char** argv) {
  CLI::App app{"stint: keeps APIs and LLM traffic within their limits"};
  app.require_subcommand(0, 1);
  std::string config_file;
  app.add_option("-c,--config", config_file, "the bootstrap file; the environment alone without");

  std::string check_file;
  CLI::App* check = app.add_subcommand("check", "says what is wrong with a configuration");
  check->add_option("-c,--config", check_file, "the bootstrap file");
  CLI::App* demo = app.add_subcommand("demo", "a gateway and an upstream to try it with");
  std::string key;
  CLI::App* hash_key = app.add_subcommand("hash-key", "the key_hash of an API key");
  hash_key->add_option("key", key, "the key")->required();
  CLI::App* version = app.add_subcommand("version", "prints the version");
  CLI11_PARSE(app, argc, argv);

  const config::Environment environment = read_environment();
  if (*version) {
    std::puts("stint " STINT_VERSION);
    return 0;
  }
  if (*hash_key) {
    std::puts(config::to_hex(config::hash_key(key)).c_str());
    return 0;
  }
  if (*check) {
    const cli::CheckResult result = cli::check(as_optional(check_file), environment);
    std::fputs(result.text.c_str(), result.exit_code == 0 ? stdout : stderr);
    return result.exit_code;
  }
  if (*demo) return run_demo();
  return serve(config_file, environment);
}

}  // namespace
}  // namespace stint::app

int main(int argc, char** argv) {
  try {
    return stint::app::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stint: %s\n", error.what());
    return 1;
  }
}
