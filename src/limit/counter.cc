#include "limit/counter.h"

namespace stint::limit {

Counter Counter::fresh(const Spec& spec) {
  Counter counter;
  switch (spec.name.algorithm) {
    case Algorithm::fixed_window:
      break;
    case Algorithm::sliding_window:
      counter.sliding_ = SlidingWindow{};
      break;
    case Algorithm::token_bucket:
      counter.bucket_ = TokenBucket::fresh(spec);
      break;
    case Algorithm::sliding_log:
      counter.log_ = new SlidingLog;
      break;
    case Algorithm::concurrency:
      counter.leases_ = new LeaseSet;
      break;
  }
  return counter;
}

Counter Counter::clone(const Spec& spec) const {
  Counter copy = *this;
  if (spec.name.algorithm == Algorithm::sliding_log) copy.log_ = new SlidingLog(*log_);
  if (spec.name.algorithm == Algorithm::concurrency) copy.leases_ = new LeaseSet(*leases_);
  return copy;
}

void Counter::destroy(const Spec& spec) noexcept {
  if (spec.name.algorithm == Algorithm::sliding_log) delete log_;
  if (spec.name.algorithm == Algorithm::concurrency) delete leases_;
}

std::int64_t Counter::value(const Spec& spec) const noexcept {
  switch (spec.name.algorithm) {
    case Algorithm::fixed_window:
      return fixed_.used;
    case Algorithm::sliding_window:
      return sliding_.current;
    case Algorithm::token_bucket:
      return bucket_.level;
    case Algorithm::sliding_log:
      return log_->used();
    case Algorithm::concurrency:
      return leases_->live();
  }
  std::unreachable();
}

}  // namespace stint::limit
