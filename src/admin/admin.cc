#include "admin/admin.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include "admin/buckets.h"
#include "admin/configuration.h"
#include "limit/bucket_key.h"

namespace stint::admin {
namespace {

constexpr std::string_view kRoot = "/admin/v1";

struct Endpoint {
  std::string_view path;  // behind the root
  std::string_view allow;
  std::string_view about;
};
constexpr std::array<Endpoint, 9> kEndpoints{{
    {"", "GET, HEAD", "what there is"},
    {"/ring", "GET, HEAD", "the shards, their weights and shares"},
    {"/shards", "GET, HEAD", "how the shards are doing"},
    {"/location", "GET, HEAD", "where the bucket of ?key= lives"},
    {"/buckets", "GET, HEAD, DELETE", "live buckets of ?pattern=; DELETE forgets them"},
    {"/reset", "POST", "forgets the buckets of {\"pattern\"}"},
    {"/config", "GET, HEAD", "the configuration in force"},
    {"/config/errors", "GET, HEAD", "what was wrong with what was read last"},
    {"/policies", "GET, HEAD", "the policies in force"},
}};

constexpr std::size_t kMostListed = 1000;
constexpr std::size_t kMostPattern = 2048;

// Null: there is no such endpoint.
const Endpoint* find_endpoint(std::string_view path) {
  if (!path.starts_with(kRoot)) return nullptr;
  path.remove_prefix(kRoot.size());
  const auto* const found = std::ranges::find(kEndpoints, path, &Endpoint::path);
  return found == kEndpoints.end() ? nullptr : found;
}

bool allows(const Endpoint& endpoint, std::string_view method) {
  std::string_view left = endpoint.allow;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find(", "), left.size());
    if (left.substr(0, end) == method) return true;
    left.remove_prefix(std::min(end + 2, left.size()));
  }
  return false;
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = fault == std::errc{} && end == text.data() + text.size() && !text.empty();
  return whole ? std::optional(value) : std::nullopt;
}

// The parameters of a sweep; an error says what is wrong with them.
Parameters::OrWhyNot<Sweep> sweep_of(const Parameters::OrWhyNot<Parameters>& given,
                                     std::string_view default_pattern) {
  if (!given) return std::unexpected(given.error());
  const Parameters& parameters = *given;
  Sweep sweep;
  sweep.pattern = parameters.get("pattern").value_or(default_pattern);
  if (sweep.pattern.empty()) return std::unexpected<std::string>("pattern is missing");
  if (sweep.pattern.size() > kMostPattern)
    return std::unexpected<std::string>("pattern is too long");
  const std::string_view cursor = parameters.get("cursor").value_or("0");
  const auto from = number<std::uint64_t>(cursor);
  if (!from) return std::unexpected<std::string>("cursor must be the `next` of the page before");
  sweep.cursor = *from;
  const auto limit = number<std::size_t>(parameters.get("limit").value_or("100"));
  if (!limit || *limit < 1 || *limit > kMostListed) {
    return std::unexpected<std::string>("limit must be 1 to 1000");
  }
  sweep.limit = *limit;
  return sweep;
}

json::object index() {
  json::array all;
  for (const Endpoint& endpoint : kEndpoints) {
    json::object one;
    one["path"] = text(std::string(kRoot) + std::string(endpoint.path));
    one["methods"] = text(endpoint.allow);
    one["about"] = text(endpoint.about);
    all.push_back(std::move(one));
  }
  json::object out;
  out["endpoints"] = std::move(all);
  return out;
}

bool is_json(const http::Fields& fields) {
  const std::string_view type = fields.get("content-type").value_or("");
  return http::iequal(type.substr(0, std::min(type.find(';'), type.size())), "application/json");
}

}  // namespace

Admin::Admin(net::EventLoop& loop, const config::Admin& config, const Program& program,
             const Places& places, store::RateStore& store, const observe::Log& log)
    : loop_(loop), guard_(config), program_(program), places_(places), store_(store), log_(log) {}

net::Task<void> Admin::handle(http::Exchange& exchange) {
  const http::RequestHead& head = exchange.head();
  if (auto refused = refusal(head)) co_return co_await respond(exchange, std::move(*refused));
  const std::string_view path = std::string_view(head.path).substr(kRoot.size());
  if (path == "/reset") {
    auto body = co_await exchange.read_body();
    if (!body) co_return;  // the server says why
    auto parameters = Parameters::of_json(*body, {"pattern", "cursor"});
    auto answer = co_await reset(std::move(parameters), exchange.peer_address());
    co_return co_await respond(exchange, std::move(answer));
  }
  if (path == "/buckets" && head.method == "DELETE") {
    auto parameters = Parameters::of_query(head.query, {"pattern", "cursor"});
    auto answer = co_await reset(std::move(parameters), exchange.peer_address());
    co_return co_await respond(exchange, std::move(answer));
  }
  if (path == "/buckets") {
    auto answer = co_await list(head.query);
    co_return co_await respond(exchange, std::move(answer));
  }
  Answer answer = at_once(head);
  co_return co_await respond(exchange, std::move(answer));
}

