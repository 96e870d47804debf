// Random histories against a server that remembers what it ran: whatever happens in whatever order,
// each call is answered once, with its own reply or a fate that is true.
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redis/session.h"
#include "redis/session_testing.h"

namespace stint::redis {
namespace {

// Runs each command as it comes, and says what it ran by its key.
class FakeServer {
 public:
  void take(std::string_view bytes) { in_ += bytes; }
  // Runs what has arrived, up to so many commands.
  void work(int commands, std::mt19937_64& random) {
    ReplyReader reader;
    reader.feed(in_);
    for (; commands > 0; --commands) {
      const auto command = reader.next();
      if (!command || !*command) break;
      run(**command, random);
    }
    in_.erase(0, in_.size() - reader.unread_bytes());
  }
  [[nodiscard]] std::string answer(std::size_t most) {
    const std::string some = out_.substr(0, most);
    out_.erase(0, some.size());
    return some;
  }
  void flush_scripts() { scripts_.clear(); }
  // Of what it took before the connection ended it may still run a part.
  void disconnect(int commands, std::mt19937_64& random) {
    work(commands, random);
    in_.clear();
    out_.clear();
  }
  [[nodiscard]] int runs_of(const std::string& key) const {
    const auto found = runs_.find(key);
    return found == runs_.end() ? 0 : found->second;
  }

 private:
  void run(const Reply& command, std::mt19937_64& random) {
    const std::string_view name = command[0].text();
    if (name == "TIME") {
      out_ += "*2\r\n$1\r\n1\r\n$1\r\n5\r\n";
    } else if (name == "SCRIPT") {
      const Script script("", std::string(command[2].text()));
      scripts_.insert(script.sha1());
      out_ += "$40\r\n" + script.sha1() + "\r\n";
    } else if (name == "EVALSHA" && !scripts_.contains(std::string(command[1].text()))) {
      out_ += "-NOSCRIPT No matching script.\r\n";
    } else if (random() % 16 == 0) {
      out_ += "-TRYAGAIN later\r\n";
    } else {
      const std::string key(command[name == "EVALSHA" ? 3 : 1].text());
      ++runs_[key];
      out_ += "*2\r\n:1\r\n$" + std::to_string(key.size()) + "\r\n" + key + "\r\n";
    }
  }

  std::string in_;
  std::string out_;
  std::set<std::string> scripts_;
  std::map<std::string, int> runs_;
};

class RandomHistory : public SessionFixture {
 protected:
  struct Call {
    std::string key;
    Outcome outcome;
  };

  void make_call() {
    Call& made = *calls.emplace_back(std::make_unique<Call>());
    made.key = "key-" + std::to_string(calls.size());
    const Duration deadline = now + ms(static_cast<std::int64_t>(1 + random() % 100));
    CallDone done = into(made.outcome);
    const std::string_view key = made.key;
    if (random() % 4 == 0) {
      const std::string_view words[] = {"ECHO", key};
      session->command(words, now, deadline, std::move(done));
    } else {
      const Script& which = random() % 2 == 0 ? script : other;
      session->call(which, {&key, 1}, {}, now, deadline, std::move(done));
    }
  }
  void begin_write() {
    if (!writing) server.take(session->begin_write(now));
    writing = true;
  }
  void end_write() {
    if (writing) session->end_write();
    writing = false;
  }
  void reconnect() {
    session->lost(Reason::lost, "lost");
    server.disconnect(static_cast<int>(random() % 4), random);
    end_write();
    session->open(now, now + ms(100));
  }

  void step() {
    switch (random() % 10) {
      case 0:
      case 1:
      case 2:
        make_call();
        break;
      case 3:
        begin_write();
        break;
      case 4:
        end_write();
        begin_write();
        end_write();
        break;
      case 5:
        server.work(1 + static_cast<int>(random() % 5), random);
        break;
      case 6:
      case 7:
        receive(server.answer(1 + random() % 150));
        break;
      case 8:
        advance(ms(static_cast<std::int64_t>(random() % 12)));
        break;
      default:
        if (random() % 4 == 0) server.flush_scripts();
        if (random() % 30 == 0) reconnect();
        break;
    }
    if (session->state() == State::broken) reconnect();
  }

  void check() const {
    for (const auto& made : calls) {
      const Outcome& outcome = made->outcome;
      ASSERT_EQ(outcome.answers, 1) << made->key;
      const int runs = server.runs_of(made->key);
      if (*outcome.result) {
        ASSERT_EQ((**outcome.result)[1].text(), made->key) << "somebody else's reply";
        ASSERT_EQ(runs, 1) << made->key;
      } else if (outcome.result->error().fate == Fate::not_run) {
        ASSERT_EQ(runs, 0) << made->key << " has run: " << outcome.text();
      } else {
        ASSERT_LE(runs, 1) << made->key;
      }
    }
  }

  using State = Session::State;
  std::mt19937_64 random;
  FakeServer server;
  std::vector<std::unique_ptr<Call>> calls;
  bool writing = false;
};

TEST_F(RandomHistory, EveryCallIsAnsweredOnceAndTruly) {
  int good = 0;
  int unknown = 0;
  int not_run = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random.seed(seed);
    server = FakeServer();
    calls.clear();
    SessionOptions with = options();
    if (seed % 2 == 0) with.scripts = {&script, &other};
    open(with);
    for (int i = 0; i < 400; ++i) step();
    end_write();
    session->lost(Reason::stopped, "the end");
    server.disconnect(100, random);
    ASSERT_NO_FATAL_FAILURE(check());
    ASSERT_EQ(session->pending(), 0U);
    for (const auto& made : calls) {
      const CallResult& result = *made->outcome.result;
      ++(result ? good : result.error().fate == Fate::unknown ? unknown : not_run);
    }
    session.reset();
  }
  // That the histories are of the kind that was meant.
  EXPECT_GT(good, 5000);
  EXPECT_GT(unknown, 2000);
  EXPECT_GT(not_run, 2000);
}

}  // namespace
}  // namespace stint::redis
