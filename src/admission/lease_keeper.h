// Keeps the leases of running reservations alive.
#pragma once

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "admission/booking.h"
#include "base/mutex.h"
#include "stint/time.h"
#include "store/rate_store.h"

namespace stint::admission {

// Renews every lease each third of its ttl, in batches, when `renew_due` is called: by a timer,
// and before anybody asks for a slot. The second alone is enough for a store in this process,
// where a lease that is overdue matters only to whoever asks.
// Thread rule: any thread.
class LeaseKeeper {
 public:
  static constexpr std::size_t kMaxBatch = 500;

  // All must outlive it, and it all bookings.
  LeaseKeeper(store::RateStore& store, const Clock& clock, Duration ttl);

  // The booking holds a lease from now on.
  void add(Booking& booking);

  // To be called before the booking is settled. True: go on. False: a renewal is under way;
  // `then` was taken, and is called as soon as it is done, once, on the thread that ended it.
  [[nodiscard]] bool withdraw(Booking& booking, std::move_only_function<void()>& then);

  // Renews what is due. With a store that answers at once, all of it is renewed on return.
  void renew_due();

  [[nodiscard]] std::size_t held() const noexcept { return held_.load(std::memory_order_relaxed); }

 private:
  using List = boost::intrusive::list<
      Booking,
      boost::intrusive::member_hook<Booking, boost::intrusive::list_member_hook<>, &Booking::hook>>;
  struct Batch {
    std::vector<Booking*> bookings;
    std::vector<store::AdmissionRecord*> records;
  };

  [[nodiscard]] Batch take_due();
  void renewed(const Batch& batch);
  void note_first() STINT_REQUIRES(mutex_);

  store::RateStore& store_;
  const Clock& clock_;
  const Duration ttl_;

  // Steady time at which the first lease is due; the largest number if there is none. Moves on
  // only when the renewal is done, so that whoever finds nothing due finds it done.
  std::atomic<std::int64_t> first_due_;
  std::atomic<std::size_t> held_{0};

  base::Mutex renewal_mutex_;  // one thread collects and sends; taken before mutex_
  base::Mutex mutex_;
  List due_ STINT_GUARDED_BY(mutex_);  // in the order of their due times
  std::size_t batches_running_ STINT_GUARDED_BY(mutex_) = 0;
};

}  // namespace stint::admission
