// Chat completions and embeddings: parse, admit, forward, meter.
#include <algorithm>
#include <utility>

#include "gateway/gateway.h"
#include "gateway/openai_request.h"
#include "gateway/refusal.h"
#include "gateway/request.h"

namespace stint::gateway {
namespace {

struct Endpoint {
  OpenAiEndpoint kind;
  std::string_view route;   // for logs
  std::string_view target;  // below the provider's api_base
};

const Endpoint* endpoint_of(std::string_view path) {
  static constexpr Endpoint kEndpoints[] = {
      {OpenAiEndpoint::chat_completions, "chat.completions", "/chat/completions"},
      {OpenAiEndpoint::embeddings, "embeddings", "/embeddings"}};
  for (const Endpoint& endpoint : kEndpoints) {
    if (path.starts_with("/v1") && path.substr(3) == endpoint.target) return &endpoint;
  }
  return nullptr;
}

Cost cost_of(const OpenAiRequest& asked, const config::Model& model) {
  Cost cost{.input_tokens = asked.input_tokens, .output_cap = asked.output_cap};
  if (!cost.output_cap && model.max_output_tokens) {
    const std::int64_t cap = *model.max_output_tokens;
    cost.output_cap = cap > kMaxQuantity / asked.choices ? kMaxQuantity : cap * asked.choices;
  }
  return cost;
}

// What the client sent, without what is about its connection, its key, or the coding of the body:
// the answer is to come as it is, so that it can be metered.
http::Fields fields_for(http::Fields fields, const config::ProviderKey& provider,
                        const std::string& request_id) {
  constexpr std::string_view kReplaced[] = {"Host",          "Content-Length", "Expect",
                                            "Authorization", "x-api-key",      "Accept-Encoding",
                                            "Cookie",        "X-Request-Id"};
  http::remove_hop_by_hop(fields);
  std::erase_if(fields.all(), [&](const http::Field& field) {
    return std::ranges::any_of(
        kReplaced, [&](std::string_view name) { return http::iequal(field.name, name); });
  });
  if (!provider.secret.empty()) fields.add("Authorization", "Bearer " + provider.secret);
  fields.add("Accept-Encoding", "identity");
  fields.add("X-Request-Id", request_id);
  return fields;
}

}  // namespace

net::Task<void> Dispatcher::chat_or_embeddings(Request& request) {
  const Endpoint& endpoint = *endpoint_of(request.head().path);
  request.route = endpoint.route;
  bool early = true;
  if (!request.serving->snapshot().early().empty()) {
    auto admitted = co_await admit_early(request);
    early = admitted;
  }
  const bool post = request.head().method == "POST";
  if (early && !post) co_return co_await wrong_method(request, "POST");
  // Refused, and what it asks for is read all the same: how long to wait is for all limits to say.
  if (!early && !(post && worth_a_look(request))) co_return co_await refuse(request);
  const auto failed = authenticate(request);
  if (failed) co_return co_await fail_or_refuse(request, error_answer(*failed));

  auto body = co_await request.exchange.read_body();
  if (!body) co_return co_await refuse_body(request);
  request.bytes_in = body->size();
  const TokenEstimateOptions options{gateway_.bootstrap().ratelimit.media_part_tokens};
  auto asked = parse_openai_request(endpoint.kind, *body, options);
  if (!asked) co_return co_await fail_or_refuse(request, error_answer(asked.error()));

  const config::Snapshot& snapshot = request.serving->snapshot();
  const config::Model* model = snapshot.find_model(asked->model);
  const config::ProviderKey* provider =
      model == nullptr ? nullptr : snapshot.find_provider_key(model->provider_key_id);
  if (provider == nullptr) {
    OwnAnswer answer = error_answer(GatewayError::unknown_model, asked->model);
    co_return co_await fail_or_refuse(request, std::move(answer));
  }
  request.model = model;
  if (!request.key->allows(asked->model)) {
    OwnAnswer answer = error_answer(GatewayError::forbidden_model, asked->model);
    co_return co_await fail_or_refuse(request, std::move(answer));
  }
  if (provider->adapter != config::Adapter::openai) {
    OwnAnswer answer = error_answer(GatewayError::bad_request,
                                    "this model speaks another format than this endpoint, and no "
                                    "translation is available yet");
    co_return co_await fail_or_refuse(request, std::move(answer));
  }

  const std::string upstream_name = config::upstream_model(*model, asked->model);
  request.attributes.set(Dimension::model, model->display_name)
      .set(Dimension::model_name, upstream_name)
      .set(Dimension::provider, model->provider);
  const Cost cost = cost_of(*asked, *model);
  if (!early) {
    co_await look_late(request, cost);
    co_return co_await refuse(request);
  }
  auto late = co_await admit_late(request, cost);
  if (!late) co_return co_await refuse(request);

  Forwarding forwarding;
  forwarding.origin = request.serving->origin_of(*provider);
  forwarding.request.method = "POST";
  forwarding.request.target = std::string(endpoint.target) + request.head().query;
  http::Fields fields = request.head().fields;
  gateway_.addresses().remove_claims(fields, request.trusted_peer);
  forwarding.request.fields = fields_for(std::move(fields), *provider, request.id);
  forwarding.request.body = rewrite_for_upstream(*body, *asked, upstream_name);
  const config::Upstream& upstream = gateway_.bootstrap().upstream;
  forwarding.limits.head_timeout = model->timeout.value_or(upstream.timeout);
  forwarding.limits.read_timeout =
      asked->stream ? upstream.stream_timeout : forwarding.limits.head_timeout;
  forwarding.meter = UsageMeterOptions{.format = AnswerFormat::openai,
                                       .input_estimate = asked->input_tokens,
                                       .has_output = endpoint.kind != OpenAiEndpoint::embeddings,
                                       .hide_usage_chunk = asked->stream && !asked->include_usage};
  co_return co_await forward(request, std::move(forwarding));
}

}  // namespace stint::gateway
