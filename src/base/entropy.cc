#include "base/entropy.h"

#include <random>

namespace stint::base {
namespace {

class SystemEntropy final : public Entropy {
 public:
  std::uint64_t next() override {
    std::random_device device;  // one for each call: it may not be shared between threads
    const std::uint64_t high = device();
    return (high << 32) | device();
  }
};

}  // namespace

Entropy& system_entropy() noexcept {
  static SystemEntropy entropy;
  return entropy;
}

}  // namespace stint::base
