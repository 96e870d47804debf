// Requests as they are sent. For the .cc files of the upstream client.
#pragma once

#include <string>

#include "http/origin.h"
#include "http/response_parser.h"
#include "http/upstream.h"

namespace stint::http {

// Shared, because the sending may go on a little after its call has ended.
struct Outgoing {
  std::string head;
  std::string body;
  ResponseTo kind = ResponseTo::other_request;
  bool repeatable = false;  // RFC 9110, section 9.2.2
};

// Throws std::invalid_argument for what would break the head.
[[nodiscard]] Outgoing make_outgoing(const Origin& origin, UpstreamRequest request);

}  // namespace stint::http
