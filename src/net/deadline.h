// Deadlines of many waits on one timer.
//
// Every read and write has a time-out, hardly any of which is ever reached. So arming one costs a
// store: the deadline stays where it stands in the queue, too early, and is moved to its new place
// only when it comes up there. Only a deadline that becomes shorter is moved at once.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "stint/time.h"

namespace stint::net {

class DeadlineQueue;

// One wait that may be due. Leaves its queue when destroyed.
class Deadline {
 public:
  // `queue` must outlive it. `on_due` is called by DeadlineQueue::fire; it may destroy deadlines.
  Deadline(DeadlineQueue& queue, std::move_only_function<void()> on_due);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  void arm(Duration due);
  void disarm() noexcept { due_ = kNever; }
  [[nodiscard]] bool armed() const noexcept { return due_ != kNever; }

 private:
  friend class DeadlineQueue;
  static constexpr Duration kNever = Duration::max();
  static constexpr std::size_t kOutside = std::numeric_limits<std::size_t>::max();

  DeadlineQueue& queue_;
  std::move_only_function<void()> on_due_;
  Duration due_ = kNever;
  Duration queued_for_ = kNever;     // where it stands in the queue: never later than due_
  std::size_t position_ = kOutside;  // in the queue's heap
};

// Times are those of a steady clock. Thread rule: one thread.
class DeadlineQueue {
 public:
  // `on_next_changed` is told when `next` became earlier, or nothing is queued any more.
  explicit DeadlineQueue(std::function<void()> on_next_changed);

  // When `fire` should be called next. Nothing may be due then.
  [[nodiscard]] std::optional<Duration> next() const noexcept;
  // Disarms those that are due, and calls them.
  void fire(Duration now);
  [[nodiscard]] std::size_t size() const noexcept { return heap_.size(); }

 private:
  friend class Deadline;
  void place(Deadline& deadline, Duration queued_for);
  void remove(Deadline& deadline) noexcept;
  void sift_up(std::size_t position) noexcept;
  void sift_down(std::size_t position) noexcept;
  void put(std::size_t position, Deadline* deadline) noexcept;

  std::function<void()> on_next_changed_;
  std::vector<Deadline*> heap_;  // binary, by queued_for_
};

}  // namespace stint::net
