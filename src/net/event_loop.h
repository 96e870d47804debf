// One thread that runs coroutines: an io_context with one thread, and the tasks started on it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "net/task.h"
#include "stint/time.h"

namespace stint::net {

class DeadlineQueue;
class Readiness;

// Thread rule: `post` and `stop` from any thread; everything else on the loop's thread, or before
// `run`.
class EventLoop {
 public:
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  [[nodiscard]] Executor executor() noexcept;

  // Runs on the calling thread until `stop`, or until nothing is left to do. An open stream may
  // keep it running until the last time-out it was used with.
  void run();
  // Ends `run`, or the next one if it is not running.
  void stop() noexcept;
  void post(std::move_only_function<void()> work);

  // Completes after `span`, or earlier with false when its task group is cancelled.
  [[nodiscard]] Task<bool> wait_for(Duration span);

  // Steady time, as deadlines count it.
  [[nodiscard]] Duration now() const noexcept;
  // The time-outs of what runs on this loop: for the parts of net, and for whoever needs a
  // deadline without a coroutine (net/deadline.h).
  [[nodiscard]] DeadlineQueue& deadlines() noexcept;
  // The sockets of this loop: for the parts of net.
  [[nodiscard]] Readiness& readiness() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Starts, counts, cancels and joins coroutines: nothing runs detached.
// Thread rule: the loop's thread, or before `run`. Must be empty when destroyed (`join`).
class TaskGroup {
 public:
  explicit TaskGroup(EventLoop& loop);
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // On the loop's thread the task runs at once, up to its first wait. An exception that leaves it
  // is handed to `on_exception` of the group, if set, else it ends the program.
  void start(Task<void> task);
  [[nodiscard]] std::size_t running() const noexcept;
  // Ends what the running tasks wait for, now or later, in streams, listeners, `connect` and
  // `wait_for`: as the result `cancelled` (or false), never as an exception.
  void cancel_all() noexcept;
  // Completes when no task is running any more. Not to be awaited by a task of the group.
  [[nodiscard]] Task<void> join();

  std::function<void(const std::string& what)> on_exception;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace stint::net
