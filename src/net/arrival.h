// Waiting on a loop for something that is done elsewhere and told by a callback.
#pragma once

#include <functional>
#include <memory>

#include "net/event_loop.h"
#include "net/task.h"
#include "stint/time.h"

namespace stint::net {

// Thread rule: the loop's thread; the signal from any.
class Arrival {
 public:
  explicit Arrival(EventLoop& loop);
  ~Arrival();
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;

  // To be called at most once; also when this object is gone, as long as the loop is there.
  [[nodiscard]] std::move_only_function<void()> signal();

  // True as soon as the signal was called. False: not within `span`, or the task was cancelled.
  // By one task at a time.
  [[nodiscard]] Task<bool> wait(Duration span);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace stint::net
