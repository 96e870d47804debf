// Plain HTTP routes: limited by client, key, method, path or header, and passed on.
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "gateway/gateway.h"
#include "gateway/refusal.h"
#include "gateway/request.h"

namespace stint::gateway {
namespace {

// What the client sent, without what is about its connection. The forwarding fields are replaced,
// not extended: the address that was limited is the one that is passed on.
http::Fields fields_for(const http::RequestHead& head, const std::string& client_address,
                        const std::string& request_id, bool checks_key) {
  http::Fields fields = head.fields;
  http::remove_hop_by_hop(fields);
  for (const char* name : {"Content-Length", "Expect", "Host"}) fields.remove(name);
  // A key that admits to this gateway is nobody else's business.
  if (checks_key) {
    fields.remove("Authorization");
    fields.remove("x-api-key");
  }
  fields.set("X-Forwarded-For", client_address);
  fields.set("X-Forwarded-Host", std::string(head.fields.get("host").value_or("")));
  fields.set("X-Forwarded-Proto", "http");
  fields.set("X-Request-Id", request_id);
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
  const config::RouteMatch match =
      request.serving->snapshot().find_route(head.host, head.path, head.method);
  if (match.route != nullptr) {
    request.route = match.route->name;
    request.attributes.set(Dimension::route, match.route->name);
  }
  auto early = co_await admit_early(request);
  if (!early) co_return co_await refuse(request);
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
  if (!body) co_return;  // answered, or gone
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
      fields_for(head, request.client.address, request.id, route.auth == config::Auth::api_key);
  forwarding.request.body = std::move(*body);
  const config::Upstream& upstream = gateway_.bootstrap().upstream;
  forwarding.limits.head_timeout = upstream.timeout;
  forwarding.limits.read_timeout = upstream.stream_timeout;
  co_return co_await forward(request, std::move(forwarding));
}

}  // namespace stint::gateway
