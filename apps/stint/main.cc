// The program: reads the command line and the environment, makes the real clocks, and wires.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>

#include "cli/check.h"
#include "cli/ring.h"
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

constexpr int kUsageError = 2;

// Whether there is anything to read a configuration from.
bool is_configured(const std::string& file, const config::Environment& environment) {
  const auto etcd = environment.lower_bound("STINT_ETCD__");
  return !file.empty() || environment.contains("STINT_RESOURCES_FILE") ||
         (etcd != environment.end() && etcd->first.starts_with("STINT_ETCD__"));
}

int say_how_to_configure() {
  std::fputs(
      "stint: no configuration: name one with `stint --config FILE`, or set STINT_RESOURCES_FILE;\n"
      "`stint demo` is a gateway to try without, `stint --help` says what else there is\n",
      stderr);
  return kUsageError;
}

// One line of the standard input, so that a key stands in no list of processes and no history.
std::optional<std::string> read_key() {
  if (isatty(STDIN_FILENO) == 1) std::fputs("key: ", stderr);
  std::string key;
  if (!std::getline(std::cin, key)) return std::nullopt;
  if (key.ends_with('\r')) key.pop_back();
  return key.empty() ? std::nullopt : std::optional(std::move(key));
}

int hash_key(std::string key) {
  if (key.empty() || key == "-") {
    auto read = read_key();
    if (!read) {
      std::fputs("stint: hash-key: no key on the standard input\n", stderr);
      return kUsageError;
    }
    key = std::move(*read);
  }
  std::puts(config::to_hex(config::hash_key(key)).c_str());
  return 0;
}

std::optional<std::string> as_optional(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

int serve(const std::string& file, const config::Environment& environment) {
  if (!is_configured(file, environment)) return say_how_to_configure();
  auto loaded = config::load_bootstrap(as_optional(file), environment);
  for (const config::Fault& warning : loaded.warnings) {
    std::fprintf(stderr, "stint: warning: %s\n", to_string(warning).c_str());
  }
  for (const config::Fault& fault : loaded.faults) {
    std::fprintf(stderr, "stint: %s\n", to_string(fault).c_str());
  }
  if (!loaded.value) return 1;
  Service service(std::move(*loaded.value), environment, file);
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
  check->add_option("-c,--config,file", check_file, "the bootstrap file");
  std::string ring_file;
  cli::RingChange change;
  CLI::App* ring = app.add_subcommand("ring", "how buckets are spread over several Redis");
  ring->add_option("-c,--config,file", ring_file, "the bootstrap file");
  ring->add_option("--with", change.with,
                   "[name=]url[,weight]: as if this shard were there; repeat")
      ->allow_extra_args(false);
  ring->add_option("--without", change.without, "as if the shard of this name were gone; repeat")
      ->allow_extra_args(false);
  CLI::App* demo = app.add_subcommand("demo", "a gateway and an upstream to try it with");
  std::string key;
  CLI::App* hash = app.add_subcommand("hash-key", "the key_hash of an API key");
  hash->add_option("key", key, "the key; - or none: a line of the standard input");
  CLI::App* version = app.add_subcommand("version", "prints the version");
  app.set_version_flag("--version", "stint " STINT_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsageError;
  }

  const config::Environment environment = read_environment();
  if (*version) {
    std::puts("stint " STINT_VERSION);
    return 0;
  }
  if (*hash) return hash_key(std::move(key));
  if (*check) {
    if (!is_configured(check_file, environment)) return say_how_to_configure();
    const cli::CheckResult result = cli::check(as_optional(check_file), environment);
    std::fputs(result.text.c_str(), result.exit_code == 0 ? stdout : stderr);
    return result.exit_code;
  }
  if (*ring) {
    if (!is_configured(ring_file, environment)) return say_how_to_configure();
    const cli::RingResult result = cli::ring(as_optional(ring_file), environment, change);
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
