#include "gateway/openai_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "stint/limit.h"

namespace stint::gateway {
namespace {

using testing::HasSubstr;

constexpr auto kChat = OpenAiEndpoint::chat_completions;

OpenAiRequest read(std::string_view body, OpenAiEndpoint endpoint = kChat) {
  auto request = parse_openai_request(endpoint, body);
  EXPECT_TRUE(request.has_value()) << body << (request ? "" : request.error().message);
  return request.value_or(OpenAiRequest{});
}

RequestFault fault(std::string_view body, OpenAiEndpoint endpoint = kChat) {
  const auto request = parse_openai_request(endpoint, body);
  EXPECT_FALSE(request.has_value()) << body;
  return request ? RequestFault{} : request.error();
}

// A body with these members besides a model.
OpenAiRequest with(std::string_view members) {
  return read(R"({"model":"m",)" + std::string(members) + "}");
}

std::string rewritten(std::string_view body, std::string_view model,
                      OpenAiEndpoint endpoint = kChat) {
  return rewrite_for_upstream(body, read(body, endpoint), model);
}

TEST(OpenAiRequest, WhatIsRead) {
  const OpenAiRequest request = read(R"({"model":"gpt-x","messages":[{"role":"user",
      "content":"12345678"}],"stream":true,"stream_options":{"include_usage":true},
      "max_tokens":100,"n":3})");
  EXPECT_EQ(request.model, "gpt-x");
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.include_usage);
  EXPECT_EQ(request.output_cap, 300);
  EXPECT_EQ(request.choices, 3);
  EXPECT_EQ(request.input_tokens, 2);
}

TEST(OpenAiRequest, Defaults) {
  const OpenAiRequest request = read(R"({"model":"m"})");
  EXPECT_FALSE(request.stream);
  EXPECT_FALSE(request.include_usage);
  EXPECT_EQ(request.output_cap, std::nullopt);
  EXPECT_EQ(request.choices, 1);
  EXPECT_EQ(request.input_tokens, 0);
}

TEST(OpenAiRequest, NullIsAsIfAbsent) {
  const OpenAiRequest request =
      with(R"("stream":null,"stream_options":null,"max_tokens":null,"n":null,"best_of":null)");
  EXPECT_FALSE(request.stream);
  EXPECT_EQ(request.output_cap, std::nullopt);
  EXPECT_EQ(request.choices, 1);
}

TEST(OpenAiRequest, OutputCap) {
  EXPECT_EQ(with(R"("max_tokens":10)").output_cap, 10);
  EXPECT_EQ(with(R"("max_completion_tokens":10)").output_cap, 10);
  EXPECT_EQ(with(R"("max_completion_tokens":10,"max_tokens":20)").output_cap, 20);
  EXPECT_EQ(with(R"("max_completion_tokens":20,"max_tokens":10)").output_cap, 20);
  EXPECT_EQ(with(R"("max_tokens":0)").output_cap, 0);
  EXPECT_EQ(with(R"("max_tokens":10,"n":2,"best_of":5)").output_cap, 50);
  EXPECT_EQ(with(R"("max_tokens":10,"n":7,"best_of":5)").output_cap, 70);
  EXPECT_EQ(with(R"("max_tokens":10,"n":0)").output_cap, 10);
  EXPECT_EQ(with(R"("n":4)").output_cap, std::nullopt);
  EXPECT_EQ(with(R"("n":4)").choices, 4);
}

TEST(OpenAiRequest, HugeNumbersSaturate) {
  EXPECT_EQ(with(R"("max_tokens":9007199254740991)").output_cap, kMaxQuantity);
  EXPECT_EQ(with(R"("max_tokens":9007199254740992)").output_cap, kMaxQuantity);
  EXPECT_EQ(with(R"("max_tokens":9223372036854775808)").output_cap, kMaxQuantity);
  EXPECT_EQ(with(R"("max_tokens":18446744073709551616)").output_cap, kMaxQuantity);
  EXPECT_EQ(with(R"("max_tokens":)" + std::string(400, '9')).output_cap, kMaxQuantity);
  EXPECT_EQ(with(R"("max_tokens":4611686018427387904,"n":4)").output_cap, kMaxQuantity);
  EXPECT_EQ(with(R"("max_tokens":9007199254740991,"n":9007199254740991)").output_cap, kMaxQuantity);
}

TEST(OpenAiRequest, HugeNumbersOfChoicesSaturate) {
  EXPECT_EQ(with(R"("n":9223372036854775807)").choices, kMaxQuantity);
}

