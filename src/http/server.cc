#include "http/server.h"

#include <chrono>
#include <list>
#include <utility>
#include <vector>

#include "http/connection.h"
#include "net/deadline.h"

namespace stint::http {
struct Server::Impl {
  Impl(net::EventLoop& loop, net::Listener listener_in, ServerLimits limits, Handler handler,
       const Server& server)
      : listener(std::move(listener_in)),
        context(loop, limits, std::move(handler), server),
        tasks(loop),
        drain_over(loop.deadlines(), [this] { close_idle(/*also_new=*/true); }) {}

  net::Task<void> serve_connection(net::Stream stream) {
    Connection connection(context, std::move(stream));
    connections.push_front(&connection);
    const auto position = connections.begin();
    co_await connection.run();
    connections.erase(position);
  }

  void close_idle(bool also_new) noexcept {
    for (Connection* connection : connections) connection->close_idle(also_new);
  }

  net::Listener listener;
  ServerContext context;
  std::list<Connection*> connections;
  net::TaskGroup tasks;
  net::Deadline drain_over;
};

Server::Server(net::EventLoop& loop, net::Listener listener, ServerLimits limits, Handler handler)
    : impl_(std::make_unique<Impl>(loop, std::move(listener), limits, std::move(handler), *this)) {}

Server::~Server() = default;

net::Task<void> Server::serve() {
  Impl* const impl = impl_.get();
  for (;;) {
    auto accepted = co_await impl->listener.accept();
    if (!accepted) break;
    impl->tasks.start(impl->serve_connection(std::move(*accepted)));
  }
}

void Server::drain() noexcept {
  if (impl_->context.draining) return;
  impl_->context.draining = true;
  // Clients in the listener's queue believe that they are connected: closing would reset them.
  while (std::optional<net::Stream> stream = impl_->listener.accept_waiting()) {
    impl_->tasks.start(impl_->serve_connection(std::move(*stream)));
  }
  impl_->listener.close();
  impl_->close_idle(/*also_new=*/false);
  impl_->drain_over.arm(impl_->context.loop.now() + impl_->context.limits.drain_grace);
}

net::Task<void> Server::stop() {
  Impl* const impl = impl_.get();
  impl->context.draining = true;
  impl->listener.close();
  impl->drain_over.disarm();
  // Each once, from the front to the back: what `end` calls may take connections out of the list.
  for (std::size_t left = impl->connections.size(); left > 0; --left) {
    auto& all = impl->connections;
    if (all.empty()) break;
    Connection* const connection = all.front();
    all.splice(all.end(), all, all.begin());
    connection->end();
  }
  co_await impl->tasks.join();
}

std::size_t Server::connections() const noexcept { return impl_->connections.size(); }
std::size_t Server::active_exchanges() const noexcept { return impl_->context.exchanges; }

}  // namespace stint::http
