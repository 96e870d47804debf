// One limit of one bucket, kept as a plain history: slow, and meant to be believed at sight.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/id.h"
#include "limit/check.h"
#include "limit/spec.h"
#include "stint/time.h"

namespace stint::model {

// Nothing here comes from the steps of src/limit; only the numbers of a Spec are shared (tick,
// ticks in a window, where counters stop), because they define the arithmetic. What can be
// found by trying is found by trying: how long to wait, and when the limit is whole again.
class ReferenceLimit {
 public:
  [[nodiscard]] static std::unique_ptr<ReferenceLimit> fresh(const limit::Spec& spec);

  virtual ~ReferenceLimit() = default;
  [[nodiscard]] virtual std::unique_ptr<ReferenceLimit> copy() const = 0;

  // Another quota or burst for the same limit; what was counted stays.
  virtual void reload(const limit::Spec& spec) { spec_ = spec; }

  // Brings the history to `now`, which may lie before the instant it was at. Always called
  // before anything below. `lease_ttl` is what a lease may last from now on at most.
  virtual void advance(TimePoint now, Duration lease_ttl) = 0;

  // Whether something was written down at a time that is still to come: the clock was set back
  // since. To be asked before `advance`.
  [[nodiscard]] virtual bool ahead(TimePoint now, Duration lease_ttl) const = 0;

  [[nodiscard]] limit::Check check(std::int64_t need) const;
  [[nodiscard]] limit::Reading read() const;
  // Says no more than a fresh one.
  [[nodiscard]] virtual bool whole() const = 0;
  // Will be whole at `now` if nothing happens until then. Needs no `advance`.
  [[nodiscard]] bool spent(TimePoint now) const;
  // See BucketInfo::Counter::value.
  [[nodiscard]] virtual std::int64_t value() const = 0;

  virtual limit::Charge charge(std::int64_t amount, const base::Id& id, TimePoint lease_end) = 0;
  virtual void settle(const limit::Charge& charged, std::int64_t actual, const base::Id& id) = 0;
  // Concurrency only.
  virtual void renew(const base::Id& /*id*/, TimePoint /*lease_end*/) {}

 protected:
  explicit ReferenceLimit(const limit::Spec& spec) : spec_(spec) {}
  ReferenceLimit(const ReferenceLimit&) = default;

  [[nodiscard]] virtual bool fits(std::int64_t need) const = 0;
  // What is left for others, never below 0.
  [[nodiscard]] virtual std::int64_t remaining() const = 0;
  // No wait that is told goes beyond this instant.
  [[nodiscard]] virtual TimePoint horizon() const = 0;

  limit::Spec spec_;
  TimePoint now_{};

 private:
  // How long until `holds` is true of this limit if nobody is admitted meanwhile. It must be
  // false now, and once true stay true.
  [[nodiscard]] Duration until(const std::function<bool(const ReferenceLimit&)>& holds) const;
};

}  // namespace stint::model
