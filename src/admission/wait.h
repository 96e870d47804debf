// Waiting for a call that completes through a callback.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace stint::admission {

// One use: `done` is called once, on any thread; `wait` returns after that. A callback on the
// waiting thread itself, before `wait`, costs no lock.
class Waiter {
 public:
  void done() {
    if (std::this_thread::get_id() == owner_) {
      done_ = true;
      return;
    }
    // Notified under the lock: once `wait` returns, this object may be gone.
    const std::lock_guard lock(mutex_);
    done_elsewhere_ = true;
    condition_.notify_one();
  }

  void wait() {
    if (done_) return;
    std::unique_lock lock(mutex_);
    condition_.wait(lock, [this] { return done_elsewhere_; });
  }

 private:
  const std::thread::id owner_ = std::this_thread::get_id();
  bool done_ = false;  // touched by the owner only
  bool done_elsewhere_ = false;
  std::mutex mutex_;
  std::condition_variable condition_;
};

}  // namespace stint::admission
