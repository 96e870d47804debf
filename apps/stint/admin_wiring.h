// The admin API on its listener, and what it shows of the store.
#pragma once

#include <expected>
#include <memory>
#include <string>

#include "admin/admin.h"
#include "admin/places.h"
#include "admin/program.h"
#include "config/bootstrap.h"
#include "http/server.h"
#include "net/event_loop.h"
#include "net/task.h"
#include "observe/log.h"
#include "redis_wiring.h"
#include "store/rate_store.h"

namespace stint::app {

// Thread rule: the loop's thread.
class AdminWiring {
 public:
  // Listens from here on. All references must outlive it. `redis`: null where counters are in
  // memory. Error: why it cannot, for a person.
  [[nodiscard]] static std::expected<std::unique_ptr<AdminWiring>, std::string> create(
      net::EventLoop& loop, const config::Bootstrap& bootstrap, const admin::Program& program,
      const RedisWiring* redis, store::RateStore& store, const observe::Log& log);

  [[nodiscard]] net::Task<void> serve();
  // Ends what still runs; before the store stops.
  [[nodiscard]] net::Task<void> stop();

 private:
  AdminWiring() = default;

  std::unique_ptr<admin::Places> places_;
  std::unique_ptr<admin::Admin> admin_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace stint::app
