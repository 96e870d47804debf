// A session without a server: what it sends is read as commands, what it is sent is written by
// hand.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/session.h"

namespace stint::redis {

inline Duration ms(std::int64_t count) { return std::chrono::milliseconds(count); }

// "SCRIPT LOAD return 1", with the words of each command apart by one blank.
inline std::vector<std::string> commands_in(std::string_view bytes) {
  ReplyReader reader;  // commands are arrays of texts, as replies may be
  reader.feed(bytes);
  std::vector<std::string> result;
  for (;;) {
    const auto command = reader.next();
    if (!command || !*command) break;
    std::string text;
    for (const Value& word : (*command)->elements()) {
      if (!text.empty()) text += ' ';
      text += word.text();
    }
    result.push_back(text);
  }
  EXPECT_EQ(reader.unread_bytes(), 0U) << "a command was cut off";
  return result;
}

// One call and what came of it. Counts the answers: there must be one.
struct Outcome {
  int answers = 0;
  std::optional<CallResult> result;

  [[nodiscard]] bool pending() const { return answers == 0; }
  [[nodiscard]] std::string text() const {
    if (answers != 1) return "answered " + std::to_string(answers) + " times";
    if (*result) return std::string((*result)->text());
    const CallError& error = result->error();
    return std::string(to_string(error.fate)) + " " + to_string(error.reason);
  }
};

class SessionFixture : public ::testing::Test {
 protected:
  // While what its calls answer into is still there.
  void TearDown() override { session.reset(); }

  using Sent = std::vector<std::string>;

  SessionOptions options() {
    SessionOptions made;
    made.on_result = [this](const CallResult&) { ++results; };
    made.on_configuration = [this](const std::string& text) { configuration.push_back(text); };
    return made;
  }

  // What it sends now.
  Sent sent() {
    const std::string bytes(session->begin_write(now));
    session->end_write();
    return commands_in(bytes);
  }
  void receive(std::string_view bytes) { session->received(bytes, now); }

  void open(SessionOptions with) {
    session = std::make_unique<Session>(std::move(with));
    session->open(now, now + ms(1000));
  }
  // Logged in, with nothing but TIME.
  void open_ready() {
    open(options());
    EXPECT_EQ(sent(), Sent{"TIME"});
    receive("*2\r\n$10\r\n1700000000\r\n$1\r\n5\r\n");
    ASSERT_EQ(session->state(), Session::State::ready);
  }

  CallDone into(Outcome& outcome) {
    return [&outcome](CallResult result) {
      ++outcome.answers;
      outcome.result.emplace(std::move(result));
    };
  }
  void call(Outcome& outcome, std::string_view key, Duration timeout = ms(50)) {
    const std::string_view arg = "1";
    session->call(script, {&key, 1}, {&arg, 1}, now, now + timeout, into(outcome));
  }
  void call(const Script& which, Outcome& outcome, std::string_view key) {
    session->call(which, {&key, 1}, {}, now, now + ms(50), into(outcome));
  }
  void ping(Outcome& outcome, Duration timeout = ms(50)) {
    const std::string_view word = "PING";
    session->command({&word, 1}, now, now + timeout, into(outcome));
  }
  [[nodiscard]] std::string evalsha(std::string_view key) const {
    return "EVALSHA " + script.sha1() + " 1 " + std::string(key) + " 1";
  }
  void advance(Duration span) {
    now += span;
    session->tick(now);
  }

  const Script script{"first", "return 1"};
  const Script other{"second", "return 2"};
  Duration now = ms(1'000'000);
  int results = 0;
  std::vector<std::string> configuration;
  std::unique_ptr<Session> session;
};

}  // namespace stint::redis
