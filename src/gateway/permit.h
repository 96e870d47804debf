// What a request holds of its admissions until it ends.
#pragma once

#include <memory>
#include <utility>
#include <vector>

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

  // Of a request that the first step refused: what the second would say to it now, so that the
  // refusal tells how both stand. Nothing is charged.
  void look(Decision&& second);

  // Of all steps so far, the limits of the first one first. If the second refused, of that alone.
  [[nodiscard]] const Decision& decision() const noexcept { return decision_; }
  // How the first step stood whose charges were given back because the second refused.
  [[nodiscard]] const std::vector<LimitStatus>& given_back() const noexcept { return given_back_; }
  [[nodiscard]] bool refused() const noexcept { return asked() && !decision_.admitted(); }
  [[nodiscard]] bool limited() const noexcept { return !decision_.limits.empty(); }
  [[nodiscard]] bool asked() const noexcept { return !first_; }

  // See Reservation. Doing nothing when settled before.
  void commit(const Usage& usage);
  void release();

 private:
  std::shared_ptr<StoreWait> store_;
  void append(Decision&& next);

  Decision decision_;
  std::vector<LimitStatus> given_back_;  // its texts live as long as `early_texts_`
  std::shared_ptr<const void> early_texts_;
  Reservation early_;
  Reservation late_;
  bool first_ = true;
};

}  // namespace stint::gateway
