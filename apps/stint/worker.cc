#include "worker.h"

#include <utility>

namespace stint::app {
namespace {

http::ServerLimits limits_of(const config::Proxy& proxy) {
  http::ServerLimits limits;
  limits.request_line_bytes = static_cast<std::size_t>(proxy.request_line_limit_bytes);
  limits.header_bytes = static_cast<std::size_t>(proxy.header_limit_bytes);
  limits.header_count = static_cast<std::size_t>(proxy.header_limit_count);
  limits.body_bytes = static_cast<std::size_t>(proxy.request_body_limit_bytes);
  limits.header_timeout = proxy.header_timeout;
  limits.body_timeout = proxy.body_timeout;
  limits.idle_timeout = proxy.idle_timeout;
  limits.write_timeout = proxy.write_timeout;
  return limits;
}

}  // namespace

net::NetResult<std::unique_ptr<Worker>> Worker::create(
    net::EventLoop& loop, gateway::Gateway& gateway, const net::Endpoint& endpoint,
    std::shared_ptr<const net::TlsClientContext> tls) {
  std::unique_ptr<Worker> worker(new Worker(loop, gateway, std::move(tls)));
  auto listener = net::Listener::open(loop, endpoint);
  if (!listener) return std::unexpected(std::move(listener.error()));
  Worker* self = worker.get();
  worker->server_ = std::make_unique<http::Server>(
      loop, std::move(*listener), limits_of(gateway.bootstrap().proxy),
      [self](http::Exchange& exchange) { return self->dispatcher_.handle(exchange); });
  worker->server_->on_exception = [self](const std::string& what) {
    self->gateway_.log().error("a request failed inside", {{"what", what}});
  };
  worker->server_->on_refused = [self](int status, const std::string& peer) {
    self->gateway_.note_unread(status, peer);
  };
  return worker;
}

Worker::Worker(net::EventLoop& loop, gateway::Gateway& gateway,
               std::shared_ptr<const net::TlsClientContext> tls)
    : gateway_(gateway), loop_(loop), dispatcher_(loop_, gateway, std::move(tls)) {}

Worker::~Worker() { join(); }

void Worker::use(RedisWiring& redis) {
  redis_ = &redis;
  redis.add_loop(loop_);
}

void Worker::start() {
  thread_ = std::thread([this] {
    if (redis_ != nullptr) redis_->store()->start(loop_);
    tasks_.start(serve());
    loop_.run();
  });
}

void Worker::serve_by(std::shared_ptr<const gateway::Serving> serving) {
  loop_.post(
      [this, serving = std::move(serving)]() mutable { dispatcher_.serve_by(std::move(serving)); });
}

void Worker::drain(Duration grace) {
  loop_.post([this, grace] { ending_.start(end(grace)); });
}

void Worker::join() {
  if (thread_.joinable()) thread_.join();
}

net::Task<void> Worker::serve() { co_await server_->serve(); }

net::Task<void> Worker::end(Duration grace) {
  constexpr Duration kLook = std::chrono::milliseconds{20};
  server_->drain();
  const Duration deadline = loop_.now() + grace;
  while (server_->active_exchanges() > 0 && loop_.now() < deadline) {
    co_await loop_.wait_for(kLook);
  }
  co_await server_->stop();
  co_await tasks_.join();
  dispatcher_.close_idle();
  // What was abandoned in the end is settled over this loop's connections.
  const Duration last = loop_.now() + gateway_.store_calls()->settle_timeout.load() + kLook;
  while (redis_ != nullptr && gateway_.orphan_calls() > 0 && loop_.now() < last) {
    co_await loop_.wait_for(kLook);
  }
  if (redis_ != nullptr) co_await redis_->store()->stop(loop_);
  // Not from within: no task may be left when the loop has ended.
  loop_.post([this] {
    ended_ = true;
    loop_.stop();
  });
}

}  // namespace stint::app
