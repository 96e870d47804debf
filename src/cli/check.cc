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

}  // namespace

CheckResult check(const std::optional<std::string>& file, const config::Environment& environment) {
  CheckResult result{.exit_code = 1, .text = {}};
  std::string resources;
  const auto bootstrap = config::load_bootstrap(file, environment, &resources);
  append(result.text, bootstrap.faults, "");
  append(result.text, bootstrap.warnings, "warning: ");
  // Whatever is wrong with the one file, the other is looked at, too.
  if (resources.empty()) return result;

  const auto text = config::read_file(resources);
  if (!text) {
    append(result.text, {{resources, 0, 0, "", text.error()}}, "");
    return result;
  }
  const auto snapshot = config::load_snapshot(resources, *text, environment, 1);
  append(result.text, snapshot.faults, "");
  append(result.text, snapshot.warnings, "warning: ");
  if (!bootstrap.value || !snapshot.value) return result;
  result.text += summary(**snapshot.value);
  result.exit_code = 0;
  return result;
}

}  // namespace stint::cli