TEST(OpenAiRequest, CapsThatAreNoWholeNumbersAreFaults) {
  for (const char* key : {"max_tokens", "max_completion_tokens", "n", "best_of"}) {
    for (const char* value : {"-1", "-0", "1.5", "10.0", "1e3", "1E2", "\"10\"", "true", "[]", "{}",
                              "-9999999999999999999999"}) {
      const RequestFault found =
          fault(R"({"model":"m",")" + std::string(key) + "\":" + value + "}");
      EXPECT_EQ(found.param, key) << value;
      EXPECT_THAT(found.message, HasSubstr("must be a whole number")) << value;
    }
  }
}

TEST(OpenAiRequest, ModelMustBeText) {
  EXPECT_THAT(fault("{}").message, HasSubstr("`model` is missing"));
  for (const char* value : {"null", "1", "\"\"", "{}", "[\"m\"]", "true"}) {
    const RequestFault found = fault(R"({"model":)" + std::string(value) + "}");
    EXPECT_THAT(found.message, HasSubstr("`model` must be text")) << value;
    EXPECT_EQ(found.param, "model");
  }
}

TEST(OpenAiRequest, StreamMustBeABoolean) {
  for (const char* value : {"1", "\"true\"", "{}", "0"}) {
    EXPECT_EQ(fault(R"({"model":"m","stream":)" + std::string(value) + "}").param, "stream");
    EXPECT_EQ(fault(R"({"model":"m","stream":true,"stream_options":{"include_usage":)" +
                    std::string(value) + "}}")
                  .param,
              "stream_options.include_usage");
  }
  for (const char* value : {"1", "\"true\"", "[]", "true"}) {
    EXPECT_EQ(fault(R"({"model":"m","stream_options":)" + std::string(value) + "}").param,
              "stream_options");
  }
}

TEST(OpenAiRequest, AMemberGivenTwiceIsAFault) {
  EXPECT_EQ(fault(R"({"model":"a","model":"b"})").param, "model");
  EXPECT_EQ(fault(R"({"model":"a","mod\u0065l":"b"})").param, "model");
  EXPECT_EQ(fault(R"({"model":"a","x":1,"x":1})").message, "`x` is given twice. Give it once.");
  EXPECT_EQ(
      fault(R"({"model":"a","stream_options":{"include_usage":true,"include_usage":false}})").param,
      "stream_options.include_usage");
  // Deeper down it is the upstream's to judge.
  EXPECT_EQ(with(R"("metadata":{"x":1,"x":2})").model, "m");
}

TEST(OpenAiRequest, TooManyMembersAreAFault) {
  std::string body = R"({"model":"m")";
  for (std::size_t i = 1; i < kMaxTopLevelMembers; ++i) body += ",\"" + std::to_string(i) + "\":0";
  EXPECT_EQ(read(body + "}").model, "m");
  EXPECT_THAT(fault(body + ",\"x\":0}").message, HasSubstr("more than 256 members"));
}

TEST(OpenAiRequest, BodiesThatAreNotJson) {
  EXPECT_THAT(fault("hello").message, HasSubstr("not valid JSON"));
  EXPECT_THAT(fault("[]").message, HasSubstr("not a JSON object"));
  EXPECT_THAT(fault("").message, HasSubstr("empty"));
  EXPECT_THAT(fault(R"({"model":"m"} x)").message, HasSubstr("not valid JSON"));
}

TEST(OpenAiRequest, Embeddings) {
  const OpenAiRequest request =
      read(R"({"model":"e","input":[1,2,3],"stream":true,"n":"x","max_tokens":-1})",
           OpenAiEndpoint::embeddings);
  EXPECT_EQ(request.input_tokens, 3);
  EXPECT_EQ(request.output_cap, 0);
  EXPECT_FALSE(request.stream);
  EXPECT_EQ(request.choices, 1);
  EXPECT_EQ(
      rewritten(R"({"model":"e","input":"x","stream":true})", "up", OpenAiEndpoint::embeddings),
      R"({"model":"up","input":"x","stream":true})");
}

TEST(Rewrite, OnlyTheTopLevelModelChanges) {
  EXPECT_EQ(rewritten(R"({ "metadata": {"model": "keep"},
    "messages":[{"role":"user","content":"\"model\":\"m\"", "model":"keep"}],
	"model" :  "m" , "temperature": 1.0e0, "seed": 12345678901234567890123, "x":"\u0041\/" } )",
                      "up/1"),
            R"({ "metadata": {"model": "keep"},
    "messages":[{"role":"user","content":"\"model\":\"m\"", "model":"keep"}],
	"model" :  "up/1" , "temperature": 1.0e0, "seed": 12345678901234567890123, "x":"\u0041\/" } )");
}

