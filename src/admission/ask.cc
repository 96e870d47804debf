#include "admission/ask.h"

#include <algorithm>

namespace stint::admission {
namespace {

// Of the parts of an estimate, what a limit of this unit counts; never more than a full bucket.
std::int64_t estimate(const limit::Spec& spec, std::int64_t input, std::int64_t output) {
  std::int64_t tokens = std::min(input + output, kMaxQuantity);
  if (spec.name.unit == Unit::input_tokens) tokens = input;
  if (spec.name.unit == Unit::output_tokens) tokens = output;
  return std::min(tokens, spec.capacity);
}

}  // namespace

store::LimitSlot ask(const limit::Spec& spec, TokenAdmission admission, const Cost& cost,
                     std::optional<std::int64_t> mean_output) {
  store::LimitSlot slot;
  if (spec.name.unit == Unit::requests) {
    slot.need = slot.charge = cost.requests;
    return slot;
  }
  if (spec.name.unit == Unit::concurrency) {
    slot.skip = !cost.holds_slot;
    slot.need = slot.charge = slot.skip ? 0 : 1;
    return slot;
  }
  const std::int64_t cap = cost.output_cap.value_or(kDefaultOutputTokens);
  if (admission == TokenAdmission::reserve) {
    slot.need = slot.charge = estimate(spec, cost.input_tokens, cap);
    return slot;
  }
  // An unknown cap bounds no mean that was learned.
  const std::int64_t expected = cost.output_cap
                                    ? std::min(mean_output.value_or(kDefaultOutputTokens), cap)
                                    : mean_output.value_or(kDefaultOutputTokens);
  slot.need = 1;
  slot.charge = estimate(spec, cost.input_tokens, expected);
  return slot;
}

}  // namespace stint::admission
