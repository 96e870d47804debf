// A value that many threads read all the time and somebody replaces now and then.
#pragma once

#include <array>
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
    for (Stripe& stripe : stripes_) {
      // A control block of its own, which keeps the caller's one alive.
      auto holder = std::make_shared<std::shared_ptr<const T>>(value);
      const T* pointer = holder->get();
      std::shared_ptr<const T> fresh(std::move(holder), pointer);
      const MutexLock lock(stripe.mutex);
      stripe.value.swap(fresh);  // the old value is freed after the lock
    }
  }

 private:
  struct alignas(64) Stripe {
    Mutex mutex;
    std::shared_ptr<const T> value STINT_GUARDED_BY(mutex);
  };

  mutable std::array<Stripe, kStripes> stripes_;
};

}  // namespace stint::base
