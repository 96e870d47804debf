#include "net/result.h"

namespace stint::net {

const char* to_string(NetErrc code) noexcept {
  switch (code) {
    case NetErrc::closed:
      return "closed";
    case NetErrc::reset:
      return "reset";
    case NetErrc::timed_out:
      return "timed out";
    case NetErrc::cancelled:
      return "cancelled";
    case NetErrc::refused:
      return "refused";
    case NetErrc::unreachable:
      return "unreachable";
    case NetErrc::address_in_use:
      return "address in use";
    case NetErrc::tls:
      return "tls";
    case NetErrc::failed:
      return "failed";
  }
  return "unknown";
}

}  // namespace stint::net
