// A client of a real Redis server, on the test's own thread: its loop runs only while a test waits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/deadline.h"
#include "net/event_loop.h"
#include "net/loop_testing.h"
#include "redis/server.h"

namespace stint::redis {

inline ServerOptions options_for(std::uint16_t port) {
  ServerOptions options;
  options.address.host = "127.0.0.1";
  options.address.port = port;
  return options;
}

class TestClient {
 public:
  using Kind = ServerEvent::Kind;

  explicit TestClient(ServerOptions options) : probe_(options.probe) {
    options.entropy = &entropy_;
    options.on_event = [this](const ServerEvent& event) {
      events.push_back(event);
      check();
    };
    options.on_time = [this](TimePoint time, Duration sent_at, Duration received_at) {
      store_time = time;
      EXPECT_LE(sent_at, received_at);
      EXPECT_LE(received_at, loop.now());
    };
    options.probe.on_reply = [this](const CallResult& result) {
      if (probe_.on_reply) probe_.on_reply(result);
      ++probes;
      check();
    };
    server = std::make_unique<Server>(loop, std::move(options));
  }
  ~TestClient() {
    if (server) net::run(loop, server->stop());
  }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  // Runs the loop until it holds; looks after every answer and event.
  void wait_for(const char* what, std::function<bool()> condition) {
    bool expired = false;
    net::Deadline guard(loop.deadlines(), [&] {
      expired = true;
      loop.stop();
    });
    guard.arm(loop.now() + std::chrono::seconds{20});
    condition_ = std::move(condition);
    while (!expired && !condition_()) loop.run();
    condition_ = nullptr;
    if (expired) ADD_FAILURE() << "waited in vain for: " << what << "; events: " << told();
  }
  void wait_until_available() {
    wait_for("available", [this] { return server->available(); });
  }
  void wait_for_event(Kind kind) {
    wait_for(to_string(kind), [this, kind] { return count(kind) > 0; });
  }
  [[nodiscard]] std::ptrdiff_t count(Kind kind) const {
    return std::ranges::count(events, kind, &ServerEvent::kind);
  }
  [[nodiscard]] std::string text_of(Kind kind) const {
    const auto found = std::ranges::find(events, kind, &ServerEvent::kind);
    return found == events.end() ? std::string("no such event") : found->text;
  }
  [[nodiscard]] std::string told() const {
    std::string text;
    for (const ServerEvent& event : events) {
      text += std::string(to_string(event.kind)) + " (" + event.text + ") ";
    }
    return text;
  }

  // Makes a call without waiting for it.
  void call(const Script& script, std::string_view key, Duration timeout, CallDone done) {
    server->call(script, {&key, 1}, {}, loop.now() + timeout, std::move(done));
  }
  // Makes a call and waits for its answer.
  CallResult call(const Script& script, std::string_view key,
                  Duration timeout = std::chrono::seconds{10}) {
    std::optional<CallResult> result;
    call(script, key, timeout, into(result));
    return answer_of(result);
  }
  CallResult command(std::initializer_list<std::string_view> words) {
    std::optional<CallResult> result;
    const std::span<const std::string_view> all(words.begin(), words.size());
    server->command(all, loop.now() + std::chrono::seconds{10}, into(result));
    return answer_of(result);
  }
  // Makes so many calls that nobody answers.
  void time_out(const Script& script, int calls) {
    int timed_out = 0;
    for (int i = 0; i < calls; ++i) {
      call(script, "a", std::chrono::milliseconds{50}, [this, &timed_out](CallResult result) {
        EXPECT_FALSE(result);
        EXPECT_EQ(result.error().fate, Fate::unknown);
        EXPECT_EQ(result.error().reason, Reason::timed_out);
        ++timed_out;
        check();
      });
    }
    wait_for("time-outs", [&] { return timed_out == calls; });
  }
  CallDone into(std::optional<CallResult>& result) {
    return [this, &result](CallResult answer) {
      EXPECT_FALSE(result) << "answered twice";
      result.emplace(std::move(answer));
      check();
    };
  }
  CallResult answer_of(std::optional<CallResult>& result) {
    wait_for("an answer", [&result] { return result.has_value(); });
    if (!result) result.emplace(std::unexpected(CallError()));
    return std::move(*result);
  }
  // Looks at what a test waits for, when what happens now is over.
  void check() {
    loop.post([this] {
      if (condition_ && condition_()) loop.stop();
    });
  }

  net::EventLoop loop;
  std::vector<ServerEvent> events;
  std::optional<TimePoint> store_time;
  int probes = 0;
  std::unique_ptr<Server> server;

 private:
  base::FixedEntropy entropy_;
  Probe probe_;
  std::function<bool()> condition_;
};

[[nodiscard]] inline std::string told(const CallResult& result) {
  if (!result) {
    const CallError& error = result.error();
    return std::string(to_string(error.fate)) + " " + to_string(error.reason);
  }
  const Reply& reply = *result;
  const auto number = reply.number();
  return number ? std::to_string(*number) : std::string(reply.text());
}

// So many calls at once of one script that counts, over and over while there is a connection, and
// what came of them.
class Load {
 public:
  Load(TestClient& client, const Script& script, int calls, Duration timeout)
      : client_(client),
        script_(script),
        left_(calls),
        timeout_(timeout),
        again_(client.loop.deadlines(), [this] { go_on(); }) {}

  // Called after each answer, with the number of answers.
  std::function<void(int)> on_answer{};

  void run(int at_once) {
    client_.wait_for("a connection", [this] { return client_.server->available(); });
    client_.loop.post([this, at_once] {
      for (int i = 0; i < at_once; ++i) next();
    });
    client_.wait_for("the end of the load", [this] { return left_ == 0 && running_ == 0; });
  }

  int good = 0;
  int not_run = 0;
  int unknown = 0;

 private:
  void next() {
    if (left_ == 0) return;
    if (!client_.server->available()) {
      ++parked_;
      again_.arm(client_.loop.now() + std::chrono::milliseconds{1});
      return;
    }
    --left_;
    ++running_;
    client_.call(script_, "load", timeout_, [this](CallResult result) {
      --running_;
      ++(result ? good : result.error().fate == Fate::unknown ? unknown : not_run);
      if (on_answer) on_answer(good + not_run + unknown);
      next();
      client_.check();
    });
  }
  void go_on() {
    for (int parked = std::exchange(parked_, 0); parked > 0; --parked) next();
  }

  TestClient& client_;
  const Script& script_;
  int left_;
  int running_ = 0;
  int parked_ = 0;
  Duration timeout_;
  net::Deadline again_;
};

}  // namespace stint::redis
