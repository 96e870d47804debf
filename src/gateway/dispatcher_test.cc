// What the dispatcher does between a request and its answer, seen by the exchange that carries
// both. Whole requests over real connections are in tests/e2e.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/entropy.h"
#include "base/simulated_clock.h"
#include "gateway/gateway.h"
#include "gateway/relay.h"
#include "http/exchange_testing.h"
#include "http/request_parser.h"
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

// Tells when the answer goes out.
class ScriptedExchange final : public http::BufferedExchange {
 public:
  ScriptedExchange() : BufferedExchange("203.0.113.7") {}

  std::optional<http::Refusal> refusal;  // of the body
  std::function<void(int status)> on_answer;

  net::Task<net::NetResult<std::string>> read_body() override {
    if (refusal) co_return net::failure(net::NetErrc::failed, "refused");
    co_return co_await BufferedExchange::read_body();
  }
  const http::Refusal* body_refusal() const noexcept override {
    return refusal ? &*refusal : nullptr;
  }
  net::Task<net::NetResult<void>> respond(http::ResponseHead head, std::string text) override {
    on_answer(head.status);
    return BufferedExchange::respond(std::move(head), std::move(text));
  }
};

class DispatcherTest : public testing::Test {
 protected:
  DispatcherTest() { serve(kResources); }
  void serve(const char* resources) {
    auto loaded = config::load_snapshot("resources.yaml", resources, {}, 1);
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

  // As above, for what else is in the answer.
  void ask(ScriptedExchange& exchange) {
    exchange.on_answer = [](int) {};
    tasks_.start(dispatcher_.handle(exchange));
    loop_.run();
  }
  int status_of(std::string method, std::string path, std::string key) {
    ScriptedExchange exchange;
    exchange.request.method = std::move(method);
    exchange.request.path = std::move(path);
    if (!key.empty()) exchange.request.fields.add("x-api-key", std::move(key));
    ask(exchange);
    return exchange.answer->status;
  }
  [[nodiscard]] std::string metric(const std::string& series) const {
    const std::string text = "\n" + metrics_.text();
    const std::size_t at = text.find("\n" + series + " ");
    if (at == std::string::npos) return "none";
    const std::size_t begin = at + series.size() + 2;
    return text.substr(begin, text.find('\n', begin) - begin);
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

// Three requests a minute for each client, before anybody is authenticated; one for the key.
constexpr const char* kTwoSteps = R"(_format_version: "1"
provider_keys:
  - {display_name: up, provider: demo, adapter: openai, secret: s, api_base: "http://127.0.0.1:9/v1"}
models:
  - {display_name: m, model_name: m, provider_key: up}
api_keys:
  - {id: key, key: sk-known, allowed_models: ["*"], rate_limit: {rpd: 1, rph: 1}}
  - {id: free, key: sk-free, allowed_models: ["*"]}
routes:
  - {id: r, name: r, match: {path: /r, methods: [GET]}, upstream: "http://127.0.0.1:9", auth: api_key}
  - {id: any, name: any, match: {host: any.example}, upstream: "http://127.0.0.1:9"}
rate_limit_policies:
  - {id: ip, name: ip, group_by: [client_ip], limits: {rpm: 3}}
  - {id: wide, name: wide, limits: {rpm: 1000}}
)";

class TwoStepsTest : public DispatcherTest {
 protected:
  TwoStepsTest() { serve(kTwoSteps); }
  [[nodiscard]] std::string decisions(const std::string& policy, const std::string& outcome) const {
    return metric("stint_decisions_total{policy=\"" + policy + "\",outcome=\"" + outcome + "\"}");
  }
  static constexpr const char* kChat = "/v1/chat/completions";
};

TEST_F(TwoStepsTest, GuessingKeysIsLimitedOnTheListOfModelsToo) {
  EXPECT_EQ(status_of("GET", "/v1/models", "sk-free"), 200);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status_of("GET", "/v1/models", "sk-guess"), 401);
  EXPECT_EQ(status_of("GET", "/v1/models", "sk-guess"), 429);
  EXPECT_EQ(status_of("GET", "/v1/models", ""), 429);
  EXPECT_EQ(status_of("GET", "/v1/models", "sk-free"), 200);
}

TEST_F(TwoStepsTest, WrongMethodsAreLimited) {
  EXPECT_EQ(status_of("GET", kChat, ""), 405);
  EXPECT_EQ(status_of("PUT", "/v1/embeddings", ""), 405);
  EXPECT_EQ(status_of("POST", "/v1/models", "sk-free"), 405);
  EXPECT_EQ(status_of("GET", kChat, ""), 429);
  EXPECT_EQ(status_of("POST", "/v1/models", "sk-free"), 429);
}

TEST_F(TwoStepsTest, CredentialsOfAnotherKindAreNotForUs) {
  ScriptedExchange exchange;
  exchange.request.method = "GET";
  exchange.request.path = "/v1/models";
  exchange.request.fields.add("Authorization", "Basic dTpw");
  ask(exchange);
  EXPECT_EQ(exchange.answer->status, 401);
  exchange.request.fields.add("x-api-key", "sk-free");
  ask(exchange);
  EXPECT_EQ(exchange.answer->status, 200);
}

// Whoever waits as told is admitted: by all limits, not only by those that are asked first.
TEST_F(TwoStepsTest, TheWaitIsTheLongestOfBothSteps) {
  constexpr const char* kBody = R"({"model":"m","messages":[]})";
  ASSERT_EQ(ask(kChat, "sk-known", kBody).status, 502);  // admitted; nobody listens there
  for (int i = 0; i < 2; ++i) ASSERT_EQ(status_of("GET", "/v1/models", "sk-guess"), 401);
  const auto waits = [&](const std::string& key, std::string body,
                         const std::string& path = kChat) {
    ScriptedExchange exchange;
    exchange.request.method = path == kChat ? "POST" : "GET";
    exchange.request.path = path;
    exchange.request.fields.add("x-api-key", key);
    exchange.body = std::move(body);
    ask(exchange);
    EXPECT_EQ(exchange.answer->status, 429);
    return std::string(exchange.answer->fields.get("retry-after").value_or("none"));
  };
  EXPECT_EQ(waits("sk-free", kBody), "60");
  EXPECT_EQ(waits("sk-known", kBody), "86400");
  EXPECT_EQ(waits("sk-known", "", "/r"), "86400");
  // Where the others cannot be asked, those that refused speak for themselves.
  EXPECT_EQ(waits("sk-guess", kBody), "60");
  EXPECT_EQ(waits("sk-known", "no json"), "60");
  EXPECT_EQ(waits("sk-known", R"({"model":"none"})"), "60");
  EXPECT_EQ(waits("sk-guess", "", "/r"), "60");
  // Nothing was charged by looking.
  EXPECT_EQ(decisions("api_keys/key", "admitted"), "1");
}

TEST_F(TwoStepsTest, EveryPolicyIsCountedOnceInEveryDecision) {
  constexpr const char* kBody = R"({"model":"m","messages":[]})";
  ask(kChat, "sk-known", kBody);
  EXPECT_EQ(decisions("all", "admitted"), "1");
  EXPECT_EQ(decisions("ip", "admitted"), "1");
  EXPECT_EQ(decisions("wide", "admitted"), "1");
  EXPECT_EQ(decisions("api_keys/key", "admitted"), "1");
  // Refused in the second step: the first is given back.
  EXPECT_EQ(ask(kChat, "sk-known", kBody).status, 429);
  EXPECT_EQ(decisions("all", "refused"), "1");
  EXPECT_EQ(decisions("ip", "admitted"), "1");
  EXPECT_EQ(decisions("ip", "not_charged"), "1");
  EXPECT_EQ(decisions("wide", "not_charged"), "1");
  EXPECT_EQ(decisions("api_keys/key", "refused"), "1");
  // Two limits of a policy, of one unit.
  EXPECT_EQ(metric(R"(stint_rejections_total{policy="api_keys/key",unit="requests"})"), "1");
  // Refused in the first step, by one of two.
  for (int i = 0; i < 2; ++i) EXPECT_EQ(status_of("GET", "/nothing", ""), 404);
  EXPECT_EQ(status_of("GET", "/nothing", ""), 429);
  EXPECT_EQ(decisions("all", "refused"), "2");
  EXPECT_EQ(decisions("ip", "refused"), "1");
  EXPECT_EQ(decisions("wide", "admitted"), "3");
  EXPECT_EQ(decisions("wide", "not_charged"), "2");
}

TEST_F(TwoStepsTest, ABodyThatIsRefusedIsAnsweredAndCounted) {
  ScriptedExchange exchange;
  exchange.request.method = "POST";
  exchange.request.path = kChat;
  exchange.request.fields.add("x-api-key", "sk-free");
  exchange.refusal = http::Refusal{413, "body_too_large", "the body is longer than the limit"};
  ask(exchange);
  EXPECT_EQ(exchange.answer->status, 413);
  EXPECT_TRUE(exchange.answer->fields.get("x-request-id"));
  EXPECT_TRUE(exchange.answer->fields.get("ratelimit"));
  EXPECT_THAT(exchange.answer_body, testing::HasSubstr("\"code\":\"body_too_large\""));
  EXPECT_EQ(metric(R"(stint_requests_total{status="4xx"})"), "1");
  gateway_.note_unread(431, "203.0.113.7");
  EXPECT_EQ(metric(R"(stint_requests_total{status="4xx"})"), "2");
}

TEST_F(TwoStepsTest, TheServerAsAWholeIsNoPathOfARoute) {
  ScriptedExchange exchange;
  exchange.request.method = "OPTIONS";
  exchange.request.path = "*";
  exchange.request.host = "any.example";
  ask(exchange);
  EXPECT_EQ(exchange.answer->status, 404);
}

// A little that stands for a lot is metered a part at a time.
TEST_F(TwoStepsTest, ABombIsMeteredInParts) {
  const std::string text(std::size_t{8} * 1024 * 1024, 'x');
  uLongf size = compressBound(text.size());
  std::string bomb(size, '\0');
  ASSERT_EQ(compress(reinterpret_cast<Bytef*>(bomb.data()), &size,
                     reinterpret_cast<const Bytef*>(text.data()), text.size()),
            Z_OK);
  bomb.resize(size);

  ScriptedExchange exchange;
  Dispatcher::Request request(exchange, nullptr, gateway_, loop_);
  http::ResponseHead head;
  head.fields.add("Content-Encoding", "deflate");
  Relay relay(request, UsageMeterOptions{}, head);
  EXPECT_EQ(relay.take(bomb), bomb);
  int parts = 0;
  for (; relay.behind(); ++parts) relay.catch_up();
  EXPECT_GE(parts, 8);
  relay.settle();
  EXPECT_EQ(request.usage.output_tokens, 8 * 1024 * 1024 / 4);
}

}  // namespace
}  // namespace stint::gateway
