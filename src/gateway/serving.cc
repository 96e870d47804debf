#include "gateway/serving.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

namespace stint::gateway {
namespace {

constexpr std::string_view kHeader = "header:";

PolicyMetrics policy_metrics(observe::Metrics& metrics, std::string_view id,
                             const std::vector<Limit>& limits) {
  const auto decisions = [&](std::string_view outcome) {
    return metrics.counter("stint_decisions_total", "Admissions by policy and outcome.",
                           {{"policy", id}, {"outcome", outcome}});
  };
  PolicyMetrics made{decisions("admitted"),       decisions("refused"),     decisions("undecided"),
                     decisions("shadow_refused"), decisions("not_charged"), {}};
  for (const Limit& limit : limits) {
    made.rejections.emplace(
        limit.unit, metrics.counter("stint_rejections_total", "Refusals by policy and unit.",
                                    {{"policy", id}, {"unit", to_string(limit.unit)}}));
  }
  return made;
}

ModelMetrics model_metrics(observe::Metrics& metrics, std::string_view model) {
  const auto tokens = [&](std::string_view kind) {
    return metrics.counter("stint_tokens_total", "Tokens used, by model and kind.",
                           {{"model", model}, {"kind", kind}});
  };
  return {tokens("input"), tokens("output"), tokens("cached_input"), tokens("reasoning_output"),
          metrics.counter("stint_unmetered_replies_total",
                          "Answers without usage, metered by an estimate.", {{"model", model}})};
}

http::Origin parse(const std::string& url) {
  auto origin = http::parse_origin(url);
  if (!origin) throw std::invalid_argument("not an http or https URL: " + url);
  return std::move(*origin);
}

}  // namespace

Serving::Serving(std::shared_ptr<const config::Snapshot> snapshot, observe::Metrics& metrics)
    : snapshot_(std::move(snapshot)), all_(policy_metrics(metrics, "all", {})) {
  const config::Resources& resources = snapshot_->resources();
  for (const config::Route& route : resources.routes) {
    origins_.emplace(&route, parse(route.upstream));
  }
  for (const config::ProviderKey& key : resources.provider_keys) {
    origins_.emplace(&key, parse(key.api_base));
  }
  for (const config::Model& model : resources.models) {
    models_.emplace(&model, model_metrics(metrics, model.display_name));
  }
  add_policies(snapshot_->early(), metrics);
  add_policies(snapshot_->late(), metrics);
}

void Serving::add_policies(const std::vector<Policy>& policies, observe::Metrics& metrics) {
  for (const Policy& policy : policies) {
    PolicyMetrics made = policy_metrics(metrics, policy.id, policy.limits);
    made.info = metrics.gauge("stint_policy_info", "Always 1: the name of each policy's id.",
                              {{"policy", policy.id}, {"name", policy.name}});
    made.info.set(1);
    policies_.emplace(policy.id, std::move(made));
    for (const Condition& condition : policy.conditions) note_headers(condition);
    for (const std::string& attribute : policy.group_by) note_header(attribute);
  }
}

void Serving::note_headers(const Condition& condition) {
  note_header(condition.dimension);
  for (const Condition& child : condition.children) note_headers(child);
}

void Serving::note_header(std::string_view attribute) {
  if (!attribute.starts_with(kHeader)) return;
  std::string name(attribute);
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  });
  if (std::ranges::count(header_attributes_, name) == 0) {
    header_attributes_.push_back(std::move(name));
  }
}

const http::Origin& Serving::origin_of(const config::Route& route) const {
  return origins_.at(&route);
}
const http::Origin& Serving::origin_of(const config::ProviderKey& key) const {
  return origins_.at(&key);
}
const ModelMetrics& Serving::metrics_of(const config::Model& model) const {
  return models_.at(&model);
}

void Serving::count(const Decision& decision, const std::vector<LimitStatus>& given_back) const {
  if (decision.outcome == Outcome::admitted) all_.admitted.add();
  if (decision.outcome == Outcome::refused) all_.refused.add();
  if (decision.outcome == Outcome::undecided) all_.undecided.add();
  count_policies(decision.outcome, decision.limits);
  count_policies(Outcome::refused, given_back);
}

void Serving::count_policies(Outcome outcome, const std::vector<LimitStatus>& limits) const {
  for (std::size_t i = 0; i < limits.size();) {
    const std::string_view id = limits[i].policy_id;
    const bool shadow = limits[i].shadow;
    std::set<Unit> refused;
    for (; i < limits.size() && limits[i].policy_id == id; ++i) {
      const Verdict verdict = limits[i].verdict;
      if (verdict == Verdict::refused || verdict == Verdict::never_fits) {
        refused.insert(limits[i].limit.unit);
      }
    }
    // A policy of the generation before or after this one has no metrics here.
    const auto found = policies_.find(id);
    if (found == policies_.end()) continue;
    const PolicyMetrics& metrics = found->second;
    if (!refused.empty()) {
      (shadow ? metrics.shadow_refused : metrics.refused).add();
    } else if (outcome == Outcome::admitted) {
      metrics.admitted.add();
    } else {
      (outcome == Outcome::refused ? metrics.not_charged : metrics.undecided).add();
    }
    for (const Unit unit : refused) {
      const auto rejection = metrics.rejections.find(unit);
      if (!shadow && rejection != metrics.rejections.end()) rejection->second.add();
    }
  }
}

}  // namespace stint::gateway
