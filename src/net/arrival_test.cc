#include "net/arrival.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "net/loop_testing.h"

namespace stint::net {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

Task<> wait_and_note(Arrival& arrival, Duration span, std::optional<bool>& there) {
  const auto result = co_await arrival.wait(span);
  there = result;
}

class ArrivalTest : public testing::Test {
 protected:
  EventLoop loop_;
  TaskGroup tasks_{loop_};
  std::optional<bool> there_;
};

TEST_F(ArrivalTest, ASignalThatCameFirstIsNotLost) {
  Arrival arrival(loop_);
  loop_.post([signal = arrival.signal()]() mutable { signal(); });
  loop_.run();
  tasks_.start(wait_and_note(arrival, hours(1), there_));
  loop_.run();
  EXPECT_EQ(there_, true);
}

TEST_F(ArrivalTest, ASignalOnTheLoopEndsTheWait) {
  Arrival arrival(loop_);
  tasks_.start(wait_and_note(arrival, hours(1), there_));
  loop_.post([signal = arrival.signal()]() mutable { signal(); });
  run_until_empty(loop_, tasks_);
  EXPECT_EQ(there_, true);
}

TEST_F(ArrivalTest, AWaitHasAnEnd) {
  Arrival arrival(loop_);
  tasks_.start(wait_and_note(arrival, milliseconds(1), there_));
  loop_.run();
  EXPECT_EQ(there_, false);
}

TEST_F(ArrivalTest, CancellationEndsTheWait) {
  Arrival arrival(loop_);
  tasks_.start(wait_and_note(arrival, hours(1), there_));
  loop_.post([this] { tasks_.cancel_all(); });
  run_until_empty(loop_, tasks_);
  EXPECT_EQ(there_, false);
}

TEST_F(ArrivalTest, ASignalForSomebodyWhoIsGoneDoesNothing) {
  std::move_only_function<void()> signal;
  {
    Arrival arrival(loop_);
    signal = arrival.signal();
    tasks_.start(wait_and_note(arrival, milliseconds(1), there_));
    loop_.run();
  }
  signal();  // not on the loop's thread as far as it knows: it is posted
  loop_.run();
  EXPECT_EQ(there_, false);
}

TEST(ArrivalThreads, ASignalComesFromAnyThread) {
  LoopThread thread;
  for (int i = 0; i < 200; ++i) {
    std::atomic<bool> there = false;
    std::thread other;
    const auto body = [](EventLoop& loop, std::thread& by, std::atomic<bool>& seen) -> Task<> {
      Arrival arrival(loop);
      by = std::thread([signal = arrival.signal()]() mutable { signal(); });
      const auto result = co_await arrival.wait(hours(1));
      seen = result;
    };
    thread.finish([&] { return body(thread.loop(), other, there); });
    other.join();
    EXPECT_TRUE(there);
  }
}

}  // namespace
}  // namespace stint::net
