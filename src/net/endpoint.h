// Binding sockets to endpoints. For the .cc files of net.
#pragma once

#include <cstdint>
#include <string>

#include "net/listener.h"
#include "net/result.h"
#include "net/socket.h"

namespace stint::net {

// A listening, non-blocking socket.
[[nodiscard]] NetResult<FileDescriptor> bind_endpoint(const Endpoint& endpoint, bool reuse_port);
[[nodiscard]] std::uint16_t bound_port(int socket) noexcept;

}  // namespace stint::net
