#include "gateway/usage_meter.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "stint/limit.h"

namespace stint::gateway {
namespace {

constexpr const char* kJson = "application/json; charset=utf-8";
constexpr const char* kEvents = "text/event-stream";

UsageMeter metered(std::string_view type, std::string_view body, UsageMeterOptions options = {}) {
  UsageMeter meter(type, options);
  EXPECT_EQ(meter.feed(body), body);
  EXPECT_EQ(meter.finish(), "");
  EXPECT_EQ(meter.forwarded_bytes(), body.size());
  return meter;
}

MeteredUsage usage_of(std::string_view type, std::string_view body,
                      UsageMeterOptions options = {.input_estimate = 7}) {
  return metered(type, body, options).usage();
}

// "input output", with " cached reasoning" if there are any, and "~" if estimated.
std::string text(const MeteredUsage& usage) {
  std::string out = std::to_string(usage.input_tokens) + ' ' + std::to_string(usage.output_tokens);
  if (usage.cached_input_tokens > 0 || usage.reasoning_output_tokens > 0) {
    out += ' ' + std::to_string(usage.cached_input_tokens) + ' ' +
           std::to_string(usage.reasoning_output_tokens);
  }
  return usage.estimated ? out + '~' : out;
}

std::string json_usage(std::string_view usage) {
  return text(
      usage_of(kJson, R"({"choices":[{"message":{"role":"assistant","content":"12345678"}}],)" +
                          std::string(usage) + "}"));
}

TEST(UsageMeter, OfAChatAnswer) {
  EXPECT_EQ(text(usage_of(kJson, R"({"id":"c","choices":[{"index":0,"message":{"role":"assistant",
      "content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,
      "completion_tokens":20,"total_tokens":30,"prompt_tokens_details":{"cached_tokens":4,
      "audio_tokens":9},"completion_tokens_details":{"reasoning_tokens":5,
      "accepted_prediction_tokens":9}}})")),
            "10 20 4 5");
}

TEST(UsageMeter, OfACompletionAndAnEmbedding) {
  EXPECT_EQ(text(usage_of(kJson, R"({"choices":[{"text":"x"}],"usage":{"prompt_tokens":3,
      "completion_tokens":4,"total_tokens":7}})")),
            "3 4");
  const UsageMeterOptions embedding{.input_estimate = 7, .has_output = false};
  EXPECT_EQ(text(usage_of(kJson, R"({"data":[{"embedding":[0.1,0.2]}],"usage":{"prompt_tokens":3,
      "total_tokens":3}})",
                          embedding)),
            "3 0");
  EXPECT_EQ(text(usage_of(kJson, R"({"data":[],"usage":{"total_tokens":3}})", embedding)), "3 0");
  EXPECT_EQ(text(usage_of(kJson, R"({"data":[{"embedding":"AAAAAAAAAA"}]})", embedding)), "7 0~");
}

TEST(UsageMeter, OtherNamesOfTheSame) {
  EXPECT_EQ(json_usage(R"("usage":{"input_tokens":10,"output_tokens":20,
      "input_tokens_details":{"cached_tokens":1},"output_tokens_details":{"reasoning_tokens":2}})"),
            "10 20 1 2");
}

TEST(UsageMeter, MissingPartsFollowFromTheTotal) {
  EXPECT_EQ(json_usage(R"("usage":{"prompt_tokens":10,"total_tokens":30})"), "10 20");
  EXPECT_EQ(json_usage(R"("usage":{"completion_tokens":20,"total_tokens":30})"), "10 20");
  EXPECT_EQ(json_usage(R"("usage":{"total_tokens":30})"), "7 23~");
  EXPECT_EQ(json_usage(R"("usage":{"total_tokens":5})"), "5 0~");
  EXPECT_EQ(json_usage(R"("usage":{"prompt_tokens":40,"total_tokens":30})"), "40 0");
  EXPECT_EQ(json_usage(R"("usage":{"completion_tokens":40,"total_tokens":30})"), "0 40");
}

