// Running coroutines in tests: on the test's own thread until they are done, or on a loop that has
// a thread of its own.
#pragma once

#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "net/event_loop.h"

namespace stint::net {

// Runs the loop until the group is empty. What else waits on the loop, timers too, is left waiting.
inline void run_until_empty(EventLoop& loop, const TaskGroup& group) {
  if (group.running() > 0) loop.run();
  while (group.running() > 0) {
    loop.post([&loop] { loop.stop(); });
    loop.run();
  }
}

// Runs all handlers that are ready, and those that they make ready. On loopback the other end of a
// socket is ready when the call on this end returns: no time has to pass.
inline void run_what_is_ready(EventLoop& loop) {
  for (int round = 0; round < 20; ++round) {
    loop.post([&loop] { loop.stop(); });
    loop.run();
  }
}

// The result of the task. What else was started on the loop runs meanwhile.
template <class T>
T run(EventLoop& loop, Task<T> task) {
  TaskGroup group(loop);
  std::optional<T> result;
  const auto body = [](Task<T> inner, EventLoop& on, std::optional<T>& into) -> Task<> {
    auto value = co_await std::move(inner);
    into.emplace(std::move(value));
    on.stop();
  };
  group.start(body(std::move(task), loop, result));
  run_until_empty(loop, group);
  return std::move(*result);
}

inline void run(EventLoop& loop, Task<void> task) {
  TaskGroup group(loop);
  const auto body = [](Task<void> inner, EventLoop& on) -> Task<> {
    co_await std::move(inner);
    on.stop();
  };
  group.start(body(std::move(task), loop));
  run_until_empty(loop, group);
}

// An event loop with its thread. When destroyed, cancels the tasks started here and waits for them.
class LoopThread {
 public:
  LoopThread() : tasks_(loop_), end_(loop_), thread_([this] { work(); }) {}
  ~LoopThread() {
    const auto stop_at_end = [](EventLoop& loop, TaskGroup& tasks) -> Task<> {
      co_await tasks.join();
      loop.stop();
    };
    call([&] {
      tasks_.cancel_all();
      end_.start(stop_at_end(loop_, tasks_));
    });
    thread_.join();
    run_until_empty(loop_, end_);
  }
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  [[nodiscard]] EventLoop& loop() noexcept { return loop_; }

  // Calls it on the loop's thread and waits for its result.
  template <class F>
  std::invoke_result_t<F> call(F function) {
    std::packaged_task<std::invoke_result_t<F>()> task(std::move(function));
    auto result = task.get_future();
    loop_.post(std::move(task));
    return result.get();
  }

  // Starts what `make` returns as a task on the loop's thread.
  template <class F>
  void start(F make) {
    call([this, &make] { tasks_.start(make()); });
  }
  // The same, and waits for its end.
  template <class F>
  void finish(F make) {
    std::promise<void> ended;
    const auto body = [](Task<> task, std::promise<void>& done) -> Task<> {
      co_await std::move(task);
      done.set_value();
    };
    call([&] { tasks_.start(body(make(), ended)); });
    ended.get_future().get();
  }

 private:
  void work() {
    // So that `run` does not return for want of work.
    const auto forever = [](EventLoop& loop) -> Task<> {
      co_await loop.wait_for(std::chrono::hours(24));
    };
    tasks_.start(forever(loop_));
    loop_.run();
  }

  EventLoop loop_;
  TaskGroup tasks_;
  TaskGroup end_;
  std::thread thread_;
};

}  // namespace stint::net
