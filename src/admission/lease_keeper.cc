#include "admission/lease_keeper.h"

#include <limits>
#include <memory>
#include <utility>

namespace stint::admission {
namespace {

constexpr std::int64_t kNothingDue = std::numeric_limits<std::int64_t>::max();

}  // namespace

LeaseKeeper::LeaseKeeper(store::RateStore& store, const Clock& clock, Duration ttl)
    : store_(store), clock_(clock), ttl_(ttl), first_due_(kNothingDue) {}

void LeaseKeeper::add(Booking& booking) {
  const base::MutexLock lock(mutex_);
  booking.renewal_due = clock_.steady_now() + ttl_ / 3;
  due_.push_back(booking);
  held_.fetch_add(1, std::memory_order_relaxed);
  if (due_.size() == 1) note_first();
}

bool LeaseKeeper::withdraw(Booking& booking, std::move_only_function<void()>& then) {
  const base::MutexLock lock(mutex_);
  held_.fetch_sub(1, std::memory_order_relaxed);
  if (booking.renewing) {
    booking.after_renewal = std::move(then);
    return false;
  }
  const bool first = &due_.front() == &booking;
  due_.erase(due_.iterator_to(booking));
  if (first) note_first();
  return true;
}

void LeaseKeeper::renew_due() {
  if (clock_.steady_now().count() < first_due_.load(std::memory_order_acquire)) return;
  const base::MutexLock lock(renewal_mutex_);
  for (;;) {
    auto batch = std::make_unique<Batch>(take_due());
    if (batch->bookings.empty()) return;
    const Batch& sent = *batch;
    auto done = [this, batch = std::move(batch)] { renewed(*batch); };
    store_.renew(sent.records, std::move(done));
  }
}

LeaseKeeper::Batch LeaseKeeper::take_due() {
  const base::MutexLock lock(mutex_);
  Batch batch;
  const Duration now = clock_.steady_now();
  while (!due_.empty() && batch.bookings.size() < kMaxBatch && due_.front().renewal_due <= now) {
    Booking& booking = due_.front();
    due_.pop_front();
    booking.renewing = true;
    batch.bookings.push_back(&booking);
    batch.records.push_back(&booking.record);
  }
  if (!batch.bookings.empty()) ++batches_running_;
  return batch;
}

void LeaseKeeper::renewed(const Batch& batch) {
  std::vector<std::move_only_function<void()>> waiting;
  {
    const base::MutexLock lock(mutex_);
    const Duration due = clock_.steady_now() + ttl_ / 3;
    for (Booking* booking : batch.bookings) {
      booking->renewing = false;
      if (booking->after_renewal) {
        waiting.push_back(std::move(booking->after_renewal));
      } else {
        booking->renewal_due = due;
        due_.push_back(*booking);
      }
    }
    --batches_running_;
    note_first();
  }
  for (auto& then : waiting) then();
}

void LeaseKeeper::note_first() {
  // While a batch is under way its leases are still due to everybody else.
  if (batches_running_ > 0) return;
  first_due_.store(due_.empty() ? kNothingDue : due_.front().renewal_due.count(),
                   std::memory_order_release);
}

}  // namespace stint::admission
