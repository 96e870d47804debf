#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "stint/limit.h"

namespace stint {
namespace {

using namespace std::chrono_literals;
using std::chrono::days;

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();

template <class T>
std::string fault(const Result<T>& result) {
  if (result) return "accepted";
  EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(result.error().message.empty());
  return result.error().field;
}

TEST(ParseDuration, ReadsOneWholeNumberAndOneUnit) {
  EXPECT_EQ(parse_duration("250ms"), Duration{250'000});
  EXPECT_EQ(parse_duration("10s"), Duration{10s});
  EXPECT_EQ(parse_duration("5m"), Duration{5min});
  EXPECT_EQ(parse_duration("1h"), Duration{1h});
  EXPECT_EQ(parse_duration("366d"), Duration{days{366}});
}

TEST(ParseDuration, RefusesAnythingElse) {
  for (const char* text :
       {"",    "s",   "ms",  "10", "0s",   "0",     "010s", "-1s", "+1s",   "1.5s",   "1e3s",
        " 1s", "1s ", "1 s", "1S", "1sec", "1h30m", "1w",   "1us", "0x10s", "1_000s", "infinite"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(ParseDuration, RefusesWhatDoesNotFit) {
  EXPECT_EQ(parse_duration("106751991d"), Duration{days{106'751'991}});
  EXPECT_FALSE(parse_duration("106751992d"));
  EXPECT_FALSE(parse_duration("9223372036854775807ms"));
  EXPECT_FALSE(parse_duration("9223372036854775808ms"));
  EXPECT_FALSE(parse_duration("99999999999999999999999s"));
}

TEST(ParseNames, ReadBackWhatTheyPrint) {
  for (int i = 0; i < 5; ++i) {
    const auto unit = static_cast<Unit>(i);
    EXPECT_EQ(parse_unit(to_string(unit)), unit);
    const auto algorithm = static_cast<Algorithm>(i);
    EXPECT_EQ(parse_algorithm(to_string(algorithm)), algorithm);
  }
  EXPECT_EQ(to_string(Unit::input_tokens), "input_tokens");
  EXPECT_EQ(to_string(Algorithm::sliding_log), "sliding_log");
}

TEST(ParseNames, RefuseWhatTheyDoNotKnow) {
  for (const char* text : {"", "request", "Requests", " requests", "unknown"}) {
    EXPECT_EQ(fault(parse_unit(text)), "unit");
    EXPECT_EQ(fault(parse_algorithm(text)), "algorithm");
  }
  EXPECT_EQ(to_string(static_cast<Unit>(99)), "unknown");
  EXPECT_EQ(to_string(static_cast<Algorithm>(99)), "unknown");
}

TEST(ExpandShortLimits, GivesEachFieldItsWindow) {
  const auto limits = expand({.rps = 1,
                              .rpm = 2,
                              .rph = 3,
                              .rpd = 4,
                              .tps = 5,
                              .tpm = 6,
                              .tph = 7,
                              .tpd = 8,
                              .concurrency = 9});
  ASSERT_TRUE(limits);
  EXPECT_EQ(*limits,
            (std::vector<Limit>{requests_per(1s, 1), requests_per(60s, 2), requests_per(3'600s, 3),
                                requests_per(86'400s, 4), tokens_per(1s, 5), tokens_per(60s, 6),
                                tokens_per(3'600s, 7), tokens_per(86'400s, 8), in_flight(9)}));
}

TEST(ExpandShortLimits, LeavesOutWhatIsNotGiven) {
  EXPECT_EQ(expand(ShortLimits{})->size(), 0U);
  ShortLimits limits;
  limits.tpm = 0;
  EXPECT_EQ(expand(limits).value(), (std::vector<Limit>{tokens_per(60s, 0)}));
}

TEST(ExpandShortLimits, NamesTheFieldAtFault) {
  ShortLimits limits;
  limits.rpm = 5;
  limits.tph = -1;
  EXPECT_EQ(fault(expand(limits)), "tph");
  limits.tph = kMaxInt;
  EXPECT_EQ(fault(expand(limits)), "tph");
  limits.tph.reset();
  limits.concurrency = -1;
  EXPECT_EQ(fault(expand(limits)), "concurrency");
}

LimitEntry entry(std::string unit, std::optional<std::int64_t> quota, std::string per,
                 std::string algorithm = "") {
  LimitEntry result;
  result.unit = std::move(unit);
  result.quota = quota;
  result.per = std::move(per);
  result.algorithm = std::move(algorithm);
  return result;
}

LimitEntry refilled(std::optional<std::int64_t> capacity, std::string rate) {
  LimitEntry result;
  result.unit = "requests";
  result.capacity = capacity;
  result.refill_rate = std::move(rate);
  return result;
}

TEST(ParseLimit, IsAFixedWindowUnlessAnotherAlgorithmIsNamed) {
  EXPECT_EQ(parse(entry("requests", 60, "1m")), requests_per(60s, 60));
  EXPECT_EQ(parse(entry("tokens", 60, "1d")), tokens_per(days{1}, 60));
  EXPECT_EQ(parse(entry("requests", 60, "1m", "sliding_log")),
            requests_per(60s, 60, Algorithm::sliding_log));
  EXPECT_EQ(parse(entry("concurrency", 3, "")), in_flight(3));
  EXPECT_EQ(parse(entry("concurrency", 3, "", "concurrency")), in_flight(3));
}

TEST(ParseLimit, TakesABurstOfATokenBucketOnly) {
  LimitEntry bucket = entry("requests", 60, "1m", "token_bucket");
  bucket.burst = 100;
  Limit expected = requests_per(60s, 60, Algorithm::token_bucket);
  expected.burst = 100;
  EXPECT_EQ(parse(bucket), expected);
  LimitEntry window = entry("requests", 60, "1m");
  window.burst = 100;
  EXPECT_EQ(fault(parse(window)), "burst");
}

TEST(ParseLimit, NamesWhatIsMissingOrWrong) {
  EXPECT_EQ(fault(parse(entry("", 5, "1s"))), "unit");
  EXPECT_EQ(fault(parse(entry("requests", std::nullopt, "1s"))), "quota");
  EXPECT_EQ(fault(parse(entry("requests", 5, ""))), "per");
  EXPECT_EQ(fault(parse(entry("requests", 5, "0s"))), "per");
  EXPECT_EQ(fault(parse(entry("requests", 5, "367d"))), "per");
  EXPECT_EQ(fault(parse(entry("requests", 5, "10"))), "per");
  EXPECT_EQ(fault(parse(entry("requests", -1, "1s"))), "quota");
  EXPECT_EQ(fault(parse(entry("requests", kMaxInt, "1s"))), "quota");
  EXPECT_EQ(fault(parse(entry("requests", 5, "1s", "leaky"))), "algorithm");
  EXPECT_EQ(fault(parse(entry("tokens", 5, "1s", "sliding_log"))), "algorithm");
  EXPECT_EQ(fault(parse(entry("requests", 5, "1s", "concurrency"))), "algorithm");
  EXPECT_EQ(fault(parse(entry("concurrency", 5, "1s"))), "per");
  EXPECT_EQ(fault(parse(entry("concurrency", 5, "", "fixed_window"))), "algorithm");
  EXPECT_EQ(fault(parse(entry("concurrency", -1, ""))), "quota");
}

TEST(ParseLimit, ReadsARefillRateAsAWholeQuotaPerPowerOfTen) {
  struct Case {
    const char* rate;
    std::int64_t quota;
    Duration window;
  };
  for (const auto& [rate, quota, window] :
       {Case{"20", 20, 1s}, Case{"0.5", 5, 10s}, Case{"1.50", 15, 10s}, Case{"0.25", 25, 100s},
        Case{"7.0", 7, 1s}, Case{"0.000001", 1, 1'000'000s}, Case{"0", 0, 1s}, Case{"0.0", 0, 1s},
        Case{"0.333333", 333'333, 1'000'000s}, Case{"1000000", 1'000'000, 1s}}) {
    Limit expected = requests_per(window, quota, Algorithm::token_bucket);
    expected.burst = 10;
    EXPECT_EQ(parse(refilled(10, rate)), expected) << rate;
  }
}

TEST(ParseLimit, RefusesARefillRateThatIsNoPlainDecimal) {
  for (const char* rate : {"-1", "+1", ".5", "5.", "1.2.3", "1e3", "010", "00.5", " 1", "1 ", "0x1",
                           "nan", "1,5", "1/s", "0.0000001", "99999999999999999999",
                           "9223372036854.775808", "9007199254740992", "."}) {
    EXPECT_EQ(fault(parse(refilled(10, rate))), "refill_rate") << rate;
  }
}

TEST(ParseLimit, TakesOneFormOrTheOther) {
  EXPECT_EQ(fault(parse(refilled(std::nullopt, "5"))), "capacity");
  EXPECT_EQ(fault(parse(refilled(5, ""))), "refill_rate");
  EXPECT_EQ(fault(parse(refilled(-5, "5"))), "capacity");
  EXPECT_EQ(fault(parse(refilled(kMaxInt, "5"))), "capacity");
  LimitEntry both = refilled(5, "5");
  both.quota = 5;
  EXPECT_EQ(fault(parse(both)), "quota");
  both = refilled(5, "5");
  both.per = "1s";
  EXPECT_EQ(fault(parse(both)), "per");
  both = refilled(5, "5");
  both.burst = 5;
  EXPECT_EQ(fault(parse(both)), "burst");
  both = refilled(5, "5");
  both.algorithm = "fixed_window";
  EXPECT_EQ(fault(parse(both)), "algorithm");
  both = refilled(5, "5");
  both.unit = "concurrency";
  EXPECT_EQ(fault(parse(both)), "algorithm");
}

}  // namespace
}  // namespace stint
