// Errors of the network, as a closed set.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

namespace stint::net {

enum class NetErrc : std::uint8_t {
  closed,          // the peer ended the stream in order
  reset,           // the peer broke it off
  timed_out,       // the deadline of the call passed
  cancelled,       // somebody on this side closed it
  refused,         // nobody listens there
  unreachable,     // no route, or the name does not resolve
  address_in_use,  // listening: somebody else holds the port
  tls,             // the handshake or a certificate was not accepted
  failed,          // anything else; see the text
};

struct NetError {
  NetErrc code = NetErrc::failed;
  std::string text{};  // for logs
};

template <class T>
using NetResult = std::expected<T, NetError>;

[[nodiscard]] const char* to_string(NetErrc code) noexcept;

// An error as the result of a function: `return failure(NetErrc::closed, "...")`.
[[nodiscard]] inline std::unexpected<NetError> failure(NetErrc code, std::string text) {
  return std::unexpected(NetError{code, std::move(text)});
}

}  // namespace stint::net
