// A server on a thread of its own, for tests that talk to it through real sockets.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "http/server.h"
#include "net/listener.h"
#include "net/loop_testing.h"
#include "net/raw_client_testing.h"

namespace stint::http {

class TestServer {
 public:
  explicit TestServer(Handler handler, ServerLimits limits = ServerLimits()) {
    net::LoopThread* const thread = &thread_;
    thread_.call([&] {
      auto counted = [this, inner = std::move(handler)](Exchange& exchange) {
        ++requests;
        return inner(exchange);
      };
      const net::Endpoint any = net::parse_endpoint("127.0.0.1:0").value();
      net::Listener listener = net::Listener::open(thread->loop(), any).value();
      port_ = listener.port();
      server_ =
          std::make_unique<Server>(thread->loop(), std::move(listener), limits, std::move(counted));
      server_->on_refused = [this](int status, const std::string&) {
        const std::lock_guard lock(mutex_);
        refused_.push_back(status);
      };
      server_->on_exception = [this](const std::string& what) {
        const std::lock_guard lock(mutex_);
        exceptions_.push_back(what);
      };
    });
    thread_.start([this] { return server_->serve(); });
  }
  ~TestServer() {
    stop();
    thread_.call([this] { server_.reset(); });
  }

  void stop() {
    thread_.finish([this] { return server_->stop(); });
  }
  void drain() {
    thread_.call([this] { server_->drain(); });
  }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] net::LoopThread& thread() noexcept { return thread_; }
  [[nodiscard]] net::EventLoop& loop() noexcept { return thread_.loop(); }
  [[nodiscard]] std::size_t connections() {
    return thread_.call([this] { return server_->connections(); });
  }
  [[nodiscard]] std::size_t active_exchanges() {
    return thread_.call([this] { return server_->active_exchanges(); });
  }
  // Statuses of requests that no handler saw.
  [[nodiscard]] std::vector<int> refused() {
    const std::lock_guard lock(mutex_);
    return refused_;
  }
  [[nodiscard]] std::vector<std::string> exceptions() {
    const std::lock_guard lock(mutex_);
    return exceptions_;
  }

  std::atomic<int> requests = 0;  // that reached the handler

 private:
  std::mutex mutex_;
  std::vector<int> refused_;
  std::vector<std::string> exceptions_;
  std::uint16_t port_ = 0;
  std::unique_ptr<Server> server_;
  net::LoopThread thread_;
};

// Answers with what the request was: "METHOD path query body".
inline net::Task<void> echo_request(Exchange& exchange) {
  const auto body = co_await exchange.read_body();
  if (!body) co_return;
  const RequestHead& head = exchange.head();
  std::string text = head.method + " " + head.path + " " + head.query + " " + *body;
  ResponseHead answer;
  co_await exchange.respond(std::move(answer), std::move(text));
}

// One answer with a Content-Length as the client reads it.
struct RawAnswer {
  int status = 0;
  std::string head;
  std::string body;
};
inline RawAnswer read_answer(net::RawClient& client) {
  RawAnswer answer;
  answer.head = client.read_until("\r\n\r\n");
  if (answer.head.size() < 12) return answer;
  answer.status = std::stoi(answer.head.substr(9, 3));
  const std::string name = "Content-Length: ";
  const std::size_t length = answer.head.find(name);
  if (length == std::string::npos) return answer;
  answer.body = client.read(std::stoul(answer.head.substr(length + name.size())));
  return answer;
}

}  // namespace stint::http
