// A program whose configuration is a text, and an exchange that carries one request to it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "admin/program.h"
#include "http/exchange_testing.h"

namespace stint::admin {

class TextProgram final : public Program {
 public:
  TextProgram(const std::string& bootstrap, const std::string& resources) {
    auto loaded = config::parse_bootstrap("stint.yaml", bootstrap, {});
    for (const config::Fault& fault : loaded.faults) ADD_FAILURE() << to_string(fault);
    bootstrap_ = std::move(loaded.value).value_or(config::Bootstrap());
    if (resources.empty()) return;
    auto snapshot = config::load_snapshot("resources.yaml", resources, {}, 3);
    for (const config::Fault& fault : snapshot.faults) ADD_FAILURE() << to_string(fault);
    snapshot_ = snapshot.value.value_or(nullptr);
  }

  ConfigReport last{};

  [[nodiscard]] const config::Bootstrap& bootstrap() const override { return bootstrap_; }
  [[nodiscard]] std::shared_ptr<const config::Snapshot> snapshot() const override {
    return snapshot_;
  }
  [[nodiscard]] ConfigReport report() const override { return last; }

 private:
  config::Bootstrap bootstrap_;
  std::shared_ptr<const config::Snapshot> snapshot_;
};

class OneExchange final : public http::BufferedExchange {
 public:
  OneExchange() : BufferedExchange("127.0.0.1") {}
};

}  // namespace stint::admin
