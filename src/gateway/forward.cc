// The one way an upstream's answer takes to the client, metered on the way, and settled before
// its last byte.
#include <algorithm>
#include <utility>

#include "gateway/gateway.h"
#include "gateway/refusal.h"
#include "gateway/relay.h"
#include "gateway/request.h"

namespace stint::gateway {
namespace {

// An answer of a known length up to this is collected and sent in one piece.
constexpr std::uint64_t kOnePiece = 64 * 1024;

GatewayError error_of(http::UpstreamErrc code) {
  switch (code) {
    case http::UpstreamErrc::timed_out:
      return GatewayError::upstream_timeout;
    case http::UpstreamErrc::malformed:
      return GatewayError::upstream_malformed;
    case http::UpstreamErrc::connect:
    case http::UpstreamErrc::no_answer:
    case http::UpstreamErrc::cut:
    case http::UpstreamErrc::cancelled:
      return GatewayError::upstream_failed;
  }
  return GatewayError::upstream_failed;
}

}  // namespace

net::Task<void> Dispatcher::forward(Request& request, Forwarding forwarding) {
  decided(request);
  const config::Upstream& configured = gateway_.bootstrap().upstream;
  forwarding.limits.connect_timeout = configured.connect_timeout;
  forwarding.limits.idle_timeout = configured.idle_timeout;
  forwarding.limits.idle_per_origin = static_cast<std::size_t>(configured.max_idle_connections);
  http::UpstreamCancel cancel;
  request.exchange.watch_client([&cancel] { cancel.cancel(); });
  auto sent = co_await upstream_.send(forwarding.origin, std::move(forwarding.request),
                                      forwarding.limits, cancel);
  if (!sent) {
    request.exchange.unwatch_client();
    if (request.exchange.client_gone()) {
      // The upstream has begun to work on it: the input counts, an answer there was none.
      const std::int64_t input = forwarding.meter ? forwarding.meter->input_estimate : 0;
      charge(request, {.input_tokens = input, .estimated = true});
      co_return;
    }
    request.permit.release();
    gateway_.log().warn("upstream failed", {{"upstream", forwarding.origin.host},
                                            {"why", sent.error().text},
                                            {"request_id", request.id}});
    co_return co_await fail(request, error_of(sent.error().code));
  }
  co_return co_await relay(request, std::move(forwarding), std::move(*sent));
}

// The head for the client: the upstream's, without what concerns its connection, and with our
// limits in place of its own.
http::ResponseHead Dispatcher::client_head(Request& request, http::ResponseHead head) {
  http::remove_hop_by_hop(head.fields);
  head.fields.remove("Content-Length");
  set_rate_limit_lines(head, request.permit.decision(), request.style, gateway_.clock().wall_now());
  // A refusal that is not ours: its own Retry-After goes on, marked. The mark is ours alone.
  head.fields.remove("X-Stint-Refused-By");
  if (head.status == 429) head.fields.add("X-Stint-Refused-By", "upstream");
  head.fields.set("X-Request-Id", request.id);
  request.status = head.status;
  return head;
}

net::Task<void> Dispatcher::relay(Request& request, Forwarding forwarding,
                                  std::unique_ptr<http::UpstreamAnswer> answer) {
  Relay relay(request, forwarding.meter, answer->head());
  http::ResponseHead head = client_head(request, answer->take_head());
  const auto length = answer->content_length();
  const bool bodyless = request.head().method == "HEAD" || head.status == 204 || head.status == 304;
  if (bodyless) {  // its head is its last byte
    relay.settle();
    if (request.unsettled()) co_await request.store->until_settled();
  }
  if (length && *length <= kOnePiece && !relay.stream() && !bodyless) {
    co_return co_await relay_whole(request, relay, std::move(head), *answer);
  }
  const auto announced = relay.hides() ? std::optional<std::uint64_t>{} : length;
  auto started = co_await request.exchange.start(std::move(head), announced);
  std::uint64_t received = 0;
  bool writable = started.has_value();
  while (writable) {
    auto piece = co_await answer->read();
    if (!piece) {
      relay.settle();
      co_return co_await break_off(request, relay, error_of(piece.error().code));
    }
    if (piece->empty()) break;
    received += piece->size();
    const std::string_view bytes = relay.take(*piece);
    if (relay.behind()) co_await meter_all(relay);
    // Whoever reads the last byte and asks again is judged with this request.
    if (relay.ended() || (length && received >= *length)) relay.settle();
    if (bytes.empty()) continue;
    request.bytes_out += bytes.size();
    std::string_view last = bytes;
    if (request.unsettled()) {
      const std::string_view first = bytes.substr(0, relay.before_end(bytes));
      last.remove_prefix(first.size());
      if (!first.empty()) {
        auto begun = co_await request.exchange.write(first);
        writable = begun.has_value();
        if (!writable) break;
      }
      co_await request.store->until_settled();
    }
    auto written = co_await request.exchange.write(last);
    writable = written.has_value();
  }
  const std::string_view rest = relay.rest();
  relay.settle();
  request.exchange.unwatch_client();
  if (!writable) co_return;  // the client is gone; the answer is closed with it
  if (request.unsettled()) co_await request.store->until_settled();
  if (!rest.empty()) {
    request.bytes_out += rest.size();
    auto written = co_await request.exchange.write(rest);
    if (!written) co_return;
  }
  auto finished = co_await request.exchange.finish();
  if (!finished) request.status = 0;
}

net::Task<void> Dispatcher::meter_all(Relay& relay) {
  constexpr Duration kOneTurn{0};
  while (relay.behind()) {
    co_await loop_.wait_for(kOneTurn);
    relay.catch_up();
  }
}

// Collects a short answer and sends it in one piece.
net::Task<void> Dispatcher::relay_whole(Request& request, Relay& relay, http::ResponseHead head,
                                        http::UpstreamAnswer& answer) {
  std::string body;
  for (;;) {
    auto piece = co_await answer.read();
    if (!piece) {
      relay.settle();
      request.exchange.unwatch_client();
      if (request.exchange.client_gone()) co_return;
      co_return co_await fail(request, error_of(piece.error().code));
    }
    if (piece->empty()) break;
    body += relay.take(*piece);
    if (relay.behind()) co_await meter_all(relay);
  }
  body += relay.rest();
  relay.settle();
  request.exchange.unwatch_client();
  if (request.unsettled()) co_await request.store->until_settled();
  request.bytes_out = body.size();
  auto sent = co_await request.exchange.respond(std::move(head), std::move(body));
  if (!sent) request.status = 0;
}

// The answer broke in the middle. An event stream ends with an error event in place of its normal
// end; any other body is cut, so that nobody takes it for whole.
net::Task<void> Dispatcher::break_off(Request& request, Relay& relay, GatewayError error) {
  request.exchange.unwatch_client();
  if (request.exchange.client_gone()) co_return;
  gateway_.log().warn("upstream broke off", {{"request_id", request.id}});
  if (request.unsettled()) co_await request.store->until_settled();
  if (!relay.stream()) {
    request.exchange.abort();
    co_return;
  }
  const std::string event = error_event(error, relay.between_events(), request.style);
  auto written = co_await request.exchange.write(event);
  if (!written) co_return;
  auto finished = co_await request.exchange.finish();
  if (!finished) request.status = 0;
}

}  // namespace stint::gateway
