#include "net/deadline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace stint::net {
namespace {

using std::chrono::seconds;

class DeadlineTest : public testing::Test {
 protected:
  std::unique_ptr<Deadline> make(std::string name) {
    return std::make_unique<Deadline>(queue_, [this, name] { fired_.push_back(name); });
  }

  int changes_ = 0;
  std::vector<std::string> fired_;
  DeadlineQueue queue_{[this] { ++changes_; }};
};

TEST_F(DeadlineTest, FiresWhatIsDueOnceAndInOrder) {
  const auto a = make("a");
  const auto b = make("b");
  const auto c = make("c");
  b->arm(seconds{2});
  a->arm(seconds{1});
  c->arm(seconds{3});
  EXPECT_EQ(queue_.next(), seconds{1});
  queue_.fire(seconds{2} - Duration{1});
  EXPECT_EQ(fired_, std::vector<std::string>({"a"}));
  queue_.fire(seconds{2});
  EXPECT_EQ(fired_, std::vector<std::string>({"a", "b"}));
  EXPECT_FALSE(b->armed());
  queue_.fire(seconds{2});
  EXPECT_EQ(fired_.size(), 2U);
  EXPECT_EQ(queue_.next(), seconds{3});
}

TEST_F(DeadlineTest, ALaterDeadlineIsNotMovedUntilItComesUp) {
  const auto a = make("a");
  a->arm(seconds{1});
  a->arm(seconds{10});
  EXPECT_EQ(queue_.next(), seconds{1});
  EXPECT_EQ(changes_, 1);
  queue_.fire(seconds{1});
  EXPECT_TRUE(fired_.empty());
  EXPECT_EQ(queue_.next(), seconds{10});
  queue_.fire(seconds{10});
  EXPECT_EQ(fired_.size(), 1U);
}

TEST_F(DeadlineTest, AnEarlierDeadlineIsMovedAtOnce) {
  const auto a = make("a");
  const auto b = make("b");
  a->arm(seconds{10});
  b->arm(seconds{5});
  a->arm(seconds{1});
  EXPECT_EQ(queue_.next(), seconds{1});
  EXPECT_EQ(changes_, 3);
}

TEST_F(DeadlineTest, ADisarmedOneLeavesWhenItsTimeComes) {
  const auto a = make("a");
  a->arm(seconds{1});
  a->disarm();
  EXPECT_EQ(queue_.size(), 1U);
  queue_.fire(seconds{1});
  EXPECT_TRUE(fired_.empty());
  EXPECT_EQ(queue_.size(), 0U);
  EXPECT_FALSE(queue_.next().has_value());
}

TEST_F(DeadlineTest, TellsWhenNothingIsLeft) {
  auto a = make("a");
  a->arm(seconds{1});
  const int before = changes_;
  a.reset();
  EXPECT_EQ(changes_, before + 1);
  EXPECT_EQ(queue_.size(), 0U);
}

TEST_F(DeadlineTest, MayBeArmedOrDestroyedWhenItFires) {
  std::unique_ptr<Deadline> again;
  int times = 0;
  again = std::make_unique<Deadline>(queue_, [&] {
    if (++times == 1) {
      again->arm(seconds{5});
    } else {
      again.reset();
    }
  });
  again->arm(seconds{1});
  queue_.fire(seconds{1});
  EXPECT_EQ(queue_.next(), seconds{5});
  queue_.fire(seconds{5});
  EXPECT_EQ(times, 2);
  EXPECT_EQ(queue_.size(), 0U);
}

// Against the obvious: a list that is searched.
TEST_F(DeadlineTest, AgreesWithAPlainListOverRandomHistories) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  struct Expected {
    Duration due = Duration::max();
  };
  std::vector<Expected> expected(20);
  std::vector<std::unique_ptr<Deadline>> deadlines;
  std::vector<std::size_t> fired;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    deadlines.push_back(std::make_unique<Deadline>(queue_, [&fired, i] { fired.push_back(i); }));
  }
  Duration now{0};
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t i = random() % expected.size();
    switch (random() % 4) {
      case 0:
      case 1: {
        const Duration due = now + Duration{1 + random() % 100};
        deadlines[i]->arm(due);
        expected[i].due = due;
        break;
      }
      case 2:
        deadlines[i]->disarm();
        expected[i].due = Duration::max();
        break;
      default: {
        now += Duration{random() % 30};
        fired.clear();
        queue_.fire(now);
        std::ranges::sort(fired);
        std::vector<std::size_t> due;
        for (std::size_t k = 0; k < expected.size(); ++k) {
          if (expected[k].due > now) continue;
          due.push_back(k);
          expected[k].due = Duration::max();
        }
        ASSERT_EQ(fired, due) << "step " << step << ", seed " << kSeed;
      }
    }
    // The next time to fire is never after the earliest deadline.
    const auto earliest = std::ranges::min(expected, {}, &Expected::due).due;
    if (earliest != Duration::max()) {
      ASSERT_TRUE(queue_.next().has_value());
      ASSERT_LE(*queue_.next(), earliest);
    }
  }
}

}  // namespace
}  // namespace stint::net
