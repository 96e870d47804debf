// The limiter over a store that answers later, or not at all.
#include "admission/limiter_core.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
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

TEST_F(LimiterCoreTest, WhereNoPolicyAppliesTheStoreIsNotAsked) {
  limit({{.id = "p",
          .conditions = {Condition::equal("team", "red")},
          .limits = {requests_per(60s, 1)}}});
  int answers = 0;
  core_->admit({}, {}, [&](Result<Admission> admission) {
    EXPECT_TRUE(admission->admitted());
    EXPECT_TRUE(admission->reservation.holds());
    admission->reservation.commit({}, [&](const Result<void>& settled) {
      EXPECT_TRUE(settled);
      ++answers;
    });
    ++answers;
  });
  core_->peek({}, {}, [&](const Result<Decision>& decision) {
    EXPECT_TRUE(decision->admitted());
    ++answers;
  });
  EXPECT_EQ(answers, 3);
  EXPECT_EQ(store_->pending(), 0U);
  EXPECT_EQ(core_->stats().admitted, 1U);
}

// A store that has to send what it is asked looks at it at the last moment.
TEST_F(LimiterCoreTest, AnAdmissionThatNobodyWaitsForIsMarkedForTheStore) {
  limit({slots(1)});
  std::atomic<bool> cancelled = false;
  std::optional<Result<Admission>> answer;
  core_->admit({}, {}, [&](Result<Admission> result) { answer = std::move(result); }, &cancelled);
  ASSERT_NE(store_->last, nullptr);
  EXPECT_EQ(store_->last->cancelled, &cancelled);
  store_->complete();
  // It was carried out all the same: whoever asked gives it back.
  ASSERT_TRUE((*answer)->admitted());
  EXPECT_EQ(store_->last->cancelled, nullptr);
  (*answer)->reservation.cancel([](const Result<void>&) {});
  store_->complete();
}

TEST_F(LimiterCoreTest, AttributesMayEndBeforeTheAnswer) {
  limit({{.id = "p", .group_by = {"team"}, .limits = {requests_per(60s, 1)}}});
  std::vector<Outcome> outcomes;
  const auto admit_team = [&](std::string team) {
    Attributes attributes;
    attributes.set(Dimension::team, team);
    core_->admit(attributes, {}, [&](const Result<Admission>& admission) {
      outcomes.push_back(admission->decision.outcome);
    });
    team.assign(team.size(), 'x');
  };
  for (const char* team : {"red and long enough for the heap", "blue", "blue"}) admit_team(team);
  for (int i = 0; i < 3; ++i) store_->complete();
  EXPECT_EQ(outcomes, (std::vector{Outcome::admitted, Outcome::admitted, Outcome::refused}));
  while (store_->pending() > 0) store_->complete();  // what was not kept is released
}

// Pages of one bucket each, every other one answered later.
class PagedStore final : public DeferredStore {
 public:
  using DeferredStore::DeferredStore;

  std::size_t pages = 0;
  void reset(std::string_view pattern, std::uint64_t cursor, store::ResetPage& page,
             store::Done done) override {
    EXPECT_EQ(pattern, "p*");
    EXPECT_EQ(cursor, pages);
    page = {.removed = 1, .next = ++pages == 9 ? 0 : pages};
    if (pages == 3) page = {.next = pages, .unreached = {{"b", "gone"}}};
    if (pages % 2 == 0) return done();
    later_ = std::move(done);
  }
  bool answer_page() {
    if (!later_) return false;
    std::exchange(later_, nullptr)();
    return true;
  }

 private:
  store::Done later_;
};

TEST_F(LimiterCoreTest, AResetGoesOnFromPageToPage) {
  auto paged = std::make_shared<PagedStore>(clock_);
  store_ = paged;
  limit({slots(1)});
  std::optional<ResetSummary> summary;
  core_->reset("p*", [&](ResetSummary made) { summary = std::move(made); });
  int rounds = 0;
  while (paged->answer_page()) ++rounds;
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->removed, 8U);
  ASSERT_EQ(summary->unreached.size(), 1U);
  EXPECT_EQ(summary->unreached[0].where, "b");
  EXPECT_EQ(summary->unreached[0].why, "gone");
  EXPECT_EQ(rounds, 5);
}

TEST_F(LimiterCoreTest, LeasesAreRenewedByTheTimerAlone) {
  limit({slots(1)});
  auto admission = admit();
  for (int ninth = 1; ninth <= 27; ++ninth) {
    clock_.advance(Duration(3s) / 9);
    core_->renew_leases();
    if (store_->pending() > 0) store_->complete();
  }
  EXPECT_GE(store_->renewals, 6U);
  EXPECT_LE(store_->renewals, 9U);
  // Nobody had to ask for a slot, and it is still the first one's.
  EXPECT_EQ(admit()->decision.outcome, Outcome::refused);
  admission->reservation.release([](const Result<void>&) {});
  while (store_->pending() > 0) store_->complete();
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
