#include "net/system_error.h"

#include <cerrno>
#include <system_error>

namespace stint::net {
namespace {

NetErrc code_of(int error) noexcept {
  switch (error) {
    case ECONNRESET:
    case EPIPE:
    case ECONNABORTED:
      return NetErrc::reset;
    case ETIMEDOUT:
      return NetErrc::timed_out;
    case ECONNREFUSED:
      return NetErrc::refused;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
      return NetErrc::unreachable;
    case EADDRINUSE:
      return NetErrc::address_in_use;
    case ECANCELED:
    case EBADF:
      return NetErrc::cancelled;
    default:
      return NetErrc::failed;
  }
}

}  // namespace

NetError make_error(NetErrc code) {
  NetError error;
  error.code = code;
  error.text = to_string(code);
  return error;
}

NetError error_from_errno(int error, std::string_view what) {
  NetError result;
  result.code = code_of(error);
  result.text.append(what).append(": ").append(std::generic_category().message(error));
  return result;
}

}  // namespace stint::net
