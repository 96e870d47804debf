// Plain HTTP routes: limited by client, key, method, path or header, and passed on.
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "gateway/gateway.h"
#include "gateway/refusal.h"
#include "gateway/request.h"
#include "http/authority.h"

namespace stint::gateway {
namespace {

// What the peer itself says: the last of a list, as whoever adds to one adds at its end.
std::string last_element(const http::Fields& fields, std::string_view name) {
  const std::string list = fields.joined(name).value_or("");
  std::string_view last = list;
  const std::size_t comma = last.rfind(',');
  if (comma != std::string_view::npos) last.remove_prefix(comma + 1);
  while (last.starts_with(' ') || last.starts_with('\t')) last.remove_prefix(1);
  return std::string(last);
}

// By what scheme the client came, and for which host: as a trusted proxy says, else as we know.
std::string forwarded_proto(const http::RequestHead& head, bool trusted) {
  const std::string said = trusted ? last_element(head.fields, "X-Forwarded-Proto") : "";
  return http::iequal(said, "https") ? "https" : "http";
}

std::string forwarded_host(const http::RequestHead& head, bool trusted) {
  const std::string said = trusted ? last_element(head.fields, "X-Forwarded-Host") : "";
  const auto authority = http::parse_authority(said, 0);
  if (authority && !authority->host.empty()) return said;
  return std::string(head.fields.get("host").value_or(""));
}

// What the client sent, without what is about its connection. The forwarding fields are replaced,
// not extended: the address that was limited is the one that is passed on.
http::Fields fields_for(const Dispatcher::Request& request, const ClientAddresses& addresses,
                        bool checks_key) {
  const http::RequestHead& head = request.head();
  http::Fields fields = head.fields;
  http::remove_hop_by_hop(fields);
  for (const char* name : {"Content-Length", "Expect", "Host"}) fields.remove(name);
  // A key that admits to this gateway is nobody else's business. Other credentials are not ours.
  if (checks_key) {
    if (is_bearer(fields.get("Authorization").value_or(""))) fields.remove("Authorization");
    fields.remove("x-api-key");
  }
  addresses.remove_claims(fields, request.trusted_peer);
  fields.set("X-Forwarded-For", request.client.address);
  fields.set("X-Forwarded-Host", forwarded_host(head, request.trusted_peer));
  fields.set("X-Forwarded-Proto", forwarded_proto(head, request.trusted_peer));
  fields.set("X-Request-Id", request.id);
  return fields;
}

// For the Allow field: every method with which a route would take the request.
std::string allowed_methods(const config::Snapshot& snapshot, const http::RequestHead& head) {
  std::set<std::string_view> allowed;
  for (const config::Route& route : snapshot.resources().routes) {
    for (const std::string& method : route.match.methods) {
      if (snapshot.find_route(head.host, head.path, method).route) allowed.insert(method);
    }
  }
  std::string text;
  for (const std::string_view method : allowed) {
    if (!text.empty()) text += ", ";
    text += method;
  }
  return text;
}

}  // namespace

net::Task<void> Dispatcher::plain_route(Request& request) {
  const http::RequestHead& head = request.head();
  request.style = HeaderStyle::plain;
  config::RouteMatch match;
  if (head.path.starts_with('/')) {  // else `*`: of the server as a whole, and no route's
    match = request.serving->snapshot().find_route(head.host, head.path, head.method);
  }
  if (match.route != nullptr) {
    request.route = match.route->name;
    request.attributes.set(Dimension::route, match.route->name);
  }
  auto early = co_await admit_early(request);
  if (!early) {
    // How long to wait is for all limits to say.
    const bool known =
        match.route != nullptr && worth_a_look(request) &&
        (match.route->auth == config::Auth::none || !authenticate(request).has_value());
    const Cost one;
    if (known) co_await look_late(request, one);
    co_return co_await refuse(request);
  }
  if (match.other_method) {
    std::string allowed = allowed_methods(request.serving->snapshot(), head);
    co_return co_await wrong_method(request, std::move(allowed));
  }
  if (match.route == nullptr) {
    co_return co_await fail(request, GatewayError::unknown_path, head.path);
  }
  const config::Route& route = *match.route;
  if (route.auth == config::Auth::api_key) {
    const auto failed = authenticate(request);
    if (failed) co_return co_await fail(request, *failed);
  }
  const Cost one;
  auto late = co_await admit_late(request, one);
  if (!late) co_return co_await refuse(request);

  auto body = co_await request.exchange.read_body();
  if (!body) co_return co_await refuse_body(request);
  request.bytes_in = body->size();

  Forwarding forwarding;
  forwarding.origin = request.serving->origin_of(route);
  forwarding.request.method = head.method;
  std::string path = head.path;
  if (!route.strip_prefix.empty() && path.starts_with(route.strip_prefix)) {
    path.erase(0, route.strip_prefix.size());
    if (path.empty() || path.front() != '/') path.insert(0, 1, '/');
  }
  forwarding.request.target = path + head.query;
  forwarding.request.fields =
      fields_for(request, gateway_.addresses(), route.auth == config::Auth::api_key);
  forwarding.request.body = std::move(*body);
  const config::Upstream& upstream = gateway_.bootstrap().upstream;
  forwarding.limits.head_timeout = upstream.timeout;
  forwarding.limits.read_timeout = upstream.stream_timeout;
  co_return co_await forward(request, std::move(forwarding));
}

}  // namespace stint::gateway
