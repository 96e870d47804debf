// Signals of the operating system as something to wait for.
#pragma once

#include <initializer_list>
#include <memory>

#include "net/event_loop.h"
#include "net/task.h"

namespace stint::net {

// While it lives, the signals do not end the process. One for each signal in a process.
// Thread rule: the loop's thread.
class Signals {
 public:
  Signals(EventLoop& loop, std::initializer_list<int> signals);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // The number of the next one; 0 after `cancel`.
  [[nodiscard]] Task<int> next();
  void cancel() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stint::net
