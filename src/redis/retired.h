// Servers that a topology has given up, until they have ended.
#pragma once

#include <memory>
#include <utility>

#include "net/event_loop.h"
#include "net/task.h"
#include "redis/server.h"

namespace stint::redis {

// Thread rule: the thread of the loop. To be joined before the destruction.
class RetiredServers {
 public:
  explicit RetiredServers(net::EventLoop& loop) : tasks_(loop) {}

  // Its pending calls are answered (`stopped`) before this returns. Not from a callback of that
  // server.
  void add(std::unique_ptr<Server> server) { tasks_.start(end(std::move(server))); }
  [[nodiscard]] net::Task<void> join() { return tasks_.join(); }

 private:
  static net::Task<void> end(std::unique_ptr<Server> server) { co_await server->stop(); }

  net::TaskGroup tasks_;
};

}  // namespace stint::redis
