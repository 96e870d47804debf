// What a request holds of its admissions until it ends.
#pragma once

#include <memory>
#include <utility>

#include "gateway/store_wait.h"
#include "stint/limiter.h"

namespace stint::gateway {

// A request is admitted in up to two steps: by what is known before authentication, and by the
// rest. A refusal in the second gives the first back; otherwise both are settled together, once,
// on every way out: destroying a permit that is not settled releases it.
// Nothing here waits: what was settled may still be under way, which `store` knows.
// Thread rule: the loop's thread.
class Permit {
 public:
  explicit Permit(std::shared_ptr<StoreWait> store) noexcept : store_(std::move(store)) {}

  // Takes over the outcome of the next step. False if it was not admitted: then nothing is held
  // any more (what was is being given back), and `decision` is what to refuse with.
  bool add(Admission&& admission);

  // Of all steps so far, the limits of the first one first.
  [[nodiscard]] const Decision& decision() const noexcept { return decision_; }
  [[nodiscard]] bool limited() const noexcept { return !decision_.limits.empty(); }
  [[nodiscard]] bool asked() const noexcept { return !first_; }

  // See Reservation. Doing nothing when settled before.
  void commit(const Usage& usage);
  void release();

 private:
  std::shared_ptr<StoreWait> store_;
  Decision decision_;
  Reservation early_;
  Reservation late_;
  bool first_ = true;
};

}  // namespace stint::gateway
