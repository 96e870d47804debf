// The limiter over a store that answers later, or not at all.
#include "admission/limiter_core.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

#include "admission/deferred_store_testing.h"
#include "admission/wait.h"
#include "base/simulated_clock.h"

namespace stint::admission {
namespace {

using namespace std::chrono_literals;

class LimiterCoreTest : public testing::Test {
 protected:
  void limit(const std::vector<Policy>& policies) {
    core_.emplace(store_, *policy::Table::create(policies), clock_, 3s, entropy_);
  }
  // Asks, lets the store answer, and returns the answer.
  Result<Admission> admit() {
    std::optional<Result<Admission>> answer;
    core_->admit({}, {}, [&](Result<Admission> result) { answer = std::move(result); });
    EXPECT_FALSE(answer);
    store_->complete();
    return std::move(*answer);
  }

  base::SimulatedClock clock_{TimePoint{1'767'312'000s}};
  base::FixedEntropy entropy_;
  std::shared_ptr<DeferredStore> store_ = std::make_shared<DeferredStore>(clock_);
  std::optional<LimiterCore> core_;
};

Policy slots(std::int64_t quota) { return {.id = "slots", .limits = {in_flight(quota)}}; }

TEST_F(LimiterCoreTest, AnswersWhenTheStoreHasAnswered) {
  limit({{.id = "p", .limits = {requests_per(60s, 1)}}});
  auto first = admit();
  EXPECT_TRUE(first->admitted());
  EXPECT_EQ(admit()->decision.outcome, Outcome::refused);
  int settled = 0;
  first->reservation.cancel([&](const Result<void>& result) {
    EXPECT_TRUE(result);
    ++settled;
  });
  EXPECT_FALSE(first->reservation.holds());
  EXPECT_EQ(settled, 0);
  store_->complete();
  EXPECT_EQ(settled, 1);
  EXPECT_TRUE(admit()->admitted());
  store_->complete();  // its release
}

TEST_F(LimiterCoreTest, ABadCostIsAnsweredAtOnceWithoutTheStore) {
  limit({slots(1)});
  bool answered = false;
  core_->admit({}, {.requests = -1}, [&](const Result<Admission>& result) {
    EXPECT_EQ(result.error().field, "cost.requests");
    answered = true;
  });
  EXPECT_TRUE(answered);
  EXPECT_EQ(store_->pending(), 0U);
}

TEST_F(LimiterCoreTest, AStoreThatCannotAnswerLeavesItUndecidedNotAdmitted) {
  limit({slots(1)});
  store_->down = true;
  const auto undecided = admit();
  EXPECT_EQ(undecided->decision.outcome, Outcome::undecided);
  EXPECT_EQ(undecided->decision.error.code, ErrorCode::unavailable);
  EXPECT_FALSE(undecided->reservation.holds());
  EXPECT_TRUE(undecided->decision.limits.empty());
  EXPECT_EQ(core_->stats().undecided, 1U);
  EXPECT_EQ(core_->stats().held, 0U);
}

TEST_F(LimiterCoreTest, ASettlementWhoseOutcomeIsUnknownIsNotSentAgain) {
  limit({slots(1)});
  auto admission = admit();
  store_->down = true;
  std::optional<Result<void>> result;
  admission->reservation.commit({}, [&](Result<void> settled) { result = std::move(settled); });
  store_->complete();
  EXPECT_EQ(result->error().code, ErrorCode::unavailable);
  EXPECT_FALSE(admission->reservation.holds());
  EXPECT_EQ(store_->pending(), 0U);
}

// Answers each call on a thread made for it.
class OtherThreadStore final : public DeferredStore {
 public:
  using DeferredStore::DeferredStore;

  void acquire(store::AdmissionRecord& record, store::Done done) override {
    DeferredStore::acquire(record, std::move(done));
    threads_.emplace_back([this] { complete(); });
  }
  void settle(store::AdmissionRecord& record, store::Settled done) override {
    DeferredStore::settle(record, std::move(done));
    threads_.emplace_back([this] { complete(); });
  }

 private:
  std::vector<std::jthread> threads_;
};

TEST_F(LimiterCoreTest, TheCallsWithoutACallbackWaitForAnAnswerFromAnotherThread) {
  store_ = std::make_shared<OtherThreadStore>(clock_);
  limit({slots(1)});
  for (int i = 0; i < 20; ++i) {
    auto first = core_->admit({}, {});
    ASSERT_TRUE(first->admitted());
    EXPECT_EQ(core_->admit({}, {})->decision.outcome, Outcome::refused);
    EXPECT_TRUE(first->reservation.commit());
  }
}

}  // namespace
}  // namespace stint::admission
