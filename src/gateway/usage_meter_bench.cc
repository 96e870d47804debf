#include <benchmark/benchmark.h>

#include <string>

#include "gateway/openai_request.h"
#include "gateway/usage_meter.h"

namespace stint::gateway {
namespace {

constexpr const char* kRequest =
    R"({"model":"gpt-4o-mini","messages":[{"role":"system","content":"You are helpful."},)"
    R"({"role":"user","content":"What is the capital of France?"}],"stream":true})";
constexpr const char* kAnswer =
    R"({"id":"chatcmpl-123","object":"chat.completion","created":1700000000,"model":"gpt-4o-mini",)"
    R"("choices":[{"index":0,"message":{"role":"assistant","content":"Paris."},"logprobs":null,)"
    R"("finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":3,)"
    R"("total_tokens":23,"prompt_tokens_details":{"cached_tokens":0}}})";
constexpr const char* kEvent =
    R"(data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,)"
    R"("model":"gpt-4o-mini","choices":[{"index":0,"delta":{"content":" Paris"},"logprobs":null,)"
    R"("finish_reason":null}],"usage":null})"
    "\n\n";

void read_and_rewrite_request(benchmark::State& state) {
  for (auto _ : state) {
    const auto request = parse_openai_request(OpenAiEndpoint::chat_completions, kRequest);
    benchmark::DoNotOptimize(rewrite_for_upstream(kRequest, *request, "upstream-model"));
  }
}
BENCHMARK(read_and_rewrite_request);

void read_large_request(benchmark::State& state) {
  const std::string body = R"({"model":"m","messages":[{"role":"user","content":")" +
                           std::string(1'000'000, 'x') + R"("}]})";
  for (auto _ : state) {
    benchmark::DoNotOptimize(parse_openai_request(OpenAiEndpoint::chat_completions, body));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(body.size()));
}
BENCHMARK(read_large_request);

void meter_plain_answer(benchmark::State& state) {
  for (auto _ : state) {
    UsageMeter meter("application/json");
    benchmark::DoNotOptimize(meter.feed(kAnswer));
    benchmark::DoNotOptimize(meter.finish());
    benchmark::DoNotOptimize(meter.usage());
  }
}
BENCHMARK(meter_plain_answer);

void meter_event(benchmark::State& state) {
  UsageMeter meter("text/event-stream", {.hide_usage_chunk = state.range(0) != 0});
  for (auto _ : state) benchmark::DoNotOptimize(meter.feed(kEvent));
}
BENCHMARK(meter_event)->ArgName("hide")->Arg(0)->Arg(1);

}  // namespace
}  // namespace stint::gateway
