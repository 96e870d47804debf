// The whole limiter: matching policies, making keys, admitting, settling.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "stint/limiter.h"

namespace stint::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kPlenty = 1'000'000'000;

Attributes request() {
  Attributes attributes;
  attributes.set(Dimension::api_key, "key-0123456789abcdef");
  attributes.set(Dimension::team, "team-7");
  attributes.set(Dimension::member, "alice");
  attributes.set(Dimension::model, "gpt-large");
  attributes.set(Dimension::client_ip, "203.0.113.7");
  attributes.set(Dimension::method, "POST");
  attributes.set(Dimension::path, "/v1/chat/completions");
  return attributes;
}

void admit_again(benchmark::State& state, Limiter& limiter) {
  const Attributes attributes = request();
  for (auto _ : state) {
    auto admission = limiter.admit(attributes);
    benchmark::DoNotOptimize(admission->decision.outcome);
    (void)admission->reservation.commit();
  }
  auto last = limiter.admit(attributes);
  if (!last->admitted() || last->decision.limits.empty()) state.SkipWithError("not limited");
}

Policy of_team(std::size_t number) {
  const std::string team = "team-" + std::to_string(number);
  return {.id = "policy-" + std::to_string(number),
          .conditions = {Condition::equal("team", team)},
          .group_by = {"api_key"},
          .limits = {requests_per(60s, kPlenty)}};
}

// Of 1 or 1,000 policies, each about another team, one applies.
void admit_with_policies(benchmark::State& state) {
  std::vector<Policy> policies;
  for (std::size_t i = 0; policies.size() < static_cast<std::size_t>(state.range(0)); ++i) {
    policies.push_back(of_team(state.range(0) == 1 ? 7 : i));
  }
  auto limiter = Limiter::create(policies);
  admit_again(state, *limiter);
}
BENCHMARK(admit_with_policies)->Arg(1)->Arg(1000);

// The key's limit, the model's and the team's, as a gateway has them: six limits.
void admit_like_a_gateway(benchmark::State& state) {
  auto limiter =
      Limiter::create({{.id = "key",
                        .group_by = {"api_key"},
                        .limits = {requests_per(1s, kPlenty), requests_per(60s, kPlenty)}},
                       {.id = "model",
                        .group_by = {"model"},
                        .limits = {requests_per(60s, kPlenty), tokens_per(60s, kPlenty)}},
                       {.id = "team",
                        .group_by = {"team"},
                        .limits = {requests_per(86400s, kPlenty), tokens_per(86400s, kPlenty)}}});
  const Attributes attributes = request();
  for (auto _ : state) {
    auto admission = limiter->admit(attributes, {.input_tokens = 100, .output_cap = 50});
    if (!admission->admitted()) state.SkipWithError("refused");
    (void)admission->reservation.commit({.input_tokens = 100, .output_tokens = 20});
  }
}
BENCHMARK(admit_like_a_gateway);

void admit_with_a_slot(benchmark::State& state) {
  auto limiter =
      Limiter::create({{.id = "key", .group_by = {"api_key"}, .limits = {in_flight(5)}}});
  admit_again(state, *limiter);
}
BENCHMARK(admit_with_a_slot);

// Compare items_per_second of one and of two threads.
void admit_from_threads(benchmark::State& state) {
  static std::unique_ptr<Limiter> limiter;
  if (state.thread_index() == 0) {
    limiter = std::make_unique<Limiter>(*Limiter::create({of_team(7)}));
  }
  const std::string key = "key-" + std::to_string(state.thread_index());
  Attributes attributes = request();
  attributes.set(Dimension::api_key, key);
  for (auto _ : state) {
    for (int i = 0; i < 1000; ++i) {
      auto admission = limiter->admit(attributes);
      benchmark::DoNotOptimize(admission->decision.outcome);
      (void)admission->reservation.commit();
    }
  }
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(admit_from_threads)->Threads(1)->Threads(2)->UseRealTime();

}  // namespace
}  // namespace stint::bench
