// What the program says about its configuration.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/bootstrap.h"
#include "config/fault.h"
#include "config/snapshot.h"

namespace stint::admin {

// What was wrong with what was read last. What is in force was read without faults.
struct ConfigReport {
  std::string resources_file{};                   // empty: the resources are from no file
  std::vector<config::Fault> resources_faults{};  // not empty: it is not in force as it is now
  std::vector<config::Fault> resources_warnings{};
  std::vector<config::Fault> bootstrap_faults{};  // of the last time it was read while running
  std::vector<config::Fault> bootstrap_warnings{};
  std::vector<std::string> needs_restart{};  // keys that were changed then, and are not in force
};

// Thread rule: the thread of the admin API's loop.
class Program {
 public:
  virtual ~Program() = default;

  // In force; lives as long as the program.
  [[nodiscard]] virtual const config::Bootstrap& bootstrap() const = 0;
  // In force; null before the first.
  [[nodiscard]] virtual std::shared_ptr<const config::Snapshot> snapshot() const = 0;
  [[nodiscard]] virtual ConfigReport report() const = 0;
};

}  // namespace stint::admin
