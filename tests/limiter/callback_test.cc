// The forms with a callback: answered before they return, as counters in this process can.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "fixture.h"

namespace stint::test {
namespace {

class CallbackTest : public LimiterTest {
 protected:
  [[nodiscard]] Limiter& limiter() { return *limiter_; }
};

TEST_F(CallbackTest, AdmitAndPeekAnswerOnceBeforeTheyReturn) {
  limit({{.id = "p", .group_by = {"api_key"}, .limits = {requests_per(60s, 1)}}});
  std::vector<Outcome> outcomes;
  std::optional<Reservation> reservation;
  const auto admit_one = [&] {
    limiter().admit(of_key("k"), {}, [&](Result<Admission> admission) {
      outcomes.push_back(admission->decision.outcome);
      if (admission->admitted()) reservation.emplace(std::move(admission->reservation));
    });
  };
  const auto peek_one = [&] {
    limiter().peek(of_key("k"), {}, [&](const Result<Decision>& decision) {
      outcomes.push_back(decision->outcome);
    });
  };
  peek_one();
  admit_one();
  admit_one();
  peek_one();
  EXPECT_EQ(outcomes, (std::vector{Outcome::admitted, Outcome::admitted, Outcome::refused,
                                   Outcome::refused}));
  int settled = 0;
  reservation->cancel([&](const Result<void>& result) { settled += result ? 1 : 100; });
  EXPECT_EQ(settled, 1);
  admit_one();
  EXPECT_EQ(outcomes.back(), Outcome::admitted);
}

TEST_F(CallbackTest, ErrorsComeThroughTheCallback) {
  limit({{.id = "p", .limits = {requests_per(60s, 1)}}});
  std::vector<std::string> fields;
  limiter().admit({}, {.requests = -1}, [&](const Result<Admission>& admission) {
    fields.push_back(admission.error().field);
  });
  limiter().peek({}, {.input_tokens = -1}, [&](const Result<Decision>& decision) {
    fields.push_back(decision.error().field);
  });
  limiter().list("*", 0, 0,
                 [&](const Result<BucketPage>& page) { fields.push_back(page.error().field); });
  EXPECT_EQ(fields, (std::vector<std::string>{"cost.requests", "cost.input_tokens", "page_size"}));
}

// Many pages: each asks for the next one without the stack growing.
TEST_F(CallbackTest, ResetAndListSeeAllBuckets) {
  constexpr int kBuckets = 50'000;
  limit({{.id = "p", .group_by = {"api_key"}, .limits = {requests_per(60s, 1)}}});
  for (int i = 0; i < kBuckets; ++i) (void)admitted("k" + std::to_string(i));
  std::size_t listed = 0;
  std::uint64_t cursor = 0;
  do {
    limiter().list("p:*", cursor, 1000, [&](const Result<BucketPage>& page) {
      listed += page->buckets.size();
      cursor = page->next;
    });
  } while (cursor != 0);
  EXPECT_EQ(listed, std::size_t{kBuckets});
  int answers = 0;
  limiter().reset("p:api_key=k1*", [&](const ResetSummary& summary) {
    EXPECT_EQ(summary.removed, 11'111U);  // k1, k1?, k1??, k1???, k1????
    EXPECT_TRUE(summary.unreached.empty());
    ++answers;
  });
  EXPECT_EQ(answers, 1);
  EXPECT_EQ(limiter().reset("*").removed, std::size_t{kBuckets} - 11'111U);
}

}  // namespace
}  // namespace stint::test
