#include "cli/check.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "config/bootstrap.h"
#include "config/read_file.h"
#include "config/snapshot.h"

namespace stint::cli {
namespace {

void append(std::string& text, const std::vector<config::Fault>& faults, std::string_view prefix) {
  for (const config::Fault& fault : faults) {
    text += prefix;
    text += to_string(fault) + "\n";
  }
}

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
  return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}

std::string summary(const config::Snapshot& snapshot) {
  const config::Resources& rows = snapshot.resources();
  return "ok: " + counted(rows.provider_keys.size(), "provider key", "provider keys") + ", " +
         counted(rows.models.size(), "model", "models") + ", " +
         counted(rows.api_keys.size(), "API key", "API keys") + ", " +
         counted(rows.routes.size(), "route", "routes") + ", " +
         counted(snapshot.early().size() + snapshot.late().size(), "policy", "policies") + "\n";
}

// The files of TLS that are in use, as far as they can be read.
std::vector<config::Fault> check_tls_files(const config::Bootstrap& bootstrap) {
  const bool redis = bootstrap.ratelimit.backend == config::Backend::redis;
  std::vector<config::Fault> faults;
  for (const config::Setting& setting : bootstrap.settings) {
    const std::string_view key = setting.key;
    const bool in_use = key.starts_with("upstream.tls.") ||
                        (redis && (key.starts_with("ratelimit.redis.tls.") ||
                                   key.starts_with("ratelimit.redis.sentinel_tls.")));
    const bool given = !setting.file.empty();  // else it is told where it comes from
    if (!in_use || !given || !key.ends_with("_file") || setting.value.empty()) continue;
    if (const auto text = config::read_regular_file(setting.value); !text) {
      faults.push_back({setting.file, setting.line, setting.column, setting.key,
                        "'" + setting.value + "' " + text.error()});
    }
  }
  return faults;
}

}  // namespace

CheckResult check(const std::optional<std::string>& file, const config::Environment& environment) {
  CheckResult result{.exit_code = 1, .text = {}};
  std::string resources;
  const auto bootstrap = config::load_bootstrap(file, environment, &resources);
  append(result.text, bootstrap.faults, "");
  const auto tls =
      bootstrap.value ? check_tls_files(*bootstrap.value) : std::vector<config::Fault>();
  append(result.text, tls, "");
  append(result.text, bootstrap.warnings, "warning: ");
  // Whatever is wrong with the one file, the other is looked at, too.
  if (resources.empty()) return result;

  const auto text = config::read_regular_file(resources);
  if (!text) {
    append(result.text, {{resources, 0, 0, "", text.error()}}, "");
    return result;
  }
  const int ipv6_prefix = bootstrap.value ? bootstrap.value->proxy.real_ip.ipv6_prefix : 0;
  const auto snapshot =
      config::load_snapshot(resources, *text, environment, 1, OnStoreError::local, ipv6_prefix);
  append(result.text, snapshot.faults, "");
  append(result.text, snapshot.warnings, "warning: ");
  if (!bootstrap.value || !tls.empty() || !snapshot.value) return result;
  result.text += summary(**snapshot.value);
  result.exit_code = 0;
  return result;
}

}  // namespace stint::cli
