#include "gateway/token_estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "stint/limit.h"

namespace stint::gateway {
namespace {

using testing::HasSubstr;

std::int64_t estimate(std::string_view body, TokenEstimateOptions options = {}) {
  const auto tokens = estimate_input_tokens(body, options);
  EXPECT_TRUE(tokens.has_value()) << (tokens ? "" : tokens.error().message);
  return tokens.value_or(-1);
}

std::string fault(std::string_view body) {
  const auto tokens = estimate_input_tokens(body);
  return tokens ? "none" : tokens.error().message;
}

TEST(TokensOfText, RoundsUp) {
  EXPECT_EQ(tokens_of_text(0), 0);
  EXPECT_EQ(tokens_of_text(1), 1);
  EXPECT_EQ(tokens_of_text(4), 1);
  EXPECT_EQ(tokens_of_text(5), 2);
  EXPECT_EQ(tokens_of_text(UINT64_MAX), std::int64_t{1} << 62);
}

TEST(TokenEstimate, TextOfMessages) {
  EXPECT_EQ(estimate(R"({"messages":[{"role":"user","content":"12345678"}]})"), 2);
  EXPECT_EQ(estimate(R"({"messages":[{"role":"system","content":"1234"},
                                     {"content":"56789","role":"user"}]})"),
            3);
  EXPECT_EQ(estimate(R"({"messages":[{"role":"user","content":[
      {"type":"text","text":"1234"},{"text":"5678","type":"text"}]}]})"),
            2);
}

TEST(TokenEstimate, RoundsOnceOverAll) {
  EXPECT_EQ(estimate(R"({"messages":[{"content":"1"},{"content":"2"},{"content":"3"}]})"), 1);
}

TEST(TokenEstimate, OnlyTextCounts) {
  EXPECT_EQ(estimate(R"({"model":"a long name of a model","user":"somebody","n":1,
      "stop":["one","two"],"metadata":{"messages":"no"},
      "messages":[{"role":"assistant","content":null,"id":"msg_1","type":"message"}]})"),
            0);
}

TEST(TokenEstimate, ToolCallsAndTheirResultsAreText) {
  EXPECT_EQ(estimate(R"({"messages":[
      {"role":"assistant","tool_calls":[{"id":"call_1","type":"function",
        "function":{"name":"1234","arguments":"56789012"}}]},
      {"role":"tool","tool_call_id":"call_1","content":"3456"}]})"),
            4);
}

TEST(TokenEstimate, SchemasCountWithTheirKeys) {
  EXPECT_EQ(estimate(R"({"tools":[{"abcd":"efgh"}]})"), 2);
  EXPECT_EQ(estimate(R"({"functions":[{"ab":{"cd":["ef",1,true]}}]})"), 2);
  EXPECT_EQ(estimate(R"({"response_format":{"type":"text"}})"), 2);
}

TEST(TokenEstimate, EscapesCountAsTheirCharacters) {
  EXPECT_EQ(estimate(R"({"prompt":"\u0061\n\"\\"})"), 1);
  EXPECT_EQ(estimate(R"({"prompt":"\ud83d\ude00"})"), 1);
  EXPECT_EQ(estimate(R"({"prompt":"\u00e9\u00e9\u00e9"})"), 2);
  EXPECT_EQ(estimate("{\"prompt\":\"\u26a1\u26a1\"}"), 2);
  EXPECT_EQ(estimate(R"({"p\u0072ompt":"1234"})"), 1);
}

