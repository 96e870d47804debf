#include "mock_upstream.h"

#include <algorithm>
#include <boost/json.hpp>
#include <utility>
#include <vector>

namespace stint::app {
namespace {

namespace json = boost::json;

constexpr Duration kBetweenEvents = std::chrono::milliseconds{150};

http::ResponseHead head_of(int status, std::string type) {
  http::ResponseHead head;
  head.status = status;
  head.fields.add("Content-Type", std::move(type));
  return head;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' ', 1), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

// The text of the last message, as far as it is a plain one.
std::string last_message(const json::object& request) {
  const json::value* messages = request.if_contains("messages");
  if (messages == nullptr || !messages->is_array() || messages->as_array().empty()) return "";
  const json::value& last = messages->as_array().back();
  if (!last.is_object()) return "";
  const json::value* content = last.as_object().if_contains("content");
  return content != nullptr && content->is_string() ? std::string(content->as_string()) : "";
}

json::object usage_of(std::int64_t input, std::int64_t output) {
  return {
      {"prompt_tokens", input}, {"completion_tokens", output}, {"total_tokens", input + output}};
}

json::object chunk_of(const std::string& model) {
  return {{"id", "chatcmpl-demo"},
          {"object", "chat.completion.chunk"},
          {"created", 0},
          {"model", model},
          {"choices", json::array()}};
}

std::string event_of(const json::object& chunk) {
  return "data: " + json::serialize(chunk) + "\n\n";
}

std::string embeddings_of(const std::string& model) {
  json::array numbers;
  for (int i = 0; i < 8; ++i) numbers.push_back(0.125 * i);
  json::object row{{"object", "embedding"}, {"index", 0}, {"embedding", std::move(numbers)}};
  json::object answer{{"object", "list"},
                      {"model", model},
                      {"data", json::array({std::move(row)})},
                      {"usage", {{"prompt_tokens", 8}, {"total_tokens", 8}}}};
  return json::serialize(answer);
}

std::string completion_of(const std::string& text, std::int64_t input, std::int64_t output,
                          const std::string& model) {
  json::object message{{"role", "assistant"}, {"content", text}};
  json::object choice{{"index", 0}, {"message", std::move(message)}, {"finish_reason", "stop"}};
  json::object answer{{"id", "chatcmpl-demo"},
                      {"object", "chat.completion"},
                      {"created", 0},
                      {"model", model},
                      {"choices", json::array({std::move(choice)})},
                      {"usage", usage_of(input, output)}};
  return json::serialize(answer);
}

std::string model_of(const json::object& request) {
  const json::value* model = request.if_contains("model");
  return model != nullptr && model->is_string() ? std::string(model->as_string()) : "";
}

bool streams(const json::object& request) {
  const json::value* stream = request.if_contains("stream");
  return stream != nullptr && stream->is_bool() && stream->as_bool();
}

}  // namespace

net::NetResult<std::unique_ptr<MockUpstream>> MockUpstream::create() {
  std::unique_ptr<MockUpstream> mock(new MockUpstream);
  auto listener = net::Listener::open(mock->loop_, {"127.0.0.1", 0});
  if (!listener) return std::unexpected(std::move(listener.error()));
  mock->port_ = listener->port();
  MockUpstream* self = mock.get();
  mock->server_ = std::make_unique<http::Server>(
      mock->loop_, std::move(*listener), http::ServerLimits{},
      [self](http::Exchange& exchange) { return self->answer(exchange); });
  mock->thread_ = std::thread([self] {
    self->tasks_.start(self->serve());
    self->loop_.run();
  });
  return mock;
}

MockUpstream::MockUpstream() = default;

MockUpstream::~MockUpstream() {
  loop_.post([this] { ending_.start(stop()); });
  if (thread_.joinable()) thread_.join();
}

net::Task<void> MockUpstream::serve() { co_await server_->serve(); }

net::Task<void> MockUpstream::stop() {
  co_await server_->stop();
  co_await tasks_.join();
  // Not from within: no task may be left when the loop has ended.
  loop_.post([this] { loop_.stop(); });
}

net::Task<void> MockUpstream::answer(http::Exchange& exchange) {
  auto body = co_await exchange.read_body();
  if (!body) co_return;
  const std::string& path = exchange.head().path;
  if (path == "/v1/chat/completions") co_return co_await chat(exchange, std::move(*body));
  http::ResponseHead head = head_of(200, "text/plain");
  std::string text = "hello from the upstream, this is " + path + "\n";
  if (path == "/v1/embeddings") {
    head = head_of(200, "application/json");
    text = embeddings_of("demo-embed");
  }
  auto sent = co_await exchange.respond(std::move(head), std::move(text));
  (void)sent;
}

net::Task<void> MockUpstream::chat(http::Exchange& exchange, std::string body) {
  boost::system::error_code error;
  const json::value parsed = json::parse(body, error);
  if (error || !parsed.is_object()) {
    auto sent = co_await exchange.respond(head_of(400, "application/json"), "{}");
    (void)sent;
    co_return;
  }
  const json::object& request = parsed.as_object();
  const std::string model = model_of(request);
  const std::string asked = last_message(request);
  std::string text = "You said: " + (asked.empty() ? "nothing" : asked);
  const auto input = static_cast<std::int64_t>(words_of(asked).size());
  if (streams(request)) co_return co_await stream(exchange, std::move(text), input, model);
  const auto output = static_cast<std::int64_t>(words_of(text).size());
  std::string answer = completion_of(text, input, output, model);
  auto sent = co_await exchange.respond(head_of(200, "application/json"), std::move(answer));
  (void)sent;
}

net::Task<void> MockUpstream::stream(http::Exchange& exchange, std::string text, std::int64_t input,
                                     std::string model) {
  const std::optional<std::uint64_t> unknown;
  auto started = co_await exchange.start(head_of(200, "text/event-stream"), unknown);
  if (!started) co_return;
  std::int64_t output = 0;
  for (const std::string& word : words_of(text)) {
    json::object choice{{"index", 0}, {"delta", {{"content", word}}}, {"finish_reason", nullptr}};
    json::object chunk = chunk_of(model);
    chunk["choices"] = json::array({std::move(choice)});
    const std::string event = event_of(chunk);
    auto written = co_await exchange.write(event);
    if (!written) co_return;
    ++output;
    co_await loop_.wait_for(kBetweenEvents);
  }
  json::object last = chunk_of(model);
  last["usage"] = usage_of(input, output);
  const std::string end = event_of(last) + "data: [DONE]\n\n";
  auto written = co_await exchange.write(end);
  if (!written) co_return;
  auto finished = co_await exchange.finish();
  (void)finished;
}

}  // namespace stint::app
