// What the dispatcher does between a request and its answer, seen by the exchange that carries
// both. Whole requests over real connections are in tests/e2e.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/entropy.h"
#include "base/simulated_clock.h"
#include "gateway/gateway.h"
#include "net/event_loop.h"
#include "store/memory/forward_clock.h"
#include "store/memory/memory_store.h"

namespace stint::gateway {
namespace {

constexpr TimePoint kNow{std::chrono::seconds{1'767'312'000}};

// One slot for each client, before anybody is authenticated.
constexpr const char* kResources = R"(_format_version: "1"
provider_keys:
  - {display_name: up, provider: demo, adapter: openai, secret: s, api_base: "http://127.0.0.1:9/v1"}
models:
  - {display_name: m, model_name: m, provider_key: up}
api_keys:
  - {display_name: k, key: sk-known, allowed_models: [other]}
rate_limit_policies:
  - name: slots
    group_by: [client_ip]
    limits: {concurrency: 1}
)";

// Answers from a script; tells when the answer goes out.
class ScriptedExchange final : public http::Exchange {
 public:
  http::RequestHead request;
  std::string body;
  std::function<void(int status)> on_answer;

  const http::RequestHead& head() const noexcept override { return request; }
  const std::string& peer_address() const noexcept override { return peer_; }
  net::Task<net::NetResult<std::string>> read_body() override { co_return body; }
  net::Task<net::NetResult<void>> respond(http::ResponseHead head, std::string) override {
    started_ = true;
    on_answer(head.status);
    co_return net::NetResult<void>{};
  }
  net::Task<net::NetResult<void>> start(http::ResponseHead, std::optional<std::uint64_t>) override {
    co_return net::NetResult<void>{};
  }
  net::Task<net::NetResult<void>> write(std::string_view) override {
    co_return net::NetResult<void>{};
  }
  net::Task<net::NetResult<void>> finish() override { co_return net::NetResult<void>{}; }
  void abort() noexcept override {}
  bool started() const noexcept override { return started_; }
  void watch_client(std::move_only_function<void()>) override {}
  void unwatch_client() noexcept override {}
  bool client_gone() const noexcept override { return false; }

 private:
  std::string peer_ = "203.0.113.7";
  bool started_ = false;
};

class DispatcherTest : public testing::Test {
 protected:
  DispatcherTest() {
    auto loaded = config::load_snapshot("resources.yaml", kResources, {}, 1);
    for (const config::Fault& fault : loaded.faults) ADD_FAILURE() << to_string(fault);
    dispatcher_.serve_by(gateway_.adopt(*loaded.value));
  }

  struct Answer {
    int status = 0;
    std::size_t slots_held = 0;  // when it went out
  };
  Answer ask(std::string path, std::string key, std::string body) {
    ScriptedExchange exchange;
    exchange.request.method = "POST";
    exchange.request.path = std::move(path);
    if (!key.empty()) exchange.request.fields.add("x-api-key", std::move(key));
    exchange.body = std::move(body);
    Answer answer;
    exchange.on_answer = [&](int status) {
      answer = {status, gateway_.early().stats().held + gateway_.late().stats().held};
    };
    tasks_.start(dispatcher_.handle(exchange));
    loop_.run();
    return answer;
  }

  net::EventLoop loop_;
  net::TaskGroup tasks_{loop_};
  base::SimulatedClock clock_{kNow};
  base::FixedEntropy entropy_;
  observe::Metrics metrics_;
  observe::Log log_{observe::LogOptions{.level = observe::LogLevel::off, .access_log = false}};
  config::Bootstrap bootstrap_;
  Gateway gateway_{
      bootstrap_,
      std::make_shared<store::MemoryStore>(store::MemoryStoreOptions{},
                                           std::make_unique<store::ForwardClock>(clock_, nullptr)),
      clock_,
      entropy_,
      metrics_,
      log_};
  Dispatcher dispatcher_{loop_, gateway_, nullptr};
};

// Whoever reads such an answer and asks again at once must not find its own slot taken.
TEST_F(DispatcherTest, EveryAnswerOfOursGoesOutAfterItsSlotIsFree) {
  const std::string chat = "/v1/chat/completions";
  const struct {
    int status;
    std::string path, key, body;
  } cases[] = {{401, chat, "", "{}"},
               {401, chat, "sk-unknown", "{}"},
               {400, chat, "sk-known", "no json"},
               {404, chat, "sk-known", R"({"model":"none"})"},
               {403, chat, "sk-known", R"({"model":"m"})"},
               {404, "/nowhere", "", ""}};
  for (const auto& [status, path, key, body] : cases) {
    const Answer answer = ask(path, key, body);
    EXPECT_EQ(answer.status, status) << path << " " << body;
    EXPECT_EQ(answer.slots_held, 0U) << path << " " << body;
  }
}

}  // namespace
}  // namespace stint::gateway
