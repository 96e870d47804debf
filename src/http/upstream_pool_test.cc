// Which connections are kept, and what a request does whose kept connection is dead.
#include "http/upstream_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "http/upstream.h"
#include "http/upstream_testing.h"
#include "net/stream_testing.h"

namespace stint::http {
namespace {

class UpstreamReuse : public UpstreamFixture {
 protected:
  // A kept connection whose server does this on the next request, and one more connection.
  void keep_one_that_does(const Script& script) {
    server.play(Script{Step::request(), Step::send(ok("first"))} + script);
    EXPECT_EQ(fetch("GET").body, "first");
    EXPECT_EQ(client->idle_connections(), 1U);
  }
};

TEST_F(UpstreamReuse, AClosedConnectionIsPassedOverForEveryRequest) {
  for (const Step& end : {Step::close(), Step::reset()}) {
    keep_one_that_does({end});
    wait(server.quiet());
    server.play({Step::request(), Step::send(ok("second"))});
    EXPECT_EQ(fetch("POST", "x").body, "second");
    client->close_idle();
  }
}

TEST_F(UpstreamReuse, AClosedConnectionLeavesThePoolByItself) {
  keep_one_that_does({Step::wait(), Step::close()});
  server.go_on();
  net::run_what_is_ready(loop);
  EXPECT_EQ(client->idle_connections(), 0U);
}

TEST_F(UpstreamReuse, BytesThatNobodyAskedForEndAKeptConnection) {
  keep_one_that_does({Step::wait(), Step::send("HTTP/1.1 408 Request Timeout\r\n\r\n")});
  server.go_on();
  wait(server.quiet());
  EXPECT_EQ(server.ended_by_client(), 1U);
  EXPECT_EQ(client->idle_connections(), 0U);
}

TEST_F(UpstreamReuse, ADeadConnectionIsReplacedForWhatMayBeRepeated) {
  for (const std::string method : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"}) {
    for (const Step& end : {Step::close(), Step::reset()}) {
      keep_one_that_does({Step::request(), end});
      server.play({Step::request(), Step::send("HTTP/1.1 204 No Content\r\n\r\n")});
      EXPECT_EQ(fetch(method).status, 204) << method;
      client->close_idle();
    }
  }
}

TEST_F(UpstreamReuse, ADeadConnectionIsNotReplacedForWhatMayNotBeRepeated) {
  for (const std::string method : {"POST", "PATCH", "get"}) {
    keep_one_that_does({Step::request(), Step::close()});
    EXPECT_EQ(fetch(method, "x").error, UpstreamErrc::no_answer) << method;
  }
  EXPECT_EQ(server.connections(), 3U);
}

TEST_F(UpstreamReuse, ItIsReplacedOnce) {
  keep_one_that_does({Step::request(), Step::close()});
  server.play({Step::request(), Step::close()});
  EXPECT_EQ(fetch("GET").error, UpstreamErrc::no_answer);
  EXPECT_EQ(server.connections(), 2U);
}

TEST_F(UpstreamReuse, TheReplacementIsNew) {
  for (int i = 0; i < 2; ++i) {
    server.play(
        {Step::request(), Step::wait(), Step::send(ok("")), Step::request(), Step::close()});
  }
  // Two kept connections that both die.
  net::TaskGroup group(loop);
  Fetched first;
  Fetched second;
  group.start(fetch_into(request("GET"), first));
  group.start(fetch_into(request("GET"), second));
  while (server.requests().size() < 2) turn();
  server.go_on();
  wait(group.join());
  EXPECT_EQ(client->idle_connections(), 2U);

  server.play({Step::request(), Step::send(ok("new"))});
  EXPECT_EQ(fetch("GET").body, "new");
  EXPECT_EQ(server.connections(), 3U);
}

TEST_F(UpstreamReuse, ItIsNotReplacedWhenAnAnswerHadBegun) {
  keep_one_that_does(
      {Step::request(), Step::send("HTTP/1.1 103 Early Hints\r\n\r\n"), Step::close()});
  EXPECT_EQ(fetch("GET").error, UpstreamErrc::no_answer);
  EXPECT_EQ(server.connections(), 1U);
}

TEST_F(UpstreamReuse, ItIsNotReplacedWhenItIsSlow) {
  limits.head_timeout = std::chrono::milliseconds{30};
  keep_one_that_does({Step::request()});
  EXPECT_EQ(fetch("GET").error, UpstreamErrc::timed_out);
  EXPECT_EQ(server.connections(), 1U);
}

TEST_F(UpstreamReuse, AnUnfinishedAnswerEndsItsConnection) {
  server.play({Step::request(), Step::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")});
  auto answer = send(request("GET"));
  ASSERT_TRUE(answer.has_value());
  answer->reset();
  wait(server.quiet());
  EXPECT_EQ(server.ended_by_client(), 1U);
  EXPECT_EQ(client->idle_connections(), 0U);
}

TEST_F(UpstreamReuse, AKeptConnectionGrowsOld) {
  limits.idle_timeout = std::chrono::milliseconds{20};
  keep_one_that_does({});
  wait(server.quiet());
  EXPECT_EQ(server.ended_by_client(), 1U);
  EXPECT_EQ(client->idle_connections(), 0U);
}

TEST_F(UpstreamReuse, NoneIsKeptIfNoneMayBe) {
  limits.idle_per_origin = 0;
  server.play({Step::request(), Step::send(ok("x"))});
  EXPECT_EQ(fetch("GET").body, "x");
  wait(server.quiet());
  EXPECT_EQ(server.ended_by_client(), 1U);
}

// ---- The pool by itself ----

class UpstreamPoolTest : public testing::Test {
 public:
  // A connection in the pool; its other end is kept.
  void keep(const std::string& origin) {
    net::StreamPair pair = net::make_pair(loop);
    pool.keep(origin, std::move(pair.client));
    servers.push_back(std::move(pair.server));
  }
  // Which of the connections it is: the one whose other end sees it close.
  std::size_t number_of(std::optional<net::Stream> stream) {
    stream.reset();
    for (std::size_t i = 0; i < servers.size(); ++i) {
      if (servers[i].open() && servers[i].peer_ended()) return i;
    }
    return servers.size();
  }

  net::EventLoop loop;
  UpstreamPool pool{loop, 2, net::kLong};
  std::vector<net::Stream> servers;
};

TEST_F(UpstreamPoolTest, TheLastIsTakenFirst) {
  keep("a");
  keep("a");
  EXPECT_EQ(number_of(pool.take("a")), 1U);
  EXPECT_EQ(pool.size(), 1U);
}

TEST_F(UpstreamPoolTest, TheOldestGoesAtTheBound) {
  keep("a");
  keep("a");
  keep("a");
  keep("b");
  EXPECT_EQ(pool.size(), 3U);
  EXPECT_EQ(net::run(loop, net::read_error(servers[0], net::kLong)), net::NetErrc::closed);
  EXPECT_TRUE(pool.take("a").has_value());
  EXPECT_TRUE(pool.take("a").has_value());
  EXPECT_FALSE(pool.take("a").has_value());
  EXPECT_TRUE(pool.take("b").has_value());
  EXPECT_FALSE(pool.take("c").has_value());
  EXPECT_EQ(pool.size(), 0U);
}

TEST_F(UpstreamPoolTest, AnEndIsSeenBeforeTheLoopHasRun) {
  keep("a");
  keep("a");
  servers[1].close();
  EXPECT_EQ(number_of(pool.take("a")), 0U);
  keep("a");
  servers[2].abort();
  EXPECT_FALSE(pool.take("a").has_value());
  EXPECT_EQ(pool.size(), 0U);
}

// They would be taken for the answer to the next request, whoever made it.
TEST_F(UpstreamPoolTest, BytesAreSeenBeforeTheLoopHasRun) {
  const auto send = [](net::Stream& stream) -> net::Task<void> {
    co_await stream.write("HTTP/1.1 200 OK\r\n\r\n", "", net::kLong);
  };
  keep("a");
  keep("a");
  net::TaskGroup sending(loop);
  std::optional<net::Stream> taken;
  loop.post([&] {
    sending.start(send(servers[1]));  // at once
    taken = pool.take("a");
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(number_of(std::move(taken)), 0U);
  EXPECT_EQ(pool.size(), 0U);
  net::run(loop, sending.join());
}

TEST_F(UpstreamPoolTest, IsEmptiedAtOnce) {
  keep("a");
  keep("b");
  pool.clear();
  EXPECT_EQ(pool.size(), 0U);
  EXPECT_FALSE(pool.take("a").has_value());
  EXPECT_EQ(net::run(loop, net::read_error(servers[0], net::kLong)), net::NetErrc::closed);
}

}  // namespace
}  // namespace stint::http
