// A node of a Cluster that is only being connected with, on real servers.
#include "redis/cluster_node.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/event_loop.h"
#include "net/loop_testing.h"
#include "redis/server_testing.h"
#include "tests/integration/redis_testing.h"

namespace stint::redis {
namespace {

using redis_testing::Gate;
using redis_testing::RedisServer;
using std::chrono::milliseconds;

class NodeTest : public ::testing::Test {
 protected:
  ~NodeTest() override {
    if (auto server = node_.end()) net::run(loop_, server->stop());
  }

  void begin(std::uint16_t port) {
    ServerOptions options = options_for(port);
    options.entropy = &entropy_;
    options.connect_timeout = std::chrono::seconds{10};
    options.on_event = [this](const ServerEvent& event) { node_.told(event); };
    options.probe.on_reply = [this](const CallResult& result) {
      if (result) node_.probed();
    };
    node_.begin(std::make_unique<Server>(loop_, std::move(options)));
  }
  void call(std::string_view key, Duration timeout) {
    node_.call(count_, {&key, 1}, {}, loop_.now() + timeout, [this](CallResult result) {
      answers_.push_back(told(result));
      took_.push_back(loop_.now());
    });
  }
  void run_until_answered(std::size_t answers) {
    bool expired = false;
    net::Deadline guard(loop_.deadlines(), [&] { expired = true; });
    guard.arm(loop_.now() + std::chrono::seconds{20});
    while (answers_.size() < answers && !expired) net::run_what_is_ready(loop_);
    EXPECT_FALSE(expired) << answers_.size() << " answers";
  }

  const Script count_{"count", "return redis.call('INCR', KEYS[1])"};
  base::FixedEntropy entropy_;
  net::EventLoop loop_;
  ClusterNode node_{loop_, {"127.0.0.1", 1}, "node"};
  std::vector<std::string> answers_;
  std::vector<Duration> took_;
};

TEST_F(NodeTest, CallsWaitForTheFirstConnection) {
  RedisServer server;
  begin(server.port());
  EXPECT_TRUE(node_.available());
  EXPECT_FALSE(node_.server()->available());
  for (int i = 0; i < 3; ++i) call("a", std::chrono::seconds{10});
  EXPECT_TRUE(answers_.empty());
  run_until_answered(3);
  EXPECT_EQ(answers_, (std::vector<std::string>{"1", "2", "3"})) << "in their order";
  EXPECT_TRUE(node_.server()->available());
  call("a", std::chrono::seconds{10});
  run_until_answered(4);
  EXPECT_EQ(answers_.back(), "4");
}

TEST_F(NodeTest, TheyDoNotIfItFails) {
  begin(1);
  const Duration began = loop_.now();
  call("a", std::chrono::seconds{10});
  run_until_answered(1);
  EXPECT_EQ(answers_[0], "not_run unavailable");
  EXPECT_LT(loop_.now() - began, std::chrono::seconds{5});
  EXPECT_FALSE(node_.available());
  call("a", std::chrono::seconds{10});
  EXPECT_EQ(answers_.size(), 2U) << "at once from then on";
}

TEST_F(NodeTest, NoLongerThanTheirDeadline) {
  RedisServer server;
  Gate gate(server.port());
  gate.stall();
  begin(gate.port());
  const Duration began = loop_.now();
  call("a", milliseconds{300});
  call("b", milliseconds{50});
  run_until_answered(1);
  EXPECT_EQ(answers_[0], "not_run timed_out");
  EXPECT_GE(took_[0] - began, milliseconds{50});
  EXPECT_LT(took_[0] - began, milliseconds{300});
  run_until_answered(2);
  EXPECT_GE(took_[1] - began, milliseconds{300});
  // And not for ever: one that does not come is as good as one that fails.
  call("c", std::chrono::seconds{10});
  run_until_answered(3);
  EXPECT_EQ(answers_[2], "not_run unavailable");
  EXPECT_FALSE(node_.available());
}

TEST_F(NodeTest, OneThatIsNoNodeAnyMoreAnswersAtOnce) {
  RedisServer server;
  begin(server.port());
  call("a", std::chrono::seconds{10});
  auto ended = node_.end();
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_[0], "not_run unavailable");
  EXPECT_FALSE(node_.available());
  call("a", std::chrono::seconds{10});
  EXPECT_EQ(answers_.size(), 2U);
  net::run(loop_, ended->stop());
}

}  // namespace
}  // namespace stint::redis
