#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "gateway/usage_meter_testing.h"

namespace stint::gateway {
namespace {

TEST(UsageMeterStream, UsageOfTheLastChunk) {
  const std::string stream = kContent + kContent + kUsage + kDone;
  const Result passed = whole(stream, kPassing);
  EXPECT_EQ(passed, (Result{stream, kReported, true, true}));
  const Result hidden = whole(stream, kHiding);
  EXPECT_EQ(hidden, (Result{kContent + kContent + kDone, kReported, true, true}));
}

// C13: running totals in several events, input in the first and output in the last.
TEST(UsageMeterStream, UsageIsMergedOverTheStream) {
  const auto event = [](std::string_view usage) {
    return R"(data: {"choices":[{"delta":{"content":"x"}}],"usage":{)" + std::string(usage) +
           "}}\n\n";
  };
  const std::string stream = event(R"("prompt_tokens":1000,"completion_tokens":1)") +
                             event(R"("completion_tokens":20)") +
                             event(R"("completion_tokens":50)") + kDone;
  const MeteredUsage expected{.input_tokens = 1000, .output_tokens = 50};
  EXPECT_EQ(whole(stream, kPassing).usage, expected);
  // Chunks with choices are the client's, whatever usage they carry.
  EXPECT_EQ(whole(stream, kHiding), (Result{stream, expected, true, true}));
  // A later event that knows less takes nothing back.
  EXPECT_EQ(whole(stream + event(R"("prompt_tokens":0,"completion_tokens":-5)"), kPassing).usage,
            expected);
}

TEST(UsageMeterStream, WithoutUsageTheTextCounts) {
  const Result result = whole(kContent + kContent + kDone, kHiding);
  EXPECT_EQ(result.usage,
            (MeteredUsage{.input_tokens = 7, .output_tokens = 4, .estimated = true}));  // 14 bytes
  EXPECT_TRUE(result.ended);
  EXPECT_EQ(whole(kDone, kPassing).usage, (MeteredUsage{.input_tokens = 7, .estimated = true}));
  for (const char* bad : {"null", "\"x\"", "-1", "[]", "{}", "{\"prompt_tokens\":\"5\"}"}) {
    const std::string stream = kContent + R"(data: {"choices":[],"usage":)" + bad + "}\n\n" + kDone;
    EXPECT_EQ(whole(stream, kPassing).usage.output_tokens, 2) << bad;
    EXPECT_EQ(whole(stream, kPassing).usage.input_tokens, 7) << bad;
  }
}

TEST(UsageMeterStream, AStreamThatBreaksOffCountsTheLargerOfReportedAndDelivered) {
  const std::string text(400, 'x');
  const std::string early =
      R"(data: {"choices":[{"delta":{"content":""}}],"usage":{"prompt_tokens":9,"completion_tokens":1}})"
      "\n\n";
  const std::string more = R"(data: {"choices":[{"delta":{"content":")" + text + "\"}}]}\n\n";
  const MeteredUsage by_text{.input_tokens = 9, .output_tokens = 100, .estimated = true};
  const MeteredUsage as_told{.input_tokens = 9, .output_tokens = 1};
  EXPECT_EQ(whole(early + more, kPassing).usage, by_text);
  EXPECT_EQ(whole(early + more.substr(0, more.size() - 7), kPassing).usage, by_text);
  EXPECT_EQ(whole(early + more + kDone, kPassing).usage, as_told);
  EXPECT_EQ(whole(early, kPassing).usage, as_told);
  // The usage chunk is final, also if the end after it does not come.
  EXPECT_EQ(whole(more + more + more + kUsage, kHiding).usage, kReported);
}

TEST(UsageMeterStream, TheChunkIsHiddenWhereverItStandsAndHoweverItIsWritten) {
  for (const char* chunk :
       {R"(data: {"choices":[],"usage":{"prompt_tokens":1}})",
        R"(data:{"usage":{"completion_tokens":1},"choices":[]})",
        "data:   { \"choices\" : [ ] , \"usage\" : { } }  ",
        "event: message\nid: 7\ndata: {\"choices\":[],\ndata: \"usage\":{}}\nretry: 1",
        "data: {\"ch\\u006fices\":[],\"us\\u0061ge\":{}}",
        "id:1\n: comment\ndata: {\"choices\":[],\"usage\":{}}",
        R"(data: {"usage":{"prompt_tokens":1}})", R"(data: {"choices":null,"usage":{}})",
        R"(data: {"usage":{},"choices":null,"error":null})",
        R"(data: {"choices":[],"usage":{"error":1},"x":{"error":1}})",
        R"(data: {"choices":[],"usage":{"a":[{"choices":[1],"usage":null}]},"x":[1]})"}) {
    const std::string event = std::string(chunk) + "\n\n";
    EXPECT_EQ(whole(event, kHiding).forwarded, "") << chunk;
    EXPECT_EQ(whole(kContent + event + kContent + event + kDone, kHiding).forwarded,
              kContent + kContent + kDone)
        << chunk;
    EXPECT_EQ(whole(kContent + event + kDone, kPassing).forwarded, kContent + event + kDone);
  }
}

TEST(UsageMeterStream, OtherEventsAreNeverHidden) {
  for (const char* event : {R"(data: {"choices":[],"prompt_filter_results":[{}]})",
                            R"(data: {"choices":[],"usage":null})",
                            R"(data: {"choices":null,"choices":null,"usage":{}})",
                            R"(data: {"choices":[],"usage":{},"error":{"message":"overloaded"}})",
                            R"(data: {"error":"overloaded","usage":{}})",
                            R"(data: {"usage":{},"error":[]})",
                            R"(data: {"choices":{},"usage":{}})",
                            R"(data: {"choices":"","usage":{}})",
                            R"(data: {"choices":[{}],"usage":{}})",
                            R"(data: {"choices":[null],"usage":{}})",
                            R"(data: {"choices":[],"usage":[]})",
                            R"(data: {"choices":[],"choices":[1],"usage":{}})",
                            R"(data: {"choices":[1],"choices":[],"usage":{}})",

                            R"(data: {"choices":[],"usage":{},"usage":null})",
                            R"(data: [{"choices":[],"usage":{}}])",
                            R"(data: {"x":{"choices":[],"usage":{}}})",
                            R"(data: {"choices":[],"usage":{}} x)",
                            R"(data: {"choices":[],"usage":{})",
                            R"(data: {"choices":[],"usage":{}}})",
                            R"(datas: {"choices":[],"usage":{}})",
                            R"(dat: {"choices":[],"usage":{}})",
                            R"(Data: {"choices":[],"usage":{}})",
                            R"( data: {"choices":[],"usage":{}})",
                            R"(: {"choices":[],"usage":{}})",
                            R"(data:: {"choices":[],"usage":{}})",
                            R"(event: {"choices":[],"usage":{}})",
                            "data",
                            "data:",
                            "data: ",
                            "data: [DONE]",
                            "data: 1",
                            "data: {}",
                            ": comment",
                            "id: 1",
                            "x",
                            R"(data: {"error":{"message":"overloaded"}})"}) {
    const std::string stream = kContent + event + "\n\n" + kDone;
    EXPECT_EQ(whole(stream, kHiding).forwarded, stream) << event;
    EXPECT_EQ(run(stream, kHiding, {1}).forwarded, stream) << event;
  }
}

TEST(UsageMeterStream, TheNormalEnd) {
  for (const char* end :
       {"data: [DONE]\n\n", "data:[DONE]\r\n\r\n", "event: x\ndata: [DONE]\r\r"}) {
    EXPECT_TRUE(whole(kContent + end, kHiding).ended) << end;
    EXPECT_TRUE(run(kContent + end, kHiding, {1}).ended) << end;
  }
  for (const char* other :
       {"data: [DONE]\n", "data: [DONE]", "data: [DONE] \n\n", "data:  [DONE]\n\n",
        "data: [DONE]x\n\n", "data: [DON\n\n", "data: [DON\ndata: E]\n\n", ": [DONE]\n\n",
        "data: \"[DONE]\"\n\n", "data: [DONE]\ndata: x\n\n", "data\ndata: [DONE]\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"[DONE]\"}}]}\n\n"}) {
    EXPECT_FALSE(whole(kContent + other, kHiding).ended) << other;
    EXPECT_FALSE(run(kContent + other, kHiding, {1}).ended) << other;
  }
}

// Bytes wait only while the event may still turn out to be the chunk.
TEST(UsageMeterStream, BytesGoOnAsEarlyAsPossible) {
  UsageMeter meter(kEvents, kHiding);
  EXPECT_EQ(meter.feed(": waiting"), ": waiting");
  EXPECT_EQ(meter.feed("\n\n"), "\n\n");
  EXPECT_EQ(meter.feed("data: {\"id\":\"c\",\"choices\":["), "");
  EXPECT_EQ(meter.feed("{"), "data: {\"id\":\"c\",\"choices\":[{");
  EXPECT_EQ(meter.feed("\"delta\":"), "\"delta\":");
  EXPECT_EQ(meter.feed("{}}]}\n"), "{}}]}\n");
  EXPECT_EQ(meter.feed("\n"), "\n");
  EXPECT_EQ(meter.feed("data: {\"choices\":"), "");
  EXPECT_EQ(meter.feed("{"), "data: {\"choices\":{");
  EXPECT_EQ(meter.feed("}}\n\n"), "}}\n\n");
  EXPECT_EQ(meter.feed("event: x\nda"), "");
  EXPECT_EQ(meter.feed("ta: ["), "event: x\ndata: [");
  EXPECT_EQ(meter.feed("DONE]\n\n"), "DONE]\n\n");
  EXPECT_EQ(meter.feed("data: {\"choices\":[],\"usage\":"), "");
  EXPECT_EQ(meter.feed("null"), "data: {\"choices\":[],\"usage\":null");
  EXPECT_EQ(meter.feed("}\r\n\r"), "}\r\n\r");
  EXPECT_EQ(meter.feed("\n"), "\n");
  EXPECT_EQ(meter.feed("data: {\"choices\":[],\"usage\":{}}\r\n\r"), "");
  EXPECT_EQ(meter.feed("\n"), "");
  EXPECT_EQ(meter.feed("\n"), "\n");
}

TEST(UsageMeterStream, NothingWaitsForAClientThatAskedItself) {
  UsageMeter meter(kEvents, kPassing);
  const std::string stream = ": x\n\n" + kContent + kUsage + kDone;
  for (const char& byte : stream) {
    const std::string_view piece(&byte, 1);
    const std::string_view out = meter.feed(piece);
    EXPECT_EQ(out.data(), piece.data());
    EXPECT_EQ(out.size(), 1U);
  }
  EXPECT_EQ(meter.usage(), kReported);
}

TEST(UsageMeterStream, WholeEventsAreNotCopied) {
  UsageMeter meter(kEvents, kHiding);
  const std::string two = kContent + kContent;
  EXPECT_EQ(meter.feed(two).data(), two.data());
  const std::string last = kContent + kUsage;  // what is left is one run of the piece
  EXPECT_EQ(meter.feed(last).data(), last.data());
}

TEST(UsageMeterStream, HeldBytesAreBounded) {
  UsageMeterOptions options = kHiding;
  options.max_held_bytes = 100;
  const std::string open = "data: {\"x\":\"" + std::string(80, 'x');
  UsageMeter meter(kEvents, options);
  EXPECT_EQ(meter.feed(open), "");
  EXPECT_EQ(meter.feed("yyyyyyyy"), "");
  EXPECT_EQ(meter.feed("z"), open + "yyyyyyyyz");
  EXPECT_EQ(meter.feed("\",\"choices\":[],\"usage\":{\"prompt_tokens\":5}}\n\n"),
            "\",\"choices\":[],\"usage\":{\"prompt_tokens\":5}}\n\n");
  EXPECT_EQ(meter.usage().input_tokens, 5);
  EXPECT_EQ(meter.feed(kUsage), "");  // the next one is short enough
}

// C14: an event of 5 MB, in pieces, with its usage at the end.
TEST(UsageMeterStream, AHugeEvent) {
  const std::string content(5 * 1024 * 1024, 'x');
  const std::string event = R"(data: {"choices":[{"delta":{"content":")" + content +
                            R"("}}],"usage":{"prompt_tokens":11,"completion_tokens":22}})"
                            "\n\n";
  for (const UsageMeterOptions& options : {kHiding, kPassing}) {
    const Result result = run(event + kDone, options, {1'000, 1, 16 * 1024});
    EXPECT_TRUE(result.forwarded == event + kDone);
    EXPECT_EQ(result.usage, (MeteredUsage{.input_tokens = 11, .output_tokens = 22}));
    EXPECT_TRUE(result.ended);
  }
  // One that stays undecided: it is let through when it exceeds what may be held.
  const std::string undecided = "data: {\"x\":\"" + content + "\",\"choices\":[],\"usage\":{}}\n\n";
  EXPECT_TRUE(run(undecided, kHiding, {1'000}).forwarded == undecided);
}

TEST(UsageMeterStream, WhereAnErrorEventCanFollow) {
  const auto between = [](std::string_view sent, const UsageMeterOptions& options) {
    UsageMeter meter(kEvents, options);
    static_cast<void>(meter.feed(sent));
    return meter.between_events();
  };
  for (const UsageMeterOptions& options : {kHiding, kPassing}) {
    EXPECT_TRUE(between("", options));
    EXPECT_TRUE(between(kContent, options));
    EXPECT_TRUE(between(with_ends(kContent, "\r\n"), options));
    EXPECT_TRUE(between(with_ends(kContent, "\r"), options));
    EXPECT_FALSE(between(kContent.substr(0, kContent.size() - 1), options));
    EXPECT_FALSE(between(kContent + kContent.substr(0, 50), options));
  }
  // What is held back was not sent.
  EXPECT_TRUE(between(kContent + "data: {\"cho", kHiding));
  EXPECT_FALSE(between(kContent + "data: {\"cho", kPassing));
  // Given out at the end, it was.
  EXPECT_FALSE(whole(kContent + "data: {\"cho", kHiding).between);
}

TEST(UsageMeterStream, WhatIsHeldAtTheEnd) {
  const std::string cut = kUsage.substr(0, kUsage.size() - 10);
  EXPECT_EQ(whole(kContent + cut, kHiding).forwarded, kContent + cut);
  // Complete but for its blank line.
  for (const std::size_t missing : {1U, 2U}) {
    const std::string open = kUsage.substr(0, kUsage.size() - missing);
    const Result result = whole(kContent + open, kHiding);
    EXPECT_EQ(result.forwarded, kContent);
    EXPECT_EQ(result.usage, kReported);
  }
}

TEST(UsageMeterStream, AByteOrderMarkIsSkipped) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(whole(mark + kContent + kUsage, kHiding).forwarded, mark + kContent);
  EXPECT_EQ(whole(mark + kUsage + kDone, kPassing).usage, kReported);
  EXPECT_EQ(whole("\xEF\xBB" + kUsage + kDone, kHiding).forwarded, "\xEF\xBB" + kUsage + kDone);
  EXPECT_EQ(whole(kContent + mark + kUsage, kHiding).forwarded, kContent + mark + kUsage);
}

TEST(UsageMeterStream, EventsThatAreNotJsonCountByTheirBytes) {
  EXPECT_EQ(whole("data: hello world\n\n", kPassing).usage.output_tokens, 3);
  EXPECT_EQ(whole("data: {\"token\":\"1234\"}\n\n", kPassing).usage.output_tokens, 4);
  EXPECT_EQ(whole(": hello world\n\nevent: hello\n\n", kPassing).usage.output_tokens, 0);
  EXPECT_EQ(
      whole("data: {\"error\":{\"message\":\"overloaded\"}}\n\n", kPassing).usage.output_tokens, 0);
}

}  // namespace
}  // namespace stint::gateway
