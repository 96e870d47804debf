// Which of two limits is nearer to its end: the order that headers list limits in.
#pragma once

#include "stint/decision.h"

namespace stint::limit {

// remaining / capacity of `a` is less than of `b`, or equal and a's window is longer, or that too
// and a's policy id is the smaller one. A strict weak order.
[[nodiscard]] bool tighter(const LimitStatus& a, const LimitStatus& b) noexcept;

}  // namespace stint::limit
