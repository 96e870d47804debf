// Against real redis-server processes: calling, and what the server's own life does.
#include "redis/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "redis/server_testing.h"
#include "redis/single.h"
#include "tests/integration/redis_testing.h"

namespace stint::redis {
namespace {

using Kind = ServerEvent::Kind;
using redis_testing::RedisServer;
using std::chrono::milliseconds;

std::int64_t counted(RedisServer& redis, std::string_view key = "load") {
  return redis.command({"GET", key}).number().value_or(0);
}

class RealServer : public ::testing::Test {
 protected:
  const Script count{"count", "return redis.call('INCR', KEYS[1])"};
  const Script write_probe{"probe", "redis.call('SET', KEYS[1], ARGV[1]) return 'well'"};
};

TEST_F(RealServer, LogsInAndCalls) {
  RedisServer redis;
  ServerOptions options = options_for(redis.port());
  options.address.database = 3;
  options.client_name = "stint test\n1";
  options.scripts = {&count};
  TestClient client(options);
  EXPECT_EQ(client.server->name(), "127.0.0.1:" + std::to_string(redis.port()) + "/3");
  EXPECT_FALSE(client.server->available());
  EXPECT_EQ(told(client.call(count, "a")), "not_run unavailable");

  client.server->start();
  client.wait_until_available();
  EXPECT_EQ(client.events.size(), 1U) << client.told();
  EXPECT_EQ(client.events[0].kind, Kind::connected);
  EXPECT_EQ(redis.command({"SCRIPT", "EXISTS", count.sha1()})[0].integer(), 1);
  EXPECT_EQ(told(client.call(count, "a")), "1");
  EXPECT_EQ(told(client.call(count, "a")), "2");
  EXPECT_EQ(told(client.command({"GET", "a"})), "2");
  EXPECT_EQ(counted(redis, "a"), 0) << "in another database";
  const std::string list(redis.command({"CLIENT", "LIST"}).text());
  EXPECT_NE(list.find(" name=stint-test-1 "), std::string::npos) << list;
  EXPECT_NE(list.find(" db=3 "), std::string::npos) << list;

  ASSERT_TRUE(client.store_time);
  const auto skew = *client.store_time - std::chrono::system_clock::now();
  EXPECT_LT(std::chrono::abs(skew), std::chrono::seconds(10)) << "one machine, one clock";
}

TEST_F(RealServer, ErrorsAreAnswersOfTheCall) {
  RedisServer redis;
  TestClient client(options_for(redis.port()));
  client.server->start();
  client.wait_until_available();
  EXPECT_EQ(redis.command({"LPUSH", "list", "x"}).integer(), 1);
  const CallResult wrong = client.call(count, "list");
  EXPECT_EQ(told(wrong), "unknown configuration");
  EXPECT_EQ(wrong.error().code, "WRONGTYPE");
  EXPECT_EQ(client.count(Kind::configuration), 1);
  EXPECT_EQ(told(client.call(Script("bad", "return nonsense + 1"), "a")), "unknown configuration");
  EXPECT_EQ(told(client.call(Script("worse", "this is no Lua"), "a")), "not_run configuration");
  EXPECT_EQ(client.count(Kind::breaker_opened), 1) << "three in a row";
  EXPECT_FALSE(client.server->available());
  client.wait_until_available();
  EXPECT_EQ(client.count(Kind::breaker_closed), 1);
}

TEST_F(RealServer, TheProbeComesFirstAndAgain) {
  RedisServer redis;
  ServerOptions options = options_for(redis.port());
  options.probe.script = &write_probe;
  int made = 0;
  options.probe.make = [&made] {
    Probe::Call call;
    call.keys.emplace_back("probe");
    call.args.push_back(std::to_string(++made));
    return call;
  };
  std::string answered;
  options.probe.on_reply = [&answered](const CallResult& result) { answered = told(result); };
  options.probe_every = milliseconds(1);
  TestClient client(options);
  client.server->start();
  client.wait_until_available();
  EXPECT_EQ(client.probes, 1);
  EXPECT_EQ(answered, "well");
  EXPECT_EQ(counted(redis, "probe"), 1);
  client.wait_for("more probes", [&] { return client.probes >= 5; });
  EXPECT_GE(counted(redis, "probe"), 5);
}

TEST_F(RealServer, AServerThatCannotWriteIsNotAvailable) {
  RedisServer redis;
  ServerOptions options = options_for(redis.port());
  options.probe.script = &write_probe;
  options.probe.make = [] {
    Probe::Call call;
    call.keys.emplace_back("probe");
    call.args.emplace_back("x");
    return call;
  };
  TestClient client(options);
  client.server->start();
  client.wait_until_available();

  // As of a failover: it is a replica now, of a master that is not there.
  EXPECT_EQ(redis.command({"REPLICAOF", "127.0.0.1", "1"}).text(), "OK");
  std::vector<std::string> answers;
  for (int i = 0; i < 3; ++i) {
    client.call(count, "a", std::chrono::seconds{10}, [&](CallResult refused) {
      answers.push_back(told(refused) + " " + refused.error().code);
      client.check();
    });
  }
  client.wait_for("answers", [&] { return answers.size() == 3; });
  // Those that were sent together are all answered before the connection is ended.
  EXPECT_THAT(answers, ::testing::Each("not_run rejected READONLY"));
  client.wait_for_event(Kind::lost);
  EXPECT_NE(client.text_of(Kind::lost).find("READONLY"), std::string::npos);
  EXPECT_EQ(told(client.call(count, "a")), "not_run unavailable");
  // It is looked up and connected with again and again: another one may have its name by then.
  const int before = client.probes;
  client.wait_for("probes that fail", [&] { return client.probes >= before + 2; });
  EXPECT_FALSE(client.server->available());
  EXPECT_GE(client.count(Kind::connected), 2);

  EXPECT_EQ(redis.command({"REPLICAOF", "NO", "ONE"}).text(), "OK");
  client.wait_until_available();
  EXPECT_EQ(told(client.call(count, "a")), "1");
}

TEST_F(RealServer, FlushedScriptsAreTaughtAgainUnderLoad) {
  RedisServer redis;
  ServerOptions options = options_for(redis.port());
  options.scripts = {&count};
  TestClient client(options);
  client.server->start();
  Load load(client, count, 5000, std::chrono::seconds(10));
  load.on_answer = [&](int answers) {
    if (answers % 250 == 0) EXPECT_EQ(redis.command({"SCRIPT", "FLUSH"}).text(), "OK");
  };
  load.run(20);
  EXPECT_EQ(load.good, 5000);
  EXPECT_EQ(counted(redis), 5000) << "each ran once";
  EXPECT_EQ(client.count(Kind::lost), 0);
}

TEST_F(RealServer, KilledConnectionsAreOpenedAgainUnderLoad) {
  RedisServer redis;
  ServerOptions options = options_for(redis.port());
  options.scripts = {&count};
  TestClient client(options);
  client.server->start();
  Load load(client, count, 3000, std::chrono::seconds(10));
  load.on_answer = [&](int answers) {
    if (answers % 1000 == 500) redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  };
  load.run(20);
  client.wait_until_available();
  EXPECT_EQ(client.count(Kind::lost), 3) << client.told();
  EXPECT_EQ(load.good + load.unknown + load.not_run, 3000);
  EXPECT_GE(load.good, 2800);
  EXPECT_GE(counted(redis), load.good);
  EXPECT_LE(counted(redis), load.good + load.unknown) << "what did certainly not run has run";
  EXPECT_LE(load.unknown, 20 * client.count(Kind::lost));
}

TEST_F(RealServer, ACrashAndARestart) {
  RedisServer redis;
  ServerOptions options = options_for(redis.port());
  options.scripts = {&count};
  TestClient client(options);
  client.server->start();
  client.wait_until_available();
  EXPECT_EQ(told(client.call(count, "a")), "1");
  redis.kill();
  client.wait_for_event(Kind::lost);
  EXPECT_FALSE(client.server->available());
  EXPECT_EQ(told(client.call(count, "a")), "not_run unavailable");
  client.wait_for_event(Kind::breaker_opened);
  EXPECT_GE(client.count(Kind::connect_failed), 1);

  redis.restart();
  client.wait_until_available();
  EXPECT_EQ(redis.command({"SCRIPT", "EXISTS", count.sha1()})[0].integer(), 1);
  EXPECT_EQ(told(client.call(count, "a")), "1") << "it came back empty";
  EXPECT_EQ(client.count(Kind::breaker_closed), 1);
}

TEST_F(RealServer, AnOrderlyEndIsALossToo) {
  RedisServer redis;
  TestClient client(options_for(redis.port()));
  client.server->start();
  client.wait_until_available();
  redis.stop();
  client.wait_for_event(Kind::lost);
}

TEST_F(RealServer, AFrozenServer) {
  RedisServer redis;
  ServerOptions options = options_for(redis.port());
  options.scripts = {&count};
  options.connect_timeout = milliseconds(200);
  TestClient client(options);
  client.server->start();
  client.wait_until_available();
  redis.pause();
  client.time_out(count, 3);
  EXPECT_EQ(client.count(Kind::breaker_opened), 1);
  EXPECT_EQ(told(client.call(count, "a")), "not_run unavailable");
  client.wait_for_event(Kind::lost);
  EXPECT_EQ(client.text_of(Kind::lost), "nothing came for too long");
  // The kernel accepts in its place, but nobody answers.
  client.wait_for_event(Kind::connect_failed);
  EXPECT_EQ(client.text_of(Kind::connect_failed), "the login took too long");

  redis.resume();
  client.wait_until_available();
  EXPECT_EQ(client.count(Kind::breaker_closed), 1);
  EXPECT_EQ(told(client.call(count, "a")), "4") << "it ran what it was sent before";
}

TEST_F(RealServer, StopAnswersWhatIsPending) {
  RedisServer redis;
  TestClient client(options_for(redis.port()));
  client.server->start();
  client.wait_until_available();
  redis.pause();
  std::optional<CallResult> a, b;
  client.call(count, "a", std::chrono::hours(1), client.into(a));
  net::run(client.loop, client.server->stop());
  ASSERT_TRUE(a);
  EXPECT_EQ(a->error().reason, Reason::stopped);
  client.call(count, "b", std::chrono::hours(1), client.into(b));
  ASSERT_TRUE(b);
  EXPECT_EQ(told(*b), "not_run stopped");
  EXPECT_EQ(client.count(Kind::lost), 0) << "not a failure";
}

TEST_F(RealServer, StopEndsAConnectThatIsUnderWay) {
  RedisServer redis;
  redis.pause();
  ServerOptions options = options_for(redis.port());
  options.connect_timeout = std::chrono::hours(1);
  TestClient client(options);
  client.server->start();
  net::run_what_is_ready(client.loop);
  net::run(client.loop, client.server->stop());
  EXPECT_TRUE(client.events.empty()) << client.told();
}

// What is called within one answer goes out in one write.
TEST_F(RealServer, CallsMadeTogetherAreWrittenTogether) {
  RedisServer redis;
  TestClient client(options_for(redis.port()));
  client.server->start();
  client.wait_until_available();
  const auto reads = [&] {
    const std::string info(redis.command({"INFO", "stats"}).text());
    return std::stoi(info.substr(info.find("total_reads_processed:") + 22));
  };
  const int before = reads();
  int answers = 0;
  const std::string_view ping = "PING";
  client.server->command({&ping, 1}, client.loop.now() + std::chrono::seconds(10), [&](CallResult) {
    for (int i = 0; i < 100; ++i) {
      client.call(count, "a", std::chrono::seconds(10), [&](CallResult result) {
        EXPECT_TRUE(result);
        ++answers;
        client.check();
      });
    }
  });
  client.wait_for("all answers", [&] { return answers == 100; });
  EXPECT_LE(reads() - before, 10);
}

TEST(Single, HasOneTargetForEveryKey) {
  RedisServer redis;
  net::EventLoop loop;
  bool probed = false;
  ServerOptions options = options_for(redis.port());
  options.name = "main";
  options.probe.on_reply = [&](const CallResult& result) {
    EXPECT_TRUE(result);
    probed = true;
    loop.stop();
  };
  Single single(loop, options);
  EXPECT_EQ(single.route("a"), single.route("b"));
  EXPECT_EQ(single.route("a").target->name(), "main");
  ASSERT_EQ(single.targets().size(), 1U);
  EXPECT_EQ(single.targets()[0], single.route("a").target);
  single.start();
  loop.run();
  EXPECT_TRUE(probed);
  EXPECT_TRUE(single.targets()[0]->available());
  net::run(loop, single.stop());
  EXPECT_FALSE(single.targets()[0]->available());
}

}  // namespace
}  // namespace stint::redis
