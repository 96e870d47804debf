#include "admission/booking.h"

#include <algorithm>

namespace stint::admission {
namespace {

std::int64_t used(Unit unit, const Usage& usage) noexcept {
  switch (unit) {
    case Unit::tokens:
      return std::min(usage.input_tokens + usage.output_tokens, kMaxQuantity);
    case Unit::input_tokens:
      return usage.input_tokens;
    case Unit::output_tokens:
      return usage.output_tokens;
    case Unit::requests:
    case Unit::concurrency:
      return 0;
  }
  return 0;
}

// Of a charge to a limit of this unit, what stands after the settlement.
std::int64_t actual(Unit unit, std::int64_t charged, Settlement how, const Usage& usage) noexcept {
  if (unit == Unit::concurrency || how == Settlement::cancel) return 0;
  if (unit == Unit::requests) return charged;
  return how == Settlement::commit ? used(unit, usage) : 0;
}

}  // namespace

void write_actuals(Booking& booking, Settlement how, const Usage& usage) noexcept {
  for (const store::BucketSlot& bucket : booking.record.buckets) {
    const auto slots = booking.record.slots_of(bucket);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      slots[i].actual = actual((*bucket.limits)[i].name.unit, slots[i].charged.amount, how, usage);
    }
  }
}

Decision make_decision(const Booking& booking) {
  Decision decision;
  decision.outcome = booking.record.outcome;
  decision.error = booking.record.error;
  decision.policies = booking.table;
  if (decision.outcome == Outcome::undecided) return decision;
  decision.limits.reserve(booking.record.slots.size());
  for (std::size_t i = 0; i < booking.record.buckets.size(); ++i) {
    const store::BucketSlot& bucket = booking.record.buckets[i];
    const policy::CompiledPolicy& policy = *booking.policies[i];
    const auto slots = booking.record.slots_of(bucket);
    for (std::size_t k = 0; k < slots.size(); ++k) {
      decision.limits.push_back({.policy_id = policy.id,
                                 .policy_name = policy.name,
                                 .limit = (*bucket.limits)[k].limit(),
                                 .shadow = bucket.shadow,
                                 .verdict = slots[k].verdict,
                                 .remaining = slots[k].remaining,
                                 .reset = slots[k].reset,
                                 .wait = slots[k].wait});
    }
  }
  return decision;
}

}  // namespace stint::admission
