// One event loop of the data plane: a thread, a listener, the requests of its connections.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "gateway/gateway.h"
#include "http/server.h"
#include "net/connect.h"
#include "net/event_loop.h"
#include "net/listener.h"
#include "redis_wiring.h"

namespace stint::app {

// Thread rule: as each function says.
class Worker {
 public:
  // Listens from here on. `loop` is the worker's own, and must outlive it. Error: why it cannot.
  [[nodiscard]] static net::NetResult<std::unique_ptr<Worker>> create(
      net::EventLoop& loop, gateway::Gateway& gateway, const net::Endpoint& endpoint,
      std::shared_ptr<const net::TlsClientContext> tls);
  ~Worker();

  // Before `start`: the counters are there. Must outlive it.
  void use(RedisWiring& redis);
  // Before it: serve_by. Once.
  void start();
  // Any thread.
  void serve_by(std::shared_ptr<const gateway::Serving> serving);
  // Any thread; once. No new connections from now on; ends when all requests are answered, or
  // after `grace` ends those that are not. `ended` from then on, and `join` returns.
  void drain(Duration grace);
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  void join();

 private:
  Worker(net::EventLoop& loop, gateway::Gateway& gateway,
         std::shared_ptr<const net::TlsClientContext> tls);
  [[nodiscard]] net::Task<void> serve();
  [[nodiscard]] net::Task<void> end(Duration grace);

  gateway::Gateway& gateway_;
  net::EventLoop& loop_;
  net::TaskGroup tasks_{loop_};
  net::TaskGroup ending_{loop_};  // of what ends the others
  RedisWiring* redis_ = nullptr;
  gateway::Dispatcher dispatcher_;
  std::unique_ptr<http::Server> server_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace stint::app
