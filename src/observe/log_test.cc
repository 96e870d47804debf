#include "observe/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <limits>
#include <memory>
#include <sstream>
#include <string>

#include "base/utf8.h"

namespace stint::observe {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

struct Written {
  explicit Written(LogOptions options)
      : log(std::move(options), std::make_shared<spdlog::sinks::ostream_sink_mt>(out)) {}

  // The lines since the last call.
  std::string take() {
    std::string text = out.str();
    out.str("");
    return text;
  }

  std::ostringstream out;
  Log log;
};

constexpr const char* kTime = "....-..-..T..:..:...[0-9][0-9][0-9]Z";

TEST(Log, TextLine) {
  Written written({});
  written.log.warn("the store is away", {{"shard", "a"},
                                         {"errors", std::int64_t{3}},
                                         {"rate", 0.25},
                                         {"open", true},
                                         {"why", "timed out"},
                                         {"empty", ""},
                                         {"quoted", "a\"b\\c=d"}});
  const std::string line = written.take();
  EXPECT_THAT(line, MatchesRegex(std::string(kTime) + " warn  the store is away shard=a.*\n"));
  EXPECT_THAT(line, EndsWith(" shard=a errors=3 rate=0.25 open=true why=\"timed out\" empty=\"\" "
                             "quoted=\"a\\\"b\\\\c=d\"\n"));
}

TEST(Log, JsonLine) {
  Written written({.format = LogFormat::json, .service_name = "stint"});
  written.log.error("a \"quoted\" message", {{"errors", std::int64_t{-3}},
                                             {"ratio", std::numeric_limits<double>::quiet_NaN()},
                                             {"open", false},
                                             {"why", "a\tb"}});
  const std::string line = written.take();
  EXPECT_THAT(line,
              MatchesRegex("\\{\"time\":\"" + std::string(kTime) + "\",\"level\":\"error\".*"));
  EXPECT_THAT(line,
              EndsWith("\"level\":\"error\",\"service\":\"stint\",\"message\":\"a \\\"quoted\\\" "
                       "message\",\"errors\":-3,\"ratio\":null,\"open\":false,"
                       "\"why\":\"a\\u0009b\"}\n"));
}

TEST(Log, RequestsCannotForgeLines) {
  for (const LogFormat format : {LogFormat::text, LogFormat::json}) {
    Written written({.format = format});
    written.log.info("a\nb", {{"path", "x\r\n2026-01-02T00:00:00.000Z info forged"},
                              {"escape", "\x1B[2J\x7F\xC2\x9B"},
                              {"bytes", "\xFF\xC3\xED\xA0\x80"},
                              {"fine", "caf\u00e9\u26a1"}});
    const std::string line = written.take();
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
    EXPECT_THAT(line, HasSubstr("a\\nb"));
    EXPECT_THAT(line, HasSubstr("x\\u000d\\n2026"));
    EXPECT_THAT(line, HasSubstr("\\u001b[2J\\u007f\\u009b"));
    EXPECT_THAT(line, HasSubstr("caf\u00e9\u26a1"));
    EXPECT_TRUE(base::is_utf8(line));
  }
}

TEST(Log, LevelsCanChange) {
  Written written({.level = LogLevel::warn});
  written.log.info("no");
  EXPECT_EQ(written.take(), "");
  EXPECT_FALSE(written.log.enabled(LogLevel::info));
  written.log.set_level(LogLevel::trace);
  written.log.write(LogLevel::trace, "yes");
  EXPECT_THAT(written.take(), HasSubstr(" trace yes\n"));
  written.log.set_level(LogLevel::off);
  written.log.error("no");
  written.log.write(LogLevel::off, "no");
  EXPECT_EQ(written.take(), "");
}

TEST(Log, LevelNames) {
  EXPECT_EQ(parse_log_level("trace"), LogLevel::trace);
  EXPECT_EQ(parse_log_level("warn"), LogLevel::warn);
  EXPECT_EQ(parse_log_level("off"), LogLevel::off);
  EXPECT_EQ(parse_log_level("WARN"), std::nullopt);
  EXPECT_EQ(parse_log_level(""), std::nullopt);
}

TEST(Log, AccessLine) {
  Written written({.level = LogLevel::error});  // has no say in it
  AccessRecord record{.method = "POST",
                      .route = "/v1/chat/completions",
                      .status = 200,
                      .duration = 1234us,
                      .bytes_in = 10,
                      .bytes_out = 20,
                      .input_tokens = 3,
                      .output_tokens = 4,
                      .estimated = true,
                      .request_id = "r-1",
                      .client = "203.0.113.7",
                      .api_key = "demo",
                      .model = "small"};
  written.log.access(record);
  EXPECT_THAT(written.take(),
              EndsWith(" info  request method=POST route=/v1/chat/completions status=200 "
                       "duration_ms=1.234 bytes_in=10 bytes_out=20 input_tokens=3 output_tokens=4 "
                       "estimated=true client=203.0.113.7 api_key=demo model=small "
                       "request_id=r-1\n"));
  record = {.method = "GET", .route = "api", .status = 429, .refused_by = "per client"};
  written.log.access(record);
  const std::string refused = written.take();
  EXPECT_THAT(refused, HasSubstr(" refused_by=\"per client\""));
  EXPECT_THAT(refused, Not(HasSubstr("tokens")));
}

TEST(Log, AccessLineHasTheStartOfThePath) {
  Written written({});
  written.log.access({.method = "GET", .route = "none", .path = "/a=b", .status = 404});
  EXPECT_THAT(written.take(), HasSubstr(" route=none path=\"/a=b\" status=404 "));
  const std::string path = "/" + std::string(1'000, 'x');
  written.log.access({.method = "GET", .route = "none", .path = path, .status = 404});
  EXPECT_THAT(written.take(), HasSubstr(" path=/" + std::string(255, 'x') + " status=404 "));
  // Of what could not be read there is no method and no path.
  written.log.access({.route = "none", .status = 400, .client = "203.0.113.7"});
  EXPECT_THAT(written.take(), HasSubstr(" request route=none status=400 "));
}

TEST(Log, AccessLogOff) {
  Written written({.access_log = false});
  EXPECT_FALSE(written.log.access_log());
  written.log.access({});
  EXPECT_EQ(written.take(), "");

  Written off({.level = LogLevel::off});
  off.log.access({});
  EXPECT_EQ(off.take(), "");
}

TEST(OncePer, OnePerIntervalAndHowManyWereKeptBack) {
  OncePer limiter(10s);
  EXPECT_EQ(limiter.admit(0s), 0U);
  EXPECT_EQ(limiter.admit(1s), std::nullopt);
  EXPECT_EQ(limiter.admit(9'999'999us), std::nullopt);
  EXPECT_EQ(limiter.admit(10s), 2U);
  EXPECT_EQ(limiter.admit(1h), 0U);
  EXPECT_EQ(limiter.admit(5s), std::nullopt);  // a late thread
}

TEST(Utf8, Characters) {
  EXPECT_EQ(base::utf8_character(""), 0U);
  EXPECT_EQ(base::utf8_character("ab"), 1U);
  EXPECT_EQ(base::utf8_character("\u00e9x"), 2U);
  EXPECT_EQ(base::utf8_character("\u26a1x"), 3U);
  EXPECT_EQ(base::utf8_character("\U0001F600x"), 4U);
  for (const char* bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xE2\x9A", "\xF0\x9F\x98", "\xC3x"}) {
    EXPECT_EQ(base::utf8_character(bad), 0U) << bad;
  }
  EXPECT_TRUE(base::is_utf8("caf\u00e9"));
  EXPECT_FALSE(base::is_utf8("caf\xE9"));
}

}  // namespace
}  // namespace stint::observe
