// Whole requests over real connections, with a store that answers late, or not at all.
#include "gateway/store_wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/entropy.h"
#include "base/simulated_clock.h"
#include "gateway/gateway.h"
#include "gateway/late_store_testing.h"
#include "gateway/store_metrics.h"
#include "http/server_testing.h"

namespace stint::gateway {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using How = LateStore::How;

constexpr TimePoint kNow{1'767'312'000s};

// What became of the requests, in order: "respond 200", "write ...", "finish", "end".
class Diary {
 public:
  void note(std::string entry) {
    const std::lock_guard lock(mutex_);
    entries_.push_back(std::move(entry));
    changed_.notify_all();
  }
  [[nodiscard]] std::vector<std::string> entries() {
    const std::lock_guard lock(mutex_);
    return entries_;
  }
  [[nodiscard]] bool has_now(const std::string& entry, std::ptrdiff_t times) {
    const std::lock_guard lock(mutex_);
    return std::ranges::count(entries_, entry) >= times;
  }
  // False if it is not noted so often in a long time.
  [[nodiscard]] bool has(const std::string& entry, std::ptrdiff_t times = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s,
                             [&] { return std::ranges::count(entries_, entry) >= times; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> entries_;
};

// Passes everything on, and notes what is sent.
class Noted final : public http::Exchange {
 public:
  Noted(http::Exchange& exchange, Diary& diary) : exchange_(exchange), diary_(diary) {}

  const http::RequestHead& head() const noexcept override { return exchange_.head(); }
  const std::string& peer_address() const noexcept override { return exchange_.peer_address(); }
  net::Task<net::NetResult<std::string>> read_body() override { return exchange_.read_body(); }
  net::Task<net::NetResult<void>> respond(http::ResponseHead head, std::string body) override {
    diary_.note("respond " + std::to_string(head.status));
    return exchange_.respond(std::move(head), std::move(body));
  }
  net::Task<net::NetResult<void>> start(http::ResponseHead head,
                                        std::optional<std::uint64_t> length) override {
    diary_.note("start " + std::to_string(head.status));
    return exchange_.start(std::move(head), length);
  }
  net::Task<net::NetResult<void>> write(std::string_view bytes) override {
    diary_.note("write " + std::string(bytes));
    return exchange_.write(bytes);
  }
  net::Task<net::NetResult<void>> finish() override {
    diary_.note("finish");
    return exchange_.finish();
  }
  void abort() noexcept override { exchange_.abort(); }
  bool started() const noexcept override { return exchange_.started(); }
  void watch_client(std::move_only_function<void()> gone) override {
    exchange_.watch_client(std::move(gone));
  }
  void unwatch_client() noexcept override { exchange_.unwatch_client(); }
  bool client_gone() const noexcept override { return exchange_.client_gone(); }

 private:
  http::Exchange& exchange_;
  Diary& diary_;
};

// `/plain` and embeddings in one piece, chat in three events that come as one piece.
net::Task<void> upstream(http::Exchange& exchange) {
  std::string body = "hello";
  http::ResponseHead head;
  if (exchange.head().path.starts_with("/v1")) {
    auto asked = co_await exchange.read_body();
    body = R"({"data":[],"usage":{"prompt_tokens":3,"total_tokens":3}})";
    head.fields.add("Content-Type", "application/json");
  }
  if (exchange.head().path == "/v1/chat/completions") {
    head.fields.set("Content-Type", "text/event-stream");
    const std::string events =
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n"
        "data: [DONE]\n\n";
    auto started = co_await exchange.start(std::move(head), std::nullopt);
    auto written = co_await exchange.write(events);
    co_await exchange.finish();
    co_return;
  }
  co_await exchange.respond(std::move(head), std::move(body));
}

std::string resources(std::uint16_t port) {
  const std::string at = "http://127.0.0.1:" + std::to_string(port);
  return R"(_format_version: "1"
provider_keys:
  - {display_name: up, provider: demo, adapter: openai, secret: s, api_base: ")" +
         at + R"(/v1"}
models:
  - {display_name: m, model_name: m, provider_key: up}
api_keys:
  - {display_name: k, key: sk-k, allowed_models: ["*"], rate_limit: {concurrency: 100, rpm: 1000, tpm: 1000}}
  - {display_name: none, key: sk-none, allowed_models: ["*"], rate_limit: {concurrency: 0}}
routes:
  - {name: plain, match: {path: /plain}, upstream: ")" +
         at + R"(", rate_limit: {concurrency: 1, rpm: 1000}}
rate_limit_policies:
  - name: early
    group_by: [client_ip]
    conditions: [{dimension: method, operator: ==, value: POST}]
    limits: {concurrency: 100, rpm: 1000}
  - name: narrow
    conditions: [{dimension: "header:x-narrow", operator: ==, value: "1"}]
    limits: {concurrency: 1, rpm: 1000}
)";
}

std::string get(const std::string& path) { return "GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n"; }

std::string post(const std::string& path, const std::string& key, const std::string& body) {
  return "POST " + path +
         " HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nx-api-key: " + key +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string embed(const std::string& key = "sk-k") {
  return post("/v1/embeddings", key, R"({"model":"m","input":"x"})");
}

// The parameter: whether the store answers on the loop's thread, or on another.
class StoreWaitTest : public testing::TestWithParam<bool> {
 protected:
  StoreWaitTest() {
    bootstrap_.ratelimit.redis.emplace().timeout = 10s;
    gateway_.emplace(bootstrap_, store_, clock_, entropy_, metrics_, log_);
    server_.emplace([this](http::Exchange& exchange) { return serve(exchange); });
    auto loaded = config::load_snapshot("r.yaml", resources(upstream_.port()), {}, 1);
    for (const config::Fault& fault : loaded.faults) ADD_FAILURE() << to_string(fault);
    server_->thread().call([&] {
      dispatcher_.emplace(server_->loop(), *gateway_, nullptr);
      dispatcher_->serve_by(gateway_->adopt(*loaded.value));
    });
  }
  ~StoreWaitTest() override {
    end_server();
    EXPECT_EQ(store_->pending(), 0U);
    EXPECT_EQ(store_->held(), 0U);
    EXPECT_EQ(gateway_->orphan_calls(), 0U);
    EXPECT_EQ(gateway_->early().stats().held + gateway_->late().stats().held, 0U);
    EXPECT_THAT(metrics_.text(), HasSubstr("stint_requests_in_flight 0\n"));
  }

  net::Task<void> serve(http::Exchange& exchange) {
    Noted noted(exchange, diary_);
    co_await dispatcher_->handle(noted);
    diary_.note("end");
  }

  // As the program ends: requests, then the loop and its thread.
  void end_server() {
    if (!server_) return;
    server_->stop();
    server_->thread().call([this] {
      dispatcher_->close_idle();
      dispatcher_.reset();
    });
    server_.reset();
  }

  void answer(std::size_t i = 0, How how = How::properly) {
    if (GetParam() && server_) {
      server_->thread().call([&] { store_->answer(i, how); });
    } else {
      store_->answer(i, how);
    }
  }
  // Everything that is ready to run on the loop has run.
  void turn() {
    for (int i = 0; i < 10; ++i) server_->thread().call([] {});
  }
  [[nodiscard]] net::RawClient client() { return net::RawClient(server_->port()); }

  base::SimulatedClock clock_{kNow};
  base::FixedEntropy entropy_;
  observe::Metrics metrics_;
  observe::Log log_{observe::LogOptions{.level = observe::LogLevel::off, .access_log = false}};
  config::Bootstrap bootstrap_;
  std::shared_ptr<LateStore> store_ = std::make_shared<LateStore>(clock_);
  Diary diary_;
  http::TestServer upstream_{upstream};
  std::optional<Gateway> gateway_;
  std::optional<http::TestServer> server_;
  std::optional<Dispatcher> dispatcher_;
};

INSTANTIATE_TEST_SUITE_P(Answers, StoreWaitTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "OnTheLoop" : "Elsewhere"; });

TEST_P(StoreWaitTest, AdmittedWhenTheStoreSaysSoAndAnsweredWhenItIsSettled) {
  auto caller = client();
  caller.send(get("/plain"));
  ASSERT_TRUE(store_->has_pending(1));
  turn();
  EXPECT_EQ(upstream_.requests, 0);
  answer();
  ASSERT_TRUE(store_->has_pending(1));
  EXPECT_TRUE(store_->settles(0));
  EXPECT_EQ(upstream_.requests, 1);
  turn();
  EXPECT_THAT(diary_.entries(), IsEmpty());
  answer();
  EXPECT_THAT(caller.read_until("hello"), StartsWith("HTTP/1.1 200"));
  ASSERT_TRUE(diary_.has("end"));
  EXPECT_THAT(diary_.entries(), ElementsAre("respond 200", "end"));
}

TEST_P(StoreWaitTest, RefusedWhenTheStoreSaysSo) {
  auto first = client();
  first.send(get("/plain"));
  ASSERT_TRUE(store_->has_pending(1));
  auto second = client();
  second.send(get("/plain"));
  ASSERT_TRUE(store_->has_pending(2));
  answer(1);
  ASSERT_TRUE(store_->has_pending(2));  // the settlement of the second
  EXPECT_TRUE(store_->settles(1));
  answer(0);
  EXPECT_THAT(first.read_until("}}}"), StartsWith("HTTP/1.1 429"));
  answer(0);
  EXPECT_THAT(second.read_until("hello"), StartsWith("HTTP/1.1 200"));
}

// Whoever reads a refusal by the second step and asks again is judged without the first.
TEST_P(StoreWaitTest, ARefusalGoesOutWhenTheFirstStepIsGivenBack) {
  auto caller = client();
  caller.send(embed("sk-none"));
  ASSERT_TRUE(store_->has_pending(1));
  answer();
  ASSERT_TRUE(store_->has_pending(1));
  EXPECT_FALSE(store_->settles(0));
  answer();
  ASSERT_TRUE(store_->has_pending(1));
  EXPECT_TRUE(store_->settles(0));
  turn();
  EXPECT_THAT(diary_.entries(), IsEmpty());
  answer();
  EXPECT_THAT(caller.read_until("}}}"), StartsWith("HTTP/1.1 429"));
}

TEST_P(StoreWaitTest, ARefusalOfTheFirstStepWaitsForWhatTheSecondWouldSay) {
  const auto narrow = [](const std::string& key) {
    std::string text = embed(key);
    return text.insert(text.find("x-api-key"), "x-narrow: 1\r\n");
  };
  auto first = client();
  first.send(narrow("sk-k"));
  ASSERT_TRUE(store_->has_pending(1));
  answer();
  ASSERT_TRUE(store_->has_pending(1));  // holds its slot of the first step, and asks the second
  auto second = client();
  second.send(narrow("sk-none"));
  ASSERT_TRUE(store_->has_pending(2));
  answer(1);
  ASSERT_TRUE(store_->has_pending(2));
  turn();
  EXPECT_THAT(diary_.entries(), IsEmpty());
  answer(1);
  const std::string text = second.read_until("}}}");
  EXPECT_THAT(text, StartsWith("HTTP/1.1 429"));
  EXPECT_THAT(text, HasSubstr(R"("code":"never_fits")"));
  ASSERT_TRUE(diary_.has("end"));

  auto third = client();
  third.send(narrow("sk-none"));
  ASSERT_TRUE(store_->has_pending(2));
  answer(1);
  ASSERT_TRUE(store_->has_pending(2));
  third.close();
  ASSERT_TRUE(diary_.has("end", 2));
  answer(1);  // nobody wants it any more

  answer(0);
  ASSERT_TRUE(store_->has_pending(2));  // both steps of the first are settled
  answer();
  ASSERT_TRUE(store_->has_pending(1));
  answer();
  EXPECT_THAT(first.read_until("}}"), StartsWith("HTTP/1.1 200"));
}

TEST_P(StoreWaitTest, UndecidedIs503WhereverItHappens) {
  auto caller = client();
  caller.send(get("/plain"));
  ASSERT_TRUE(store_->has_pending(1));
  answer(0, How::not_known);
  std::string text = caller.read_until("}}");
  EXPECT_THAT(text, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(text, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(text, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_THAT(text, HasSubstr(R"("code":"limits_unavailable")"));

  caller.send(embed());
  ASSERT_TRUE(store_->has_pending(1));
  answer();
  ASSERT_TRUE(store_->has_pending(1));
  answer(0, How::not_known);
  ASSERT_TRUE(store_->has_pending(1));  // the first step is given back
  answer();
  text = caller.read_until("}}");
  EXPECT_THAT(text, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(text, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_THAT(text, HasSubstr(R"({"error":{"message":"The rate limits)"));
  EXPECT_THAT(text, HasSubstr(R"("type":"server_error","param":null,"code":"limits_unavailable")"));
  EXPECT_EQ(upstream_.requests, 0);
  ASSERT_TRUE(diary_.has("end", 2));
  EXPECT_THAT(metrics_.text(),
              HasSubstr(R"(stint_decisions_total{policy="all",outcome="undecided"} 2)"));
}

TEST_P(StoreWaitTest, AStoreThatNeverAnswersAnAdmissionIsNotWaitedForForEver) {
  gateway_->store_calls()->admit_timeout = 10ms;
  auto caller = client();
  caller.send(get("/plain"));
  EXPECT_THAT(caller.read_until("}}"), StartsWith("HTTP/1.1 503"));
  ASSERT_TRUE(diary_.has("end"));
  ASSERT_TRUE(store_->has_pending(1));
  answer(0, How::too_late);
  ASSERT_TRUE(store_->has_pending(1));
  EXPECT_TRUE(store_->settles(0));
  answer();
  EXPECT_EQ(store_->given_back(), 1U);
}

// As above, but that its answer still waits for something.
TEST_P(StoreWaitTest, AnAdmissionThatComesAfterItsTimeOutIsGivenBack) {
  gateway_->store_calls()->admit_timeout = 10ms;
  auto caller = client();
  caller.send(embed());
  ASSERT_TRUE(store_->has_pending(1));
  answer();
  ASSERT_TRUE(store_->has_pending(2));  // the second step, and then the give-back of the first
  EXPECT_TRUE(store_->settles(1));
  answer(0, How::too_late);
  ASSERT_TRUE(store_->has_pending(2));
  answer(0);
  answer(0);
  EXPECT_THAT(caller.read_until("}}"), StartsWith("HTTP/1.1 503"));
  EXPECT_EQ(store_->given_back(), 2U);
}

TEST_P(StoreWaitTest, AnAdmissionWhoseClientLeftIsNotSent) {
  auto caller = client();
  caller.send(get("/plain"));
  ASSERT_TRUE(store_->has_pending(1));
  caller.close();
  ASSERT_TRUE(diary_.has("end"));
  EXPECT_EQ(gateway_->orphan_calls(), 1U);
  answer();
  EXPECT_EQ(store_->dropped(), 1U);
  EXPECT_THAT(diary_.entries(), ElementsAre("end"));
}

TEST_P(StoreWaitTest, AnAdmissionThatComesWhenItsClientHasLeftIsGivenBack) {
  auto caller = client();
  caller.send(embed());
  ASSERT_TRUE(store_->has_pending(1));
  answer();
  ASSERT_TRUE(store_->has_pending(1));
  caller.close();
  ASSERT_TRUE(diary_.has("end"));
  ASSERT_TRUE(store_->has_pending(2));  // the second step, and the release of the first
  answer(0, How::too_late);
  ASSERT_TRUE(store_->has_pending(2));
  EXPECT_TRUE(store_->settles(0));
  EXPECT_TRUE(store_->settles(1));
  answer();
  answer();
  EXPECT_EQ(store_->dropped(), 0U);
  EXPECT_EQ(store_->given_back(), 1U);
}

TEST_P(StoreWaitTest, TheServerStopsWhileAnAdmissionIsPending) {
  auto caller = client();
  caller.send(embed());
  ASSERT_TRUE(store_->has_pending(1));
  answer();
  ASSERT_TRUE(store_->has_pending(1));
  end_server();  // the loop is gone
  ASSERT_TRUE(store_->has_pending(2));
  EXPECT_EQ(gateway_->orphan_calls(), 2U);
  answer(1);
  answer(0, How::too_late);
  ASSERT_TRUE(store_->has_pending(1));
  EXPECT_EQ(gateway_->orphan_calls(), 1U);
  answer();
  EXPECT_EQ(store_->given_back(), 1U);
}

TEST_P(StoreWaitTest, TheServerStopsWhileASettlementIsPending) {
  gateway_->store_calls()->settle_timeout = 10ms;
  auto caller = client();
  caller.send(get("/plain"));
  ASSERT_TRUE(store_->has_pending(1));
  answer();
  ASSERT_TRUE(store_->has_pending(1));
  end_server();
  EXPECT_EQ(gateway_->orphan_calls(), 1U);
  answer();
}

TEST_P(StoreWaitTest, OnlyTheEndOfAStreamWaitsForItsSettlement) {
  auto caller = client();
  caller.send(post("/v1/chat/completions", "sk-k",
                   R"({"model":"m","stream":true,"stream_options":{"include_usage":true},)"
                   R"("messages":[{"role":"user","content":"x"}]})"));
  ASSERT_TRUE(store_->has_pending(1));
  answer();
  ASSERT_TRUE(store_->has_pending(1));
  answer();
  EXPECT_THAT(caller.read_until("\"completion_tokens\":1}}"), StartsWith("HTTP/1.1 200"));
  ASSERT_TRUE(store_->has_pending(2));  // of both steps
  turn();
  const auto before = diary_.entries();
  EXPECT_EQ(std::ranges::count(before, "write data: [DONE]\n\n"), 0);
  answer(1);
  turn();
  EXPECT_EQ(diary_.entries(), before);  // one is not all
  answer(0);
  EXPECT_THAT(caller.read_until("0\r\n\r\n"), HasSubstr("data: [DONE]\n\n"));
  EXPECT_TRUE(diary_.has("write data: [DONE]\n\n"));
}

TEST_P(StoreWaitTest, AnAnswerWaitsNoLongerForItsSettlementThanTheTimeOut) {
  gateway_->store_calls()->settle_timeout = 30ms;
  auto caller = client();
  caller.send(get("/plain"));
  ASSERT_TRUE(store_->has_pending(1));
  const auto begin = system_clock().steady_now();
  answer();
  EXPECT_THAT(caller.read_until("hello"), StartsWith("HTTP/1.1 200"));
  EXPECT_GE(system_clock().steady_now() - begin, 30ms);
  ASSERT_TRUE(diary_.has("end"));
  EXPECT_EQ(store_->pending(), 1U);
  answer(0, How::not_known);
}

// A 401, a 404, the head of an answer without a body: each is the last byte of an answer.
TEST_P(StoreWaitTest, EveryAnswerWaitsForItsSettlement) {
  for (const std::string& request : {embed("sk-unknown"), post("/nowhere", "sk-k", ""),
                                     std::string("HEAD /plain HTTP/1.1\r\nHost: h\r\n\r\n")}) {
    auto caller = client();
    const auto before = diary_.entries();
    caller.send(request);
    ASSERT_TRUE(store_->has_pending(1));
    answer();
    ASSERT_TRUE(store_->has_pending(1));
    EXPECT_TRUE(store_->settles(0));
    turn();
    EXPECT_EQ(diary_.entries(), before);
    answer();
    EXPECT_THAT(caller.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 "));
    ASSERT_TRUE(diary_.has("end", std::ranges::count(before, "end") + 1));
  }
}

TEST_P(StoreWaitTest, ManyRequestsWhoseAnswersComeInAnyOrder) {
  constexpr unsigned kSeed = 20'261;
  SCOPED_TRACE(kSeed);
  constexpr std::ptrdiff_t kClients = 30;
  std::vector<net::RawClient> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(client());
    clients.back().send(i % 3 == 0 ? embed("sk-none") : embed());
    if (i % 5 == 4) clients.back().close();
  }
  std::minstd_rand random(kSeed);
  const auto work = [&](unsigned seed) {
    std::minstd_rand order(seed);
    while (!diary_.has_now("end", kClients) || store_->pending() > 0) {
      const std::size_t pending = store_->pending();
      if (pending == 0) {
        std::this_thread::yield();
        continue;
      }
      constexpr How kHow[] = {How::properly, How::too_late, How::not_known};
      store_->answer(order() % pending, kHow[order() % 3]);
    }
  };
  const unsigned seeds[] = {static_cast<unsigned>(random()), static_cast<unsigned>(random())};
  std::jthread helper(work, seeds[0]);
  work(seeds[1]);
  helper.join();
}

TEST_P(StoreWaitTest, ReadyzShowsTheStoreAndStays200) {
  auto caller = client();
  caller.send(get("/readyz"));
  EXPECT_THAT(caller.read_until("}}"),
              HasSubstr(R"("store":{"backend":"memory","degraded":false}})"));
  gateway_->store_health = [] {
    StoreHealth health;
    health.backend = "redis";
    health.shards = {{"a", false, "unused"}, {"b", true, "refuses \"all\""}};
    return health;
  };
  caller.send(get("/readyz"));
  const std::string text = caller.read_until("}]}}");
  EXPECT_THAT(text, HasSubstr("HTTP/1.1 200"));
  EXPECT_THAT(text, HasSubstr(R"("store":{"backend":"redis","degraded":true,"shards":[)"
                              R"({"name":"a","degraded":false},)"
                              R"({"name":"b","degraded":true,"why":"refuses \"all\""}]}})"));
}

TEST(ShardMetrics, CountByShard) {
  observe::Metrics metrics;
  const ShardMetrics shard(metrics, "a");
  shard.decided(Outcome::admitted);
  shard.decided(Outcome::undecided);
  shard.answered(3ms);
  shard.fell_back();
  shard.lost_track();
  shard.set_degraded(true);
  const std::string text = metrics.text();
  for (const char* line :
       {R"(stint_shard_requests_total{shard="a",decision="admitted"} 1)",
        R"(stint_shard_requests_total{shard="a",decision="refused"} 0)",
        R"(stint_shard_requests_total{shard="a",decision="undecided"} 1)",
        R"(stint_fallback_decisions_total{shard="a"} 1)",
        R"(stint_unknown_charges_total{shard="a"} 1)", R"(stint_store_degraded{shard="a"} 1)",
        R"(stint_store_latency_seconds_count{shard="a"} 1)"}) {
    EXPECT_THAT(text, HasSubstr(std::string(line) + "\n"));
  }
}

}  // namespace
}  // namespace stint::gateway