// C13: what is no count is as if it were absent; the rest is estimated from the text.
TEST(UsageMeter, WhatIsNoCountIsIgnored) {
  for (const char* usage :
       {R"("usage":null)", R"("usage":"many")", R"("usage":17)", R"("usage":[])", R"("usage":{})",
        R"("usage":[{"prompt_tokens":1,"completion_tokens":1}])", R"("x":1)",
        R"("usage":{"x":{"prompt_tokens":1,"completion_tokens":1}})",
        R"("usage":[{"prompt_tokens":-1,"x":0,"completion_tokens":-1},5])",
        R"("x":{"usage":{"prompt_tokens":1,"completion_tokens":1}})",
        R"("usage":{"prompt_tokens":-10,"completion_tokens":-20,"total_tokens":-30})",
        R"("usage":{"prompt_tokens":"10","completion_tokens":"20"})",
        R"("usage":{"prompt_tokens":null,"completion_tokens":null,"total_tokens":null})",
        R"("usage":{"prompt_tokens":1.5,"completion_tokens":2e1})",
        R"("usage":{"prompt_tokens":9007199254740992,"completion_tokens":18446744073709551615})",
        R"("usage":{"prompt_tokens":1e999,"completion_tokens":99999999999999999999999999})",
        R"("usage":{"prompt_tokens":{"a":1},"completion_tokens":[2]})"}) {
    EXPECT_EQ(json_usage(usage), "7 2~") << usage;
  }
  EXPECT_EQ(json_usage(R"("usage":{"prompt_tokens":10,"completion_tokens":-1})"), "10 2~");
  EXPECT_EQ(json_usage(R"("usage":{"prompt_tokens":"x","completion_tokens":20})"), "7 20~");
  EXPECT_EQ(json_usage(R"("usage":{"prompt_tokens":0,"completion_tokens":0})"), "0 0");
  EXPECT_EQ(json_usage(R"("usage":{"prompt_tokens":9007199254740991,"completion_tokens":1})"),
            "9007199254740991 1");
  // Parts are never more than the whole.
  EXPECT_EQ(json_usage(R"("usage":{"prompt_tokens":3,"completion_tokens":4,
      "prompt_tokens_details":{"cached_tokens":9},"completion_tokens_details":
      {"reasoning_tokens":9}})"),
            "3 4 3 4");
}

TEST(UsageMeter, TextThatTheModelWroteIsCounted) {
  EXPECT_EQ(text(usage_of(kJson, R"({"choices":[{"index":0,"message":{"role":"assistant",
      "content":"1234","reasoning_content":"5678","tool_calls":[{"id":"call_1","type":"function",
      "function":{"name":"abcd","arguments":"{\"a\":1}"}}],"annotations":["no"],
      "audio":{"id":"no","data":"AAAAAAAA","transcript":"1234"}},"logprobs":{"content":[{"token":
      "no"}]}},{"text":"1234"}]})")),
            "7 7~");  // 4 + 4 + 4 + 7 + 4 + 4 = 27 bytes
  EXPECT_EQ(text(usage_of(kJson, R"({"choices":[{"message":{"content":"\u00e9\ud83d\ude00x"}}]})")),
            "7 2~");
  EXPECT_EQ(text(usage_of(kJson, R"({"choices":[{"message":{"content":[{"type":"text",
      "text":"12345"}]}}]})")),
            "7 2~");
  EXPECT_EQ(text(usage_of(kJson, R"({"choices":[]})")), "7 0~");
  EXPECT_EQ(text(usage_of(kJson, R"({"error":{"message":"a long text"}})")), "7 0~");
}

