// The topology of one server: every key is there.
#pragma once

#include <span>
#include <string_view>

#include "net/event_loop.h"
#include "net/task.h"
#include "redis/server.h"
#include "redis/target.h"

namespace stint::redis {

class Single final : public Topology {
 public:
  Single(net::EventLoop& loop, ServerOptions options);

  [[nodiscard]] Route route(std::string_view routing_key) override;
  [[nodiscard]] std::span<Target* const> targets() override { return {&target_, 1}; }
  void start() override { server_.start(); }
  [[nodiscard]] net::Task<void> stop() override;

 private:
  Server server_;
  Target* target_ = &server_;
};

}  // namespace stint::redis
