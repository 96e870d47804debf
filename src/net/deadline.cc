#include "net/deadline.h"

#include <utility>

namespace stint::net {

Deadline::Deadline(DeadlineQueue& queue, std::move_only_function<void()> on_due)
    : queue_(queue), on_due_(std::move(on_due)) {}

Deadline::~Deadline() {
  if (position_ == kOutside) return;
  queue_.remove(*this);
  if (queue_.heap_.empty()) queue_.on_next_changed_();
}

void Deadline::arm(Duration due) {
  due_ = due;
  if (position_ != kOutside && queued_for_ <= due) return;
  queue_.place(*this, due);
  if (position_ == 0) queue_.on_next_changed_();
}

DeadlineQueue::DeadlineQueue(std::function<void()> on_next_changed)
    : on_next_changed_(std::move(on_next_changed)) {}

std::optional<Duration> DeadlineQueue::next() const noexcept {
  if (heap_.empty()) return std::nullopt;
  return heap_.front()->queued_for_;
}

void DeadlineQueue::fire(Duration now) {
  while (!heap_.empty() && heap_.front()->queued_for_ <= now) {
    Deadline& first = *heap_.front();
    if (!first.armed()) {
      remove(first);
    } else if (first.due_ > now) {
      place(first, first.due_);
    } else {
      remove(first);
      first.disarm();
      first.on_due_();  // `first` may be gone afterwards
    }
  }
}

void DeadlineQueue::place(Deadline& deadline, Duration queued_for) {
  deadline.queued_for_ = queued_for;
  if (deadline.position_ == Deadline::kOutside) {
    heap_.push_back(&deadline);
    deadline.position_ = heap_.size() - 1;
  }
  sift_up(deadline.position_);
  sift_down(deadline.position_);
}

void DeadlineQueue::remove(Deadline& deadline) noexcept {
  const std::size_t position = deadline.position_;
  deadline.position_ = Deadline::kOutside;
  Deadline* last = heap_.back();
  heap_.pop_back();
  if (last == &deadline) return;
  put(position, last);
  sift_up(position);
  sift_down(last->position_);
}

void DeadlineQueue::put(std::size_t position, Deadline* deadline) noexcept {
  heap_[position] = deadline;
  deadline->position_ = position;
}

void DeadlineQueue::sift_up(std::size_t position) noexcept {
  Deadline* moving = heap_[position];
  while (position > 0) {
    const std::size_t parent = (position - 1) / 2;
    if (heap_[parent]->queued_for_ <= moving->queued_for_) break;
    put(position, heap_[parent]);
    position = parent;
  }
  put(position, moving);
}

void DeadlineQueue::sift_down(std::size_t position) noexcept {
  Deadline* moving = heap_[position];
  for (;;) {
    std::size_t child = 2 * position + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1]->queued_for_ < heap_[child]->queued_for_) {
      ++child;
    }
    if (moving->queued_for_ <= heap_[child]->queued_for_) break;
    put(position, heap_[child]);
    position = child;
  }
  put(position, moving);
}

}  // namespace stint::net
