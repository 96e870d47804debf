// The limiter over any store: matches policies, asks the store, hands out reservations.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "admission/booking.h"
#include "admission/learned_outputs.h"
#include "admission/lease_keeper.h"
#include "base/entropy.h"
#include "base/id.h"
#include "base/striped_counters.h"
#include "base/striped_snapshot.h"
#include "policy/table.h"
#include "stint/limiter.h"
#include "store/rate_store.h"

namespace stint::admission {

using Admitted = std::move_only_function<void(Result<Admission>)>;
using Peeked = std::move_only_function<void(Result<Decision>)>;
using Listed = std::move_only_function<void(Result<BucketPage>)>;
using Cleared = std::move_only_function<void(ResetSummary)>;
using Settled = Reservation::Done;

// What stint::Limiter is made of. Beside its calls, which wait for the store, it has the same
// ones with a callback, which do not: called exactly once, on the caller's thread before the call
// returns or later on a thread of the store.
// Thread rule: as stint::Limiter.
class LimiterCore {
 public:
  // `clock` must outlive it; `ttl` as LimiterOptions::concurrency_ttl, already checked.
  LimiterCore(std::shared_ptr<store::RateStore> store, std::shared_ptr<const policy::Table> table,
              const Clock& clock, Duration ttl, base::Entropy& entropy);

  [[nodiscard]] Result<Admission> admit(const Attributes& attributes, const Cost& cost);
  // `cancelled`: see AdmissionRecord; must live until `done` was called. Whoever sets it is still
  // called, maybe with an admission that was already under way, and gives it back.
  void admit(const Attributes& attributes, const Cost& cost, Admitted done,
             const std::atomic<bool>* cancelled = nullptr);
  [[nodiscard]] Result<Decision> peek(const Attributes& attributes, const Cost& cost);
  void peek(const Attributes& attributes, const Cost& cost, Peeked done);

  [[nodiscard]] Result<void> set_policies(const std::vector<Policy>& policies);

  [[nodiscard]] ResetSummary reset(std::string_view pattern);
  void reset(std::string_view pattern, Cleared done);
  [[nodiscard]] Result<BucketPage> list(std::string_view pattern, std::uint64_t cursor,
                                        std::size_t page_size);
  void list(std::string_view pattern, std::uint64_t cursor, std::size_t page_size, Listed done);
  [[nodiscard]] LimiterStats stats() const;

  // Renews leases that are due; to be called at least each ninth of the ttl where the store is
  // not in this process, so that none is overdue for long.
  void renew_leases() { keeper_.renew_due(); }

  // For Reservation. `booking` must be one of this limiter's, admitted and not settled.
  static Result<void> settle(std::unique_ptr<Booking>& booking, Settlement how, const Usage& usage);
  static void settle(std::unique_ptr<Booking>& booking, Settlement how, const Usage& usage,
                     Settled done);

 private:
  enum Count : std::size_t { kAdmitted, kRefused, kUndecided, kShadowRefused, kSkipped, kCounts };

  // Everything up to the question to the store.
  [[nodiscard]] Result<std::unique_ptr<Booking>> prepare(const Attributes& attributes,
                                                         const Cost& cost);
  void add_buckets(Booking& booking, const Attributes& attributes, const Cost& cost);
  // Everything after the answer.
  [[nodiscard]] Admission finish(std::unique_ptr<Booking> booking);
  void count(const Booking& booking) noexcept;
  static void send_settlement(std::unique_ptr<Booking> booking);

  const std::shared_ptr<store::RateStore> store_;
  const Duration ttl_;
  base::IdGenerator ids_;
  LearnedOutputs learned_;
  LeaseKeeper keeper_;
  base::StripedCounters<kCounts> counts_;

  base::StripedSnapshot<policy::Table> table_;
};

}  // namespace stint::admission
