#include "stint/time.h"

namespace stint {
namespace {

class SystemClock final : public Clock {
 public:
  Duration steady_now() const noexcept override {
    return std::chrono::duration_cast<Duration>(
        std::chrono::steady_clock::now().time_since_epoch());
  }
  TimePoint wall_now() const noexcept override {
    return std::chrono::floor<Duration>(std::chrono::system_clock::now());
  }
};

}  // namespace

const Clock& system_clock() noexcept {
  static const SystemClock clock;
  return clock;
}

}  // namespace stint
