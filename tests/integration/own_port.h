// A TCP port on 127.0.0.1 that no other test has, in this process or another.
#pragma once

#include <cstdint>

#include "net/socket.h"

namespace stint::redis_testing {

// Free when it was made, and kept from other tests for as long as it lives, also while nothing
// listens on it: a server that is down must not be mistaken for one of another test. Below the
// ports that the kernel gives to clients, or one of those that try to connect meanwhile may get it
// and be connected with itself. The end-to-end tests keep to the same
// (tests/e2e/support/gateway.py). Thread rule: any thread.
class OwnPort {
 public:
  OwnPort() = default;  // none: number() is 0
  // Throws std::runtime_error if there is none.
  [[nodiscard]] static OwnPort take();

  [[nodiscard]] std::uint16_t number() const noexcept { return number_; }

 private:
  std::uint16_t number_ = 0;
  net::FileDescriptor held_;
};

}  // namespace stint::redis_testing
