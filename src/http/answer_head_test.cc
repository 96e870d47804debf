#include "http/answer_head.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace stint::http {
namespace {

using std::chrono::seconds;

std::string written(const ResponseHead& head, const AnswerFraming& framing) {
  std::string out;
  append_head(out, head, framing, "now");
  return out;
}

TEST(AnswerHeadTest, LineFieldsAndFraming) {
  ResponseHead head;
  head.status = 429;
  head.fields.add("Retry-After", "1");
  AnswerFraming framing;
  framing.length = 12;
  framing.connection = "close";
  EXPECT_EQ(written(head, framing),
            "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nDate: now\r\n"
            "Content-Length: 12\r\nConnection: close\r\n\r\n");
  head.reason = "Slow Down";
  framing = AnswerFraming();
  framing.chunked = true;
  EXPECT_EQ(written(head, framing),
            "HTTP/1.1 429 Slow Down\r\nRetry-After: 1\r\nDate: now\r\n"
            "Transfer-Encoding: chunked\r\n\r\n");
}

TEST(AnswerHeadTest, LinesFollowTheFields) {
  ResponseHead head;
  head.fields.add("A", "1");
  head.lines = "B: 2\r\nC: 3\r\n";
  EXPECT_EQ(written(head, AnswerFraming()),
            "HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\nC: 3\r\nDate: now\r\n\r\n");
}

TEST(AnswerHeadTest, FramingIsTheServersToWrite) {
  ResponseHead head;
  for (const char* name : {"content-length", "Connection", "KEEP-ALIVE", "Transfer-Encoding"}) {
    head.fields.add(name, "1");
  }
  EXPECT_EQ(written(head, AnswerFraming()), "HTTP/1.1 200 OK\r\nDate: now\r\n\r\n");
}

TEST(AnswerHeadTest, TheHandlersDateStays) {
  ResponseHead head;
  head.fields.add("date", "then");
  EXPECT_EQ(written(head, AnswerFraming()), "HTTP/1.1 200 OK\r\ndate: then\r\n\r\n");
}

TEST(AnswerHeadTest, NothingCanBreakOutOfItsField) {
  ResponseHead head;
  head.reason = "OK\r\nInjected: 1";
  head.fields.add("A", "x\r\nInjected: 1");
  head.fields.add("B\r\nInjected", "1");
  head.fields.add("", "1");
  head.fields.add("C", "fine");
  EXPECT_EQ(written(head, AnswerFraming()), "HTTP/1.1 200 OK\r\nC: fine\r\nDate: now\r\n\r\n");
}

TEST(AnswerHeadTest, Dates) {
  EXPECT_EQ(http_date(TimePoint(seconds{784'111'777})), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(http_date(TimePoint(seconds{1'709'251'199} + Duration{999'999})),
            "Thu, 29 Feb 2024 23:59:59 GMT");
}

TEST(AnswerHeadTest, ErrorBodies) {
  Refusal refusal;
  refusal.code = "bad_request";
  refusal.message = "no";
  EXPECT_EQ(error_body(refusal),
            R"({"error":{"message":"no","type":"invalid_request_error","code":"bad_request"}})");
}

}  // namespace
}  // namespace stint::http