net::Task<void> Admin::respond(http::Exchange& exchange, Answer answer) {
  http::ResponseHead head;
  head.status = answer.status;
  head.fields.add("Content-Type", "application/json");
  head.fields.add("Cache-Control", "no-store");
  head.fields.add("X-Content-Type-Options", "nosniff");
  if (answer.status == 401) head.fields.add("WWW-Authenticate", "Bearer");
  if (!answer.allow.empty()) head.fields.add("Allow", answer.allow);
  auto sent = co_await exchange.respond(std::move(head), json::serialize(answer.body) + "\n");
  (void)sent;
}

std::optional<Admin::Answer> Admin::refusal(const http::RequestHead& head) const {
  if (const auto denial = guard_.check(head)) {
    return Answer{denial->status, error(denial->code, denial->message)};
  }
  const Endpoint* const endpoint = find_endpoint(head.path);
  if (endpoint == nullptr) {
    return Answer{404,
                  error("not_found", "there is nothing here; GET /admin/v1 says what there is")};
  }
  if (!allows(*endpoint, head.method)) {
    return Answer{405, error("method_not_allowed", "not with this method"),
                  std::string(endpoint->allow)};
  }
  // Which no form of another site can send.
  if (endpoint->path == "/reset" && !is_json(head.fields)) {
    return Answer{415, error("unsupported_media_type", "needs Content-Type: application/json")};
  }
  return std::nullopt;
}

Admin::Answer Admin::at_once(const http::RequestHead& head) const {
  const std::string_view path = std::string_view(head.path).substr(kRoot.size());
  if (path == "/location") return location(head);
  if (const auto none = Parameters::of_query(head.query, {}); !none) {
    return {400, error("invalid_argument", none.error())};
  }
  if (path == "/ring") return ring();
  if (path == "/shards") return shards();
  if (path == "/config") return {200, configuration(program_)};
  if (path == "/config/errors") return {200, errors(program_)};
  if (path == "/policies") return {200, policies(program_)};
  return {200, index()};
}

Admin::Answer Admin::ring() const {
  const Ring ring = places_.ring();
  json::array all;
  for (const Shard& shard : ring.shards) {
    json::object one;
    one["name"] = text(shard.name);
    one["address"] = text_or_null(shard.address);
    one["weight"] = shard.weight;
    one["points"] = shard.points == 0 ? json::value(nullptr) : json::value(shard.points);
    one["share"] = shard.share ? json::value(*shard.share) : json::value(nullptr);
    all.push_back(std::move(one));
  }
  json::object body;
  body["backend"] = text(ring.backend);
  body["mode"] = text(ring.mode);
  body["virtual_nodes"] =
      ring.virtual_nodes == 0 ? json::value(nullptr) : json::value(ring.virtual_nodes);
  body["shards"] = std::move(all);
  return {200, std::move(body)};
}

Admin::Answer Admin::shards() const {
  bool degraded = false;
  json::array all;
  for (const ShardHealth& shard : places_.health()) {
    json::object one;
    one["name"] = text(shard.name);
    one["degraded"] = shard.degraded;
    one["why"] = shard.degraded ? text_or_null(shard.why) : json::value(nullptr);
    one["since"] = shard.degraded ? json::value(rfc3339(shard.since)) : json::value(nullptr);
    degraded = degraded || shard.degraded;
    all.push_back(std::move(one));
  }
  json::object body;
  body["degraded"] = degraded;
  body["shards"] = std::move(all);
  return {200, std::move(body)};
}

Admin::Answer Admin::location(const http::RequestHead& head) const {
  const auto parameters = Parameters::of_query(head.query, {"key"});
  if (!parameters) return {400, error("invalid_argument", parameters.error())};
  const std::string_view key = parameters->get("key").value_or("");
  if (key.empty()) return {400, error("invalid_argument", "key is missing")};
  const std::string name = places_.shard_of(limit::key_of(key));
  const Ring ring = places_.ring();
  const auto shard = std::ranges::find(ring.shards, name, &Shard::name);
  json::object body;
  body["key"] = text(key);
  body["shard"] = text(name);
  body["address"] =
      shard == ring.shards.end() ? json::value(nullptr) : text_or_null(shard->address);
  return {200, std::move(body)};
}

net::Task<Admin::Answer> Admin::list(std::string query) {
  // To look at all of them is harmless.
  auto sweep = sweep_of(Parameters::of_query(query, {"pattern", "cursor", "limit"}), "*");
  Answer answer;
  if (!sweep) {
    answer = {400, error("invalid_argument", sweep.error())};
    co_return answer;
  }
  auto page = co_await list_buckets(loop_, store_, std::move(*sweep));
  answer.body = listing(page, places_, program_.snapshot().get());
  co_return answer;
}

net::Task<Admin::Answer> Admin::reset(Parameters::OrWhyNot<Parameters> parameters,
                                      std::string peer) {
  // Whoever means all of them says so.
  auto sweep = sweep_of(parameters, "");
  Answer answer;
  if (!sweep) {
    answer = {400, error("invalid_argument", sweep.error())};
    co_return answer;
  }
  const std::string pattern = sweep->pattern;
  auto page = co_await reset_buckets(loop_, store_, std::move(*sweep));
  log_.info("buckets were reset through the admin API",
            {{"pattern", pattern},
             {"removed", static_cast<std::int64_t>(page.removed)},
             {"complete", page.unreached.empty()},
             {"peer", peer}});
  answer.body = reset_result(page);
  co_return answer;
}

}  // namespace stint::admin
