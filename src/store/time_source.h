// The time that a store decides by.
#pragma once

#include "stint/time.h"

namespace stint::store {

// Thread rule: any thread.
class TimeSource {
 public:
  virtual ~TimeSource() = default;
  [[nodiscard]] virtual TimePoint now() noexcept = 0;
};

}  // namespace stint::store
