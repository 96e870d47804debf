// What a request holds of its admissions until it ends.
#pragma once

#include <utility>

#include "stint/limiter.h"

namespace stint::gateway {

// A request is admitted in up to two steps: by what is known before authentication, and by the
// rest. A refusal in the second gives the first back; otherwise both are settled together, once,
// on every way out: destroying a permit that is not settled releases it.
// Thread rule: one thread at a time.
class Permit {
 public:
  // Takes over the outcome of the next step. False if it was not admitted: then nothing is held
  // any more, and `decision` is what to refuse with.
  bool add(Admission&& admission);

  // Of all steps so far, the limits of the first one first.
  [[nodiscard]] const Decision& decision() const noexcept { return decision_; }
  [[nodiscard]] bool limited() const noexcept { return !decision_.limits.empty(); }
  [[nodiscard]] bool asked() const noexcept { return !first_; }

  // See Reservation. Doing nothing when settled before.
  void commit(const Usage& usage);
  void release();

 private:
  Decision decision_;
  Reservation early_;
  Reservation late_;
  bool first_ = true;
};

}  // namespace stint::gateway
