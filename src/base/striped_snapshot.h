// A value that many threads read all the time and somebody replaces now and then.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "base/stripe.h"

namespace stint::base {

// Readers take a shared_ptr. A single shared_ptr would make all of them write one reference
// count; here each stripe has a reference count of its own, and a thread keeps to one stripe.
// (std::atomic<std::shared_ptr> is no way out: it has the one count, and ThreadSanitizer does
// not understand libstdc++ 12's.)
// Thread rule: any thread. A reader that starts after `set` has returned sees the new value.
template <class T>
class StripedSnapshot {
 public:
  explicit StripedSnapshot(std::shared_ptr<const T> value) { set(std::move(value)); }

  [[nodiscard]] std::shared_ptr<const T> get() const {
    Stripe& stripe = stripes_[stripe_of_this_thread()];
    const MutexLock lock(stripe.mutex);
    return stripe.value;
  }

  void set(std::shared_ptr<const T> value) {
    std::array<std::shared_ptr<const T>, kStripes> old;  // freed last, with no lock held
    const MutexLock one_at_a_time(set_mutex_);
    for (std::size_t i = 0; i < kStripes; ++i) {
      // A control block of its own, which keeps the caller's one alive.
      auto holder = std::make_shared<std::shared_ptr<const T>>(value);
      const T* pointer = holder->get();
      std::shared_ptr<const T> fresh(std::move(holder), pointer);
      const MutexLock lock(stripes_[i].mutex);
      old[i] = std::exchange(stripes_[i].value, std::move(fresh));
    }
  }

 private:
  struct alignas(64) Stripe {
    Mutex mutex;
    std::shared_ptr<const T> value STINT_GUARDED_BY(mutex);
  };

  Mutex set_mutex_;  // of two values set at once, one would stay in some stripes
  mutable std::array<Stripe, kStripes> stripes_;
};

}  // namespace stint::base
