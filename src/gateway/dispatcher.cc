// Which way a request goes, and what is known of it on the way.
#include <algorithm>
#include <utility>

#include "gateway/gateway.h"
#include "gateway/model_list.h"
#include "gateway/refusal.h"
#include "gateway/request.h"

namespace stint::gateway {
namespace {

// A value of these fields that may go into logs and on to an upstream as it is.
bool usable_as_id(std::string_view text) {
  return !text.empty() && text.size() <= 128 &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

constexpr std::string_view kBearer = "bearer ";

// Credentials of another kind beside an x-api-key are not for this gateway.
std::optional<std::string_view> presented_key(const http::Fields& fields) {
  const auto field = fields.get("authorization");
  if (field && is_bearer(*field)) return field->substr(kBearer.size());
  return fields.get("x-api-key");
}

}  // namespace

bool is_bearer(std::string_view authorization) noexcept {
  return authorization.size() > kBearer.size() &&
         http::iequal(authorization.substr(0, kBearer.size()), kBearer);
}

Dispatcher::Request::Request(http::Exchange& exchange_in, std::shared_ptr<const Serving> serving_in,
                             Gateway& gateway, net::EventLoop& loop)
    : exchange(exchange_in),
      serving(std::move(serving_in)),
      started(gateway.clock().steady_now()),
      client(gateway.addresses().of(exchange.peer_address(), exchange.head().fields)),
      trusted_peer(gateway.addresses().trusts(exchange.peer_address())),
      store(std::make_shared<StoreWait>(loop, gateway.store_calls())),
      permit(store) {
  for (const std::string& name : gateway.bootstrap().proxy.request_id_accept_headers) {
    const auto value = head().fields.get(name);
    if (value && usable_as_id(*value)) {
      id = *value;
      break;
    }
  }
  if (id.empty()) id = gateway.new_request_id();
  attributes.set(Dimension::client_ip, client.key)
      .set(Dimension::method, head().method)
      .set(Dimension::path, head().path)
      .set(Dimension::host, head().host);
  if (!serving) return;
  header_values.reserve(serving->header_attributes().size());
  for (const std::string& attribute : serving->header_attributes()) {
    auto value = head().fields.joined(attribute.substr(attribute.find(':') + 1));
    if (!value) continue;
    header_values.push_back(std::move(*value));
    attributes.set(attribute, header_values.back());
  }
}

Dispatcher::Dispatcher(net::EventLoop& loop, Gateway& gateway,
                       std::shared_ptr<const net::TlsClientContext> tls)
    : loop_(loop), gateway_(gateway), upstream_(loop, {}, std::move(tls)) {}
Dispatcher::~Dispatcher() = default;

net::Task<void> Dispatcher::handle(http::Exchange& exchange) {
  Request request(exchange, serving_, gateway_, loop_);
  gateway_.request_metrics().in_flight.add(1);
  std::exception_ptr failure;
  try {
    co_await dispatch(request);
  } catch (...) {
    failure = std::current_exception();
  }
  request.permit.release();
  // The server answers for us now.
  if (failure && !exchange.started() && !exchange.client_gone()) request.status = 500;
  if (failure && request.unsettled()) co_await request.store->until_settled();
  gateway_.request_metrics().in_flight.add(-1);
  finish(request);
  if (failure) std::rethrow_exception(failure);
}

net::Task<void> Dispatcher::dispatch(Request& request) {
  const http::RequestHead& head = request.head();
  if (head.path == "/livez") {
    request.route = "livez";
    http::ResponseHead ok;
    ok.fields.add("Content-Type", "text/plain");
    co_return co_await respond(request, std::move(ok), "ok\n");
  }
  if (head.path == "/readyz") co_return co_await readyz(request);
  if (!request.serving) {
    co_return co_await fail(request, GatewayError::not_ready);
  }
  if (head.path == "/v1/models") co_return co_await models(request);
  if (head.path == "/v1/chat/completions" || head.path == "/v1/embeddings") {
    co_return co_await chat_or_embeddings(request);
  }
  co_return co_await plain_route(request);
}

net::Task<void> Dispatcher::readyz(Request& request) {
  request.route = "readyz";
  const bool ready = request.serving != nullptr && !gateway_.stopping();
  http::ResponseHead head;
  head.status = ready ? 200 : 503;
  head.fields.add("Content-Type", "application/json");
  std::string body = ready                 ? R"({"status":"ready")"
                     : gateway_.stopping() ? R"({"status":"stopping")"
                                           : R"({"status":"waiting for configuration")";
  const std::uint64_t generation = request.serving ? request.serving->snapshot().generation() : 0;
  body += R"(,"generation":)" + std::to_string(generation);
  const StoreHealth health = gateway_.store_health ? gateway_.store_health() : StoreHealth{};
  body += R"(,"store":)" + to_json(health) + "}\n";
  co_return co_await respond(request, std::move(head), std::move(body));
}

// Costs nothing, but for whoever has no key: guessing keys is limited here as elsewhere.
net::Task<void> Dispatcher::models(Request& request) {
  request.route = "models";
  const bool reads = request.head().method == "GET" || request.head().method == "HEAD";
  const auto failed = authenticate(request);
  if (failed || !reads) {
    auto early = co_await admit_early(request);
    if (!early) co_return co_await refuse(request);
    if (!reads) co_return co_await wrong_method(request, "GET, HEAD");
    co_return co_await fail(request, *failed);
  }
  std::string body = model_list(request.serving->snapshot(), *request.key);
  http::ResponseHead head;
  head.fields.add("Content-Type", "application/json");
  co_return co_await respond(request, std::move(head), std::move(body));
}

std::optional<GatewayError> Dispatcher::authenticate(Request& request) const {
  const auto presented = presented_key(request.head().fields);
  if (!presented || presented->empty()) return GatewayError::missing_key;
  const config::ApiKey* key = request.serving->snapshot().find_api_key(*presented);
  if (key == nullptr || key->disabled || key->expired(gateway_.clock().wall_now())) {
    return GatewayError::unknown_key;
  }
  request.key = key;
  request.attributes.set(Dimension::api_key, key->id);
  if (!key->team_id.empty()) request.attributes.set(Dimension::team, key->team_id);
  if (!key->user_id.empty()) request.attributes.set(Dimension::member, key->user_id);
  return std::nullopt;
}

net::Task<bool> Dispatcher::admit_early(Request& request) {
  request.store->ask(gateway_.early(), request.attributes, Cost{});
  return admitted(request);
}

net::Task<bool> Dispatcher::admit_late(Request& request, Cost cost) {
  request.store->ask(gateway_.late(), request.attributes, cost);
  return admitted(request);
}

net::Task<bool> Dispatcher::store_answered(Request& request) {
  if (!request.store->asking()) co_return true;
  request.exchange.watch_client([&request] { request.store->wake(); });
  if (!request.exchange.client_gone()) co_await request.store->until_answered();
  request.exchange.unwatch_client();
  if (!request.exchange.client_gone()) co_return true;
  request.left = true;
  request.store->drop();
  co_return false;
}

bool Dispatcher::worth_a_look(const Request& request) const {
  return !request.left && request.permit.decision().outcome == Outcome::refused &&
         !request.serving->snapshot().late().empty();
}

net::Task<void> Dispatcher::look_late(Request& request, Cost cost) {
  request.store->look(gateway_.late(), request.attributes, cost);
  auto answered = co_await store_answered(request);
  if (!answered) co_return;
  auto looked = request.store->take();
  if (looked) request.permit.look(std::move(looked->decision));
}

net::Task<bool> Dispatcher::admitted(Request& request) {
  auto answered = co_await store_answered(request);
  if (!answered) co_return false;
  auto admission = request.store->take();
  if (!admission) {  // no cost of a request can be out of bounds: a bug, answered as one
    throw std::logic_error("admission failed: " + to_string(admission.error()));
  }
  co_return request.permit.add(std::move(*admission));
}

net::Task<void> Dispatcher::fail(Request& request, GatewayError error, std::string about) {
  co_return co_await give_up(request, error_answer(error, about, request.style));
}

net::Task<void> Dispatcher::fail_or_refuse(Request& request, OwnAnswer answer) {
  if (request.permit.refused()) co_return co_await refuse(request);
  co_return co_await give_up(request, std::move(answer));
}

net::Task<void> Dispatcher::refuse_body(Request& request) {
  const http::Refusal* refusal = request.exchange.body_refusal();
  if (refusal == nullptr) co_return;  // the client is gone
  co_return co_await fail_or_refuse(request, error_answer(*refusal, request.style));
}

net::Task<void> Dispatcher::wrong_method(Request& request, std::string allowed) {
  OwnAnswer answer = error_answer(GatewayError::wrong_method, request.head().method);
  answer.head.fields.add("Allow", std::move(allowed));
  co_return co_await give_up(request, std::move(answer));
}

net::Task<void> Dispatcher::give_up(Request& request, OwnAnswer answer) {
  if (request.permit.limited()) {
    set_rate_limit_fields(answer.head.fields, request.permit.decision(), request.style,
                          gateway_.clock().wall_now());
  }
  co_return co_await respond(request, std::move(answer.head), std::move(answer.body));
}

net::Task<void> Dispatcher::refuse(Request& request) {
  if (request.left) co_return;
  decided(request);
  const Decision& decision = request.permit.decision();
  if (const LimitStatus* refused = decision.refused_by()) request.refused_by = refused->policy_id;
  OwnAnswer answer = stint::gateway::refuse(decision, request.style, gateway_.clock().wall_now());
  co_return co_await respond(request, std::move(answer.head), std::move(answer.body));
}

net::Task<void> Dispatcher::respond(Request& request, http::ResponseHead head, std::string body) {
  // Whoever reads this answer and asks again finds the slot free.
  request.permit.release();
  if (request.unsettled()) co_await request.store->until_settled();
  head.fields.set("X-Request-Id", request.id);
  request.status = head.status;
  request.bytes_out = body.size();
  auto sent = co_await request.exchange.respond(std::move(head), std::move(body));
  if (!sent) request.status = 0;
}

void Dispatcher::decided(Request& request) const {
  if (request.decision_counted || !request.serving || !request.permit.asked()) return;
  request.decision_counted = true;
  const Decision& decision = request.permit.decision();
  request.serving->count(decision, request.permit.given_back());
  if (!gateway_.on_decision) return;
  gateway_.on_decision(decision, request.head().method + " " + request.head().path);
}

void Dispatcher::finish(Request& request) const {
  const Duration took = gateway_.clock().steady_now() - request.started;
  gateway_.request_metrics().count(request.status);
  gateway_.request_metrics().latency.observe(took);
  decided(request);
  if (!gateway_.log().access_log()) return;
  gateway_.log().access(
      {.method = request.head().method,
       .route = request.route,
       .path = request.head().path,
       .status = request.status,
       .duration = took,
       .bytes_in = request.bytes_in,
       .bytes_out = request.bytes_out,
       .input_tokens = request.usage.input_tokens,
       .output_tokens = request.usage.output_tokens,
       .estimated = request.usage.estimated,
       .refused_by = request.refused_by,
       .request_id = request.id,
       .client = request.client.address,
       .api_key = request.key ? std::string_view(request.key->id) : "",
       .model = request.model ? std::string_view(request.model->display_name) : ""});
}

}  // namespace stint::gateway