TEST(UsageMeter, OtherShapesCountByAllTheirBytes) {
  EXPECT_EQ(text(usage_of(kJson, R"({"result":"1234567890"})")), "7 6~");  // 23 bytes
  EXPECT_EQ(text(usage_of(kJson, "[1,2,3,4]")), "7 3~");
  EXPECT_EQ(text(usage_of("text/html", "<p>1234</p>")), "7 3~");
  EXPECT_EQ(text(usage_of("", "12345")), "7 2~");
  EXPECT_EQ(text(usage_of(kJson, R"({"choices":[]} {"choices":[]})")), "7 8~");
  EXPECT_EQ(text(usage_of(kJson, "")), "7 0~");
  EXPECT_EQ(text(usage_of(kJson, "{}", {.input_estimate = -5})), "0 1~");
}

TEST(UsageMeter, ABodyThatBreaksOffCountsByItsText) {
  UsageMeter meter(kJson, {.input_estimate = 7});
  EXPECT_EQ(meter.usage(), (MeteredUsage{.input_tokens = 7, .estimated = true}));
  static_cast<void>(meter.feed(R"({"choices":[{"message":{"content":"12345)"));
  EXPECT_EQ(text(meter.usage()), "7 2~");
  EXPECT_FALSE(meter.ended());
  EXPECT_EQ(meter.finish(), "");
  EXPECT_EQ(text(meter.usage()), "7 2~");
  EXPECT_FALSE(meter.ended());
}

TEST(UsageMeter, EndOfABody) {
  EXPECT_TRUE(metered(kJson, "{\"a\":1} \n").ended());
  EXPECT_FALSE(metered(kJson, "{\"a\":1").ended());
  EXPECT_FALSE(metered(kJson, "[]").ended());
  EXPECT_FALSE(metered(kJson, "{} x").ended());
  EXPECT_FALSE(metered(kJson, "").ended());
}

TEST(UsageMeter, ContentTypes) {
  for (const char* type :
       {"text/event-stream", "Text/Event-Stream; charset=utf-8", " text/event-stream ;x"}) {
    EXPECT_TRUE(UsageMeter(type).is_stream()) << type;
  }
  for (const char* type : {"", "application/json", "text/event-streams", "text/plain"}) {
    EXPECT_FALSE(UsageMeter(type).is_stream()) << type;
  }
}

// A body of any size is read as it passes.
TEST(UsageMeter, ALargeBodyInPieces) {
  UsageMeter meter(kJson);
  const auto feed = [&](std::string_view piece) { EXPECT_EQ(meter.feed(piece), piece); };
  feed(R"({"data":[)");
  const std::string piece = R"({"embedding":[)" + std::string(4'000, '1') + R"(]},)";
  for (int i = 0; i < 2'000; ++i) feed(piece);
  feed(R"(0],"usage":{"prompt_to)");
  feed(R"(kens":12)");
  feed(R"(34,"completion_tokens":0}})");
  EXPECT_EQ(meter.finish(), "");
  EXPECT_EQ(text(meter.usage()), "1234 0");
}

TEST(UsageMeter, DeepOrOddBodiesAreHarmless) {
  for (const std::string& body :
       {std::string(100'000, '['), std::string(100'000, '{'), std::string(1'000, '\0'),
        R"({"choices":)" + std::string(100'000, '[') + "}", std::string(R"({"usage":{"usage":[[{)"),
        std::string("\xFF\xFE"), std::string("{\"\xFF"),
        std::string(R"({"choices":{"message":1}})"),
        std::string(R"({"choices":[[{"message":"x"}]]})"),
        R"({")" + std::string(100'000, 'k') + R"(":1})"}) {
    EXPECT_EQ(usage_of(kJson, body).input_tokens, 7);
    EXPECT_EQ(usage_of(kEvents, "data: " + body + "\n\n").input_tokens, 7);
  }
}

TEST(UsageMeter, CanBeMoved) {
  UsageMeter meter(kEvents, {.hide_usage_chunk = true});
  EXPECT_EQ(meter.feed("data: {\"cho"), "");
  UsageMeter other = std::move(meter);
  EXPECT_EQ(other.feed("ices\":[1]}\n\n"), "data: {\"choices\":[1]}\n\n");
}

}  // namespace
}  // namespace stint::gateway