TEST(Rewrite, EscapesInNames) {
  EXPECT_EQ(read(R"({"\u006dodel":"a\"\\\u00e9\ud83d\ude00"})").model, "a\"\\\u00e9\U0001F600");
  EXPECT_EQ(rewritten(R"({"\u006dodel":"a\"b"})", "c\"d\\e"), R"({"\u006dodel":"c\"d\\e"})");
  EXPECT_EQ(rewritten(R"({"a\\":"\\","b":"\\\"","model":"m","c":"\\\\"})", "up"),
            R"({"a\\":"\\","b":"\\\"","model":"up","c":"\\\\"})");
}

TEST(Rewrite, TheSameNameKeepsItsSpelling) {
  EXPECT_EQ(rewritten(R"({"model":"\u0061"})", "a"), R"({"model":"\u0061"})");
}

TEST(Rewrite, UnicodeStays) {
  EXPECT_EQ(rewritten("{\"model\":\"m\u26a1\",\"prompt\":\"\U0001F600\"}", "x"),
            "{\"model\":\"x\",\"prompt\":\"\U0001F600\"}");
}

struct UsageCase {
  const char* given;
  const char* sent;
};

TEST(Rewrite, UsageOfAStreamIsForced) {
  for (const auto& [given, sent] : {
           UsageCase{R"({"model":"m","stream":true})",
                     R"({"model":"m","stream":true,"stream_options":{"include_usage":true}})"},
           UsageCase{"{\"stream\" : true , \"model\" : \"m\"\n}\n",
                     "{\"stream\" : true , \"model\" : \"m\",\"stream_options\":"
                     "{\"include_usage\":true}\n}\n"},
           UsageCase{R"({"stream_options":null,"model":"m","stream":true})",
                     R"({"stream_options":{"include_usage":true},"model":"m","stream":true})"},
           UsageCase{R"({"model":"m","stream_options":{},"stream":true})",
                     R"({"model":"m","stream_options":{"include_usage":true},"stream":true})"},
           UsageCase{R"({"model":"m","stream_options":{ },"stream":true})",
                     R"({"model":"m","stream_options":{"include_usage":true },"stream":true})"},
           UsageCase{R"({"stream":true,"stream_options":{"include_usage": false },"model":"m"})",
                     R"({"stream":true,"stream_options":{"include_usage": true },"model":"m"})"},
           UsageCase{R"({"stream":true,"stream_options":{"include_usage":null},"model":"m"})",
                     R"({"stream":true,"stream_options":{"include_usage":true},"model":"m"})"},
           UsageCase{
               R"({"stream":true,"stream_options":{"x":{"include_usage":false} },"model":"m"})",
               R"({"stream":true,"stream_options":{"x":{"include_usage":false},)"
               R"("include_usage":true },"model":"m"})"},
       }) {
    EXPECT_EQ(rewritten(given, "m"), sent);
    EXPECT_FALSE(read(given).include_usage);
    EXPECT_TRUE(read(sent).include_usage);
    // Together with another model, wherever that stands.
    const std::string both = rewritten(given, "longer name");
    EXPECT_TRUE(read(both).include_usage) << both;
    EXPECT_EQ(read(both).model, "longer name") << both;
  }
}

TEST(Rewrite, UsageIsNotTouchedWhereNothingIsToDo) {
  for (const char* body : {R"({"model":"m","stream":true,"stream_options":{"include_usage":true}})",
                           R"({"model":"m","stream":false})", R"({"model":"m"})",
                           R"({"model":"m","stream_options":{"include_usage":false}})",
                           R"({"model":"m","stream":null,"stream_options":null})"}) {
    EXPECT_EQ(rewritten(body, "m"), body);
  }
}

TEST(Rewrite, TheBodyMayHaveMoved) {
  std::string body = R"({"model":"m"})";  // short enough to lie inside the string object
  const OpenAiRequest request = read(body);
  const std::string moved = std::move(body);
  EXPECT_EQ(rewrite_for_upstream(moved, request, "other"), R"({"model":"other"})");
}

// A large body with every kind of value: what is sent differs in the two edits and nothing else.
TEST(Rewrite, EverythingElseStaysInALargeBody) {
  std::string filler;
  for (int i = 0; i < 2'000; ++i) {
    filler += R"(,"k)" + std::to_string(i % 200) + "_" + std::to_string(i) +
              R"(":[{"model":"x\\"},"]}\"{[",-0.50e+3,null,{"stream_options":{"a":[]}}])";
  }
  const std::string messages = R"("messages":[{"content":"x"},{"nested":{"a":0)" + filler + "}}]";
  const std::string body = "{" + messages + R"(,"model":"m","stream":true})";
  const std::string sent = rewritten(body, "up");
  EXPECT_EQ(sent, "{" + messages +
                      R"(,"model":"up","stream":true,"stream_options":{"include_usage":true}})");
}

}  // namespace
}  // namespace stint::gateway
