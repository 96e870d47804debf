#include "redis/single.h"

#include <utility>

namespace stint::redis {

Single::Single(net::EventLoop& loop, ServerOptions options) : server_(loop, std::move(options)) {}

Topology::Route Single::route(std::string_view /*routing_key*/) {
  Route route;
  route.target = &server_;
  return route;
}

net::Task<void> Single::stop() { return server_.stop(); }

}  // namespace stint::redis
