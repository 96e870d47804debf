// What an admission asks of one limit, from the cost of the request.
#pragma once

#include <cstdint>
#include <optional>

#include "limit/spec.h"
#include "stint/limiter.h"
#include "stint/policy.h"
#include "store/rate_store.h"

namespace stint::admission {

// `mean_output`: of earlier answers to the same caller, if any. Pure.
[[nodiscard]] store::LimitSlot ask(const limit::Spec& spec, TokenAdmission admission,
                                   const Cost& cost, std::optional<std::int64_t> mean_output);

}  // namespace stint::admission