TEST(TokenEstimate, MediaPartsAreFlat) {
  const std::string image = R"({"type":"image_url","image_url":{"url":"data:image/png;base64,)" +
                            std::string(100'000, 'A') + R"("}})";
  const std::string audio =
      R"({"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}})";
  const std::string file = R"({"file":{"file_data":"AAAA","filename":"a.pdf"},"type":"file"})";
  const auto body = [](const std::string& parts) {
    return R"({"messages":[{"role":"user","content":[)" + parts + "]}]}";
  };
  EXPECT_EQ(estimate(body(image)), 1'000);
  EXPECT_EQ(estimate(body(image + "," + audio + "," + file)), 3'000);
  EXPECT_EQ(estimate(body(image), {.tokens_per_media_part = 85}), 85);
  EXPECT_EQ(estimate(body(image), {.tokens_per_media_part = 0}), 0);
  EXPECT_EQ(estimate(body(image), {.tokens_per_media_part = -1}), 0);
  EXPECT_EQ(estimate(body(R"({"type":"text","text":"1234"},)" + image)), 1'001);
  // Told by its type, its data being in a member that nobody knows; and by its data alone.
  EXPECT_EQ(estimate(body(R"({"pixels":"AAAAAAAA","type":"input_image"})")), 1'000);
  EXPECT_EQ(estimate(body(R"({"image_url":"https://example.com/1234.png"})")), 1'000);
  // The text of a part is text, whatever else the part is.
  EXPECT_EQ(estimate(body(R"({"type":"image_url","image_url":"x","text":"12345678"})")), 1'002);
  EXPECT_EQ(estimate(R"({"messages":[{"role":"assistant","audio":{"id":"audio_1"}}]})"), 1'000);
  EXPECT_EQ(estimate(R"({"messages":[{"role":"assistant","audio":null}]})"), 0);
  // What follows such a part is judged by itself.
  EXPECT_EQ(estimate(body(image + R"(,{"type":"news","body":"1234"})")), 1'001);
}

TEST(TokenEstimate, PartsOfAnUnknownTypeAreText) {
  EXPECT_EQ(estimate(R"({"messages":[{"content":[{"type":"news","body":"1234","id":"x"}]}]})"), 1);
  EXPECT_EQ(estimate(R"({"messages":[{"content":[{"type":"text","text":"1234",
      "cache_control":{"type":"ephemeral"}}]}]})"),
            1);
}

TEST(TokenEstimate, PromptsAndEmbeddings) {
  EXPECT_EQ(estimate(R"({"prompt":"1234","suffix":"5678"})"), 2);
  EXPECT_EQ(estimate(R"({"prompt":["1234","5678"]})"), 2);
  EXPECT_EQ(estimate(R"({"input":"12345"})"), 2);
  EXPECT_EQ(estimate(R"({"input":["1234","5"]})"), 2);
  EXPECT_EQ(estimate(R"({"input":[1,2,300,40000]})"), 4);
  EXPECT_EQ(estimate(R"({"input":[[1,2],[3,18446744073709551615,1e999]]})"), 5);
  EXPECT_EQ(estimate(R"({"input":["1234",[7]]})"), 2);
  EXPECT_EQ(estimate(R"({"input":[]})"), 0);
}

// C12: a request without anything to count must not take the whole limit.
TEST(TokenEstimate, NothingToCountIsNothing) {
  EXPECT_EQ(estimate("{}"), 0);
  EXPECT_EQ(estimate(R"({"messages":[]})"), 0);
  EXPECT_EQ(estimate(R"({"messages":null})"), 0);
  EXPECT_EQ(estimate(R"({"messages":[{"content":""}]})"), 0);
}

TEST(TokenEstimate, OddShapesAreText) {
  EXPECT_EQ(estimate(R"({"messages":"1234"})"), 1);
  EXPECT_EQ(estimate(R"({"messages":["1234",["5678"]]})"), 2);
  EXPECT_EQ(estimate(R"({"messages":[{"content":{"text":"1234"}}]})"), 1);
  EXPECT_EQ(estimate(R"({"messages":[{"x":{"content":[{"type":"image","image":"1234"}]}}]})"), 1);
  EXPECT_EQ(estimate(R"({"messages":[{"reasoning_content":"1234","x":{"content":"5678"}}]})"), 2);
}

// Two readers of a member that is given twice may take either: both are counted.
TEST(TokenEstimate, BothOfAMemberGivenTwiceCount) {
  EXPECT_EQ(estimate(R"({"messages":[{"content":"1234","content":"5678"}]})"), 2);
}

TEST(TokenEstimate, IsBounded) {
  std::string images = R"({"messages":[{"content":[)";
  for (int i = 0; i < 10; ++i) images += R"({"type":"image"},)";
  images.back() = ']';
  EXPECT_EQ(estimate(images + "}]}", {.tokens_per_media_part = INT64_MAX}), kMaxQuantity);
}

TEST(TokenEstimate, Faults) {
  for (const char* body : {"", " \n"}) {
    EXPECT_EQ(fault(body), "The body is empty. Send one JSON object.");
  }
  for (const char* body : {"[]", "1", "\"x\"", "null", "true", "[{\"model\":\"x\"}]"}) {
    EXPECT_EQ(fault(body), "The body is not a JSON object. Send one JSON object.") << body;
  }
  for (const char* body :
       {"{", "{\"a\"}", "{\"a\":1,}", "{'a':1}", "{\"a\":1}{}", "{\"a\":01}", "x", "{\"a\":\"\n\"}",
        "{\"a\":nul}", "{\"a\":NaN}", "/**/{}", "{\"a\":\"\\ud800\"}", "\xEF\xBB\xBF{}"}) {
    EXPECT_THAT(fault(body), HasSubstr("not valid JSON (")) << body;
  }
  EXPECT_THAT(fault(std::string_view("{}\0", 3)), HasSubstr("not valid JSON ("));
  for (const char* body :
       {"{\"a\":\"\xFF\"}", "{\"a\":\"\xC0\x80\"}", "{\"a\":\"\xED\xA0\x80\"}"}) {
    EXPECT_THAT(fault(body), HasSubstr("not valid UTF-8")) << body;
  }
}

TEST(TokenEstimate, Depth) {
  const auto nested = [](std::size_t depth) {
    return R"({"messages":)" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
  };
  EXPECT_EQ(estimate(nested(kMaxJsonDepth)), 0);
  EXPECT_THAT(fault(nested(kMaxJsonDepth + 1)), HasSubstr("more than 128 deep"));
  EXPECT_THAT(fault(nested(1'000'000)), HasSubstr("more than 128 deep"));
}

}  // namespace
}  // namespace stint::gateway
