#include "net/event_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "net/loop_testing.h"

namespace stint::net {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

Task<> wait_and_note(EventLoop& loop, Duration span, std::optional<bool>& passed) {
  const auto result = co_await loop.wait_for(span);
  passed = result;
}

TEST(EventLoopTest, RunReturnsWhenNothingIsLeft) {
  EventLoop loop;
  loop.run();
  int calls = 0;
  loop.post([&] { ++calls; });
  loop.run();
  loop.post([&] { ++calls; });
  loop.run();
  EXPECT_EQ(calls, 2);
}

TEST(EventLoopTest, AStopThatComesFirstIsNotLost) {
  EventLoop loop;
  int calls = 0;
  loop.post([&] { ++calls; });
  loop.stop();
  loop.run();
  EXPECT_EQ(calls, 0);
  loop.run();
  EXPECT_EQ(calls, 1);
}

TEST(EventLoopTest, PostsFromManyThreadsAllRunOnTheLoopsThread) {
  LoopThread thread;
  const std::thread::id home = thread.call([] { return std::this_thread::get_id(); });
  std::atomic<int> calls = 0;
  std::vector<std::thread> posters;
  for (int i = 0; i < 4; ++i) {
    posters.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) {
        thread.loop().post([&] { calls += std::this_thread::get_id() == home ? 1 : 1'000'000; });
      }
    });
  }
  for (std::thread& poster : posters) poster.join();
  thread.call([] {});
  EXPECT_EQ(calls, 4000);
}

TEST(EventLoopTest, WaitsAtLeastTheTimeItWasTold) {
  EventLoop loop;
  const Duration before = loop.now();
  const bool passed = run(loop, loop.wait_for(milliseconds{20}));
  EXPECT_TRUE(passed);
  EXPECT_GE(loop.now() - before, milliseconds{20});
}

TEST(TaskGroupTest, RunsATaskAtOnceUpToItsFirstWait) {
  EventLoop loop;
  TaskGroup group(loop);
  bool begun = false;
  const auto task = [](bool& flag) -> Task<> {
    flag = true;
    co_return;
  };
  loop.post([&] {
    group.start(task(begun));
    EXPECT_TRUE(begun);
  });
  loop.run();
  EXPECT_EQ(group.running(), 0U);
}

TEST(TaskGroupTest, JoinCompletesWhenTheLastTaskHasEnded) {
  EventLoop loop;
  TaskGroup group(loop);
  std::vector<std::optional<bool>> passed(3);
  for (auto& one : passed) group.start(wait_and_note(loop, milliseconds{5}, one));
  EXPECT_EQ(group.running(), 3U);
  run(loop, group.join());
  EXPECT_EQ(group.running(), 0U);
  for (const auto& one : passed) EXPECT_EQ(one, true);
  run(loop, group.join());  // of nothing: at once
}

TEST(TaskGroupTest, CancelEndsWaitsWithAResultNotAnException) {
  EventLoop loop;
  TaskGroup group(loop);
  group.on_exception = [](const std::string& what) { ADD_FAILURE() << what; };
  std::optional<bool> first;
  std::optional<bool> second;
  const auto twice = [](EventLoop& on, std::optional<bool>& a, std::optional<bool>& b) -> Task<> {
    const auto before = co_await on.wait_for(hours(1));
    a = before;
    // What a cancelled task waits for later ends at once, too.
    const auto after = co_await on.wait_for(hours(1));
    b = after;
  };
  group.start(twice(loop, first, second));
  loop.post([&] { group.cancel_all(); });
  run(loop, group.join());
  EXPECT_EQ(first, false);
  EXPECT_EQ(second, false);
}

TEST(TaskGroupTest, ATaskCancelledBeforeItBeganEndsToo) {
  EventLoop loop;
  TaskGroup group(loop);
  group.on_exception = [](const std::string& what) { ADD_FAILURE() << what; };
  std::optional<bool> passed;
  group.start(wait_and_note(loop, hours{1}, passed));
  group.cancel_all();
  run(loop, group.join());
  EXPECT_NE(passed, true);
}

TEST(TaskGroupTest, CancelSparesOtherGroups) {
  EventLoop loop;
  TaskGroup cancelled(loop);
  TaskGroup other(loop);
  std::optional<bool> in_cancelled;
  std::optional<bool> in_other;
  cancelled.start(wait_and_note(loop, hours{1}, in_cancelled));
  other.start(wait_and_note(loop, milliseconds{5}, in_other));
  loop.post([&] { cancelled.cancel_all(); });
  run(loop, cancelled.join());
  run(loop, other.join());
  EXPECT_EQ(in_cancelled, false);
  EXPECT_EQ(in_other, true);
}

TEST(TaskGroupTest, TellsOfExceptions) {
  EventLoop loop;
  TaskGroup group(loop);
  std::vector<std::string> told;
  group.on_exception = [&](const std::string& what) { told.push_back(what); };
  const auto failing = [](EventLoop& on, bool wait) -> Task<> {
    if (wait) co_await on.wait_for(milliseconds(1));
    throw std::runtime_error(wait ? "later" : "at once");
  };
  group.start(failing(loop, false));
  group.start(failing(loop, true));
  run(loop, group.join());
  EXPECT_EQ(told, std::vector<std::string>({"at once", "later"}));
}

TEST(TaskGroupTest, TasksMayStartTasks) {
  EventLoop loop;
  TaskGroup group(loop);
  int ended = 0;
  struct Tree {
    static Task<> grow(EventLoop& on, TaskGroup& in, int depth, int& count) {
      if (depth > 0) {
        in.start(grow(on, in, depth - 1, count));
        in.start(grow(on, in, depth - 1, count));
      }
      co_await on.wait_for(milliseconds(1));
      ++count;
    }
  };
  group.start(Tree::grow(loop, group, 5, ended));
  run(loop, group.join());
  EXPECT_EQ(ended, 63);
}

}  // namespace
}  // namespace stint::net
