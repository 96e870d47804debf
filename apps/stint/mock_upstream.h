// A small upstream to try the gateway with: chat completions, also streamed, and embeddings in
// OpenAI's format, and a plain page. No model: it answers with what it was asked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "http/server.h"
#include "net/event_loop.h"
#include "net/listener.h"

namespace stint::app {

// On a thread of its own, on loopback, until destroyed.
class MockUpstream {
 public:
  [[nodiscard]] static net::NetResult<std::unique_ptr<MockUpstream>> create();
  ~MockUpstream();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

 private:
  MockUpstream();
  [[nodiscard]] net::Task<void> serve();
  [[nodiscard]] net::Task<void> stop();
  [[nodiscard]] net::Task<void> answer(http::Exchange& exchange);
  [[nodiscard]] net::Task<void> chat(http::Exchange& exchange, std::string body);
  [[nodiscard]] net::Task<void> stream(http::Exchange& exchange, std::string text,
                                       std::int64_t input, std::string model);

  net::EventLoop loop_;
  net::TaskGroup tasks_{loop_};
  net::TaskGroup ending_{loop_};  // of what ends the others
  std::unique_ptr<http::Server> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace stint::app
