// A server that does what a test says, and the upstream client beside it on one event loop.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/upstream.h"
#include "net/event_loop.h"
#include "net/listener.h"
#include "net/loop_testing.h"
#include "net/stream.h"

namespace stint::http {

// One step of a conversation, from the side of the server.
struct Step {
  enum class Kind : std::uint8_t { request, bytes, send, wait, pause, close, reset, call };
  Kind kind = Kind::request;
  std::string text{};
  std::function<void()> work{};

  // Reads a request with its body.
  static Step request() { return {Kind::request, {}, {}}; }
  // Reads something.
  static Step bytes() { return {Kind::bytes, {}, {}}; }
  static Step send(std::string text) { return {Kind::send, std::move(text), {}}; }
  // Until the test calls go_on.
  static Step wait() { return {Kind::wait, {}, {}}; }
  // Between the bytes of a server that is slow.
  static Step pause() { return {Kind::pause, {}, {}}; }
  static Step close() { return {Kind::close, {}, {}}; }
  static Step reset() { return {Kind::reset, {}, {}}; }
  static Step call(std::function<void()> work) { return {Kind::call, {}, std::move(work)}; }
};
using Script = std::vector<Step>;

// Each byte of the text by itself; slowly: 5 ms apart.
Script byte_by_byte(std::string_view text);
Script slowly(std::string_view text);
Script operator+(Script a, const Script& b);

std::string ok(std::string_view body);                       // with a Content-Length
std::string chunked(const std::vector<std::string>& parts);  // the whole answer
std::string chunk(std::string_view data);

class ScriptedServer {
 public:
  explicit ScriptedServer(net::EventLoop& loop);
  [[nodiscard]] net::Task<void> stop();

  // For the next connection without one. When it is played the server waits for the client to end
  // the connection.
  void play(Script script) { scripts_.push(std::move(script)); }
  void go_on() { waiting_.cancel_all(); }
  // All connections that came have ended, by whichever side.
  [[nodiscard]] net::Task<void> quiet() { return conversations_.join(); }

  [[nodiscard]] Origin origin() const;
  [[nodiscard]] const std::vector<std::string>& requests() const { return requests_; }
  [[nodiscard]] std::size_t connections() const { return connections_; }
  [[nodiscard]] std::size_t ended_by_client() const { return ended_by_client_; }

 private:
  net::Task<void> accept();
  net::Task<void> wait();
  void note_end(net::NetErrc code);
  net::Task<void> converse(net::Stream stream, Script script);

  net::EventLoop& loop_;
  net::Listener listener_;
  net::TaskGroup accepting_;
  net::TaskGroup conversations_;
  net::TaskGroup waiting_;
  std::queue<Script> scripts_;
  std::vector<std::string> requests_;
  std::size_t connections_ = 0;
  std::size_t ended_by_client_ = 0;
};

// A whole answer, or what went wrong.
struct Fetched {
  int status = 0;
  std::string body{};
  std::optional<UpstreamErrc> error{};
  std::string text{};
};

class UpstreamFixture : public testing::Test {
 public:
  UpstreamFixture();
  ~UpstreamFixture() override;

  // Runs the event loop until the task has ended.
  template <class T>
  auto wait(net::Task<T> task) {
    return net::run(loop, std::move(task));
  }

  // Lets everything on the loop go on a little.
  void turn();

  static UpstreamRequest request(std::string method, std::string body = "");
  [[nodiscard]] Origin origin() const { return server.origin(); }
  // Starts a request; its head is awaited.
  UpstreamResult<std::unique_ptr<UpstreamAnswer>> send(UpstreamRequest request);
  // The whole of it.
  Fetched fetch(UpstreamRequest request);
  Fetched fetch(std::string method, std::string body = "");

  // The same beside others.
  net::Task<void> fetch_into(UpstreamRequest request, Fetched& fetched);

  net::EventLoop loop;
  ScriptedServer server{loop};
  UpstreamLimits limits;
  UpstreamCancel cancel;
  std::unique_ptr<UpstreamClient> client;  // of the limits at its first use

  UpstreamClient& use_client();
};

// Reads the answer to its end.
net::Task<Fetched> read_all(UpstreamAnswer& answer);
net::Task<Fetched> fetch_all(UpstreamClient& client, Origin origin, UpstreamRequest request,
                             UpstreamLimits limits, UpstreamCancel& cancel);

}  // namespace stint::http
