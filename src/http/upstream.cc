#include "http/upstream.h"

#include <optional>
#include <utility>

#include "http/upstream_answer.h"
#include "http/upstream_cancel.h"
#include "http/upstream_outgoing.h"
#include "http/upstream_pool.h"
#include "net/stream.h"

namespace stint::http {

namespace {

using Connected = std::optional<net::NetResult<net::Stream>>;

UpstreamError error_of(UpstreamErrc code, const std::string& origin, const std::string& text) {
  UpstreamError error;
  error.code = code;
  error.text = origin + ": " + text;
  return error;
}

net::Task<void> connect_into(net::EventLoop& loop, net::ConnectTo to, Duration timeout,
                             Connected& result) {
  auto connected = co_await net::connect(loop, std::move(to), timeout);
  result.emplace(std::move(connected));
}

}  // namespace

const char* to_string(UpstreamErrc code) noexcept {
  switch (code) {
    case UpstreamErrc::connect:
      return "connect";
    case UpstreamErrc::no_answer:
      return "no_answer";
    case UpstreamErrc::timed_out:
      return "timed_out";
    case UpstreamErrc::malformed:
      return "malformed";
    case UpstreamErrc::cut:
      return "cut";
    case UpstreamErrc::cancelled:
      return "cancelled";
  }
  return "unknown";
}

struct UpstreamClient::Impl {
  Impl(net::EventLoop& loop_in, const UpstreamLimits& limits,
       std::shared_ptr<const net::TlsClientContext> tls_in)
      : loop(loop_in),
        pool(std::make_shared<UpstreamPool>(loop, limits.idle_per_origin, limits.idle_timeout)),
        tls(std::move(tls_in)) {}

  // Name of the origin in the pool and in texts. The base path does not matter to a connection.
  static std::string name_of(const Origin& origin) {
    return (origin.tls ? "https://" : "http://") + host_field(origin);
  }

  net::Task<UpstreamResult<net::Stream>> connect(Origin origin, Duration timeout,
                                                 UpstreamCancel& cancel) const;

  net::EventLoop& loop;
  std::shared_ptr<UpstreamPool> pool;
  std::shared_ptr<const net::TlsClientContext> tls;
};

net::Task<UpstreamResult<net::Stream>> UpstreamClient::Impl::connect(Origin origin,
                                                                     Duration timeout,
                                                                     UpstreamCancel& cancel) const {
  const std::string name = name_of(origin);
  net::ConnectTo to(origin.host, origin.port);
  if (origin.tls) {
    if (!tls) co_return std::unexpected(error_of(UpstreamErrc::connect, name, "no TLS set up"));
    to.tls = tls;
  }
  // In a group of its own, because that is what can be ended from outside.
  Connected connected;
  std::string exception;
  net::TaskGroup group(loop);
  group.on_exception = [&exception](const std::string& what) { exception = what; };
  const CancelHook on_cancel(cancel, [&group] { group.cancel_all(); });
  group.start(connect_into(loop, std::move(to), timeout, connected));
  co_await group.join();

  if (cancel.cancelled()) {
    co_return std::unexpected(error_of(UpstreamErrc::cancelled, name, "cancelled"));
  }
  if (!connected) co_return std::unexpected(error_of(UpstreamErrc::connect, name, exception));
  if (!*connected) {
    const net::NetError& error = connected->error();
    const bool cancelled = error.code == net::NetErrc::cancelled;
    const UpstreamErrc code = cancelled ? UpstreamErrc::cancelled : UpstreamErrc::connect;
    co_return std::unexpected(error_of(code, name, error.text));
  }
  co_return std::move(**connected);
}

UpstreamClient::UpstreamClient(net::EventLoop& loop, UpstreamLimits limits,
                               std::shared_ptr<const net::TlsClientContext> tls)
    : impl_(std::make_unique<Impl>(loop, limits, std::move(tls))) {}

UpstreamClient::~UpstreamClient() = default;

net::Task<UpstreamResult<std::unique_ptr<UpstreamAnswer>>> UpstreamClient::send(
    Origin origin, UpstreamRequest request, UpstreamLimits limits, UpstreamCancel& cancel) {
  const auto outgoing = std::make_shared<const Outgoing>(make_outgoing(origin, std::move(request)));
  PooledAnswer::Home home;
  home.pool = impl_->pool;
  home.origin = Impl::name_of(origin);

  if (cancel.cancelled()) {
    co_return std::unexpected(error_of(UpstreamErrc::cancelled, home.origin, "cancelled"));
  }
  std::optional<net::Stream> stream = impl_->pool->take(home.origin);
  bool kept = stream.has_value();
  while (true) {
    if (!stream) {
      auto connected = co_await impl_->connect(origin, limits.connect_timeout, cancel);
      if (!connected) co_return std::unexpected(connected.error());
      stream = std::move(*connected);
    }
    auto answer = std::make_unique<PooledAnswer>(impl_->loop, home, std::move(*stream), limits,
                                                 cancel, outgoing);
    const auto exchanged = co_await answer->exchange();
    if (exchanged) co_return answer;
    if (!kept || !outgoing->repeatable || !answer->died_unanswered()) {
      co_return std::unexpected(exchanged.error());
    }
    kept = false;
    stream.reset();
  }
}

std::size_t UpstreamClient::idle_connections() const noexcept { return impl_->pool->size(); }

void UpstreamClient::close_idle() noexcept { impl_->pool->clear(); }

}  // namespace stint::http
