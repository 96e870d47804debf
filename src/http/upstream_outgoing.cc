#include "http/upstream_outgoing.h"

#include <algorithm>
#include <initializer_list>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "http/syntax.h"

namespace stint::http {

namespace {

// Methods are case-sensitive.
bool is_one_of(std::string_view method, std::initializer_list<std::string_view> methods) noexcept {
  return std::ranges::find(methods, method) != methods.end();
}

void require(bool sound, const char* what) {
  if (!sound) throw std::invalid_argument(std::string("upstream request: malformed ") + what);
}

// What else is wrong with a target is the upstream's to refuse; these would let it write the head.
bool is_target(std::string_view text) noexcept {
  return text.starts_with('/') && std::ranges::none_of(text, [](char c) {
           return static_cast<unsigned char>(c) <= 0x20 || c == '\x7F';
         });
}

}  // namespace

Outgoing make_outgoing(const Origin& origin, UpstreamRequest request) {
  require(is_token(request.method), "method");
  require(is_target(request.target), "target");

  Outgoing out;
  if (request.method == "HEAD") out.kind = ResponseTo::head_request;
  out.repeatable = is_one_of(request.method, {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"});

  std::string& head = out.head;
  head.reserve(1024);
  head.append(request.method).append(" ").append(origin.base_path).append(request.target);
  head.append(" HTTP/1.1\r\nHost: ").append(host_field(origin)).append("\r\n");
  remove_hop_by_hop(request.fields);
  for (const Field& field : request.fields.all()) {
    // The body follows at once: nothing is to be expected.
    if (iequal(field.name, "Host") || iequal(field.name, "Content-Length") ||
        iequal(field.name, "Expect")) {
      continue;
    }
    require(is_token(field.name), "field name");
    require(is_field_value(field.value), "field value");
    head.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  // Also of nothing, where a server expects a body (RFC 9110, section 8.6).
  if (!request.body.empty() || is_one_of(request.method, {"POST", "PUT", "PATCH"})) {
    head.append("Content-Length: ").append(std::to_string(request.body.size())).append("\r\n");
  }
  head.append("\r\n");
  out.body = std::move(request.body);
  return out;
}

}  // namespace stint::http
