#include "admin/configuration.h"

#include <chrono>
#include <utility>

#include "stint/policy.h"

namespace stint::admin {
namespace {

std::uint64_t generation_of(const config::Snapshot* snapshot) {
  return snapshot == nullptr ? 0 : snapshot->generation();
}

json::value masked(std::string_view secret) {
  return secret.empty() ? json::value(nullptr) : json::value(text(kMasked));
}

// "stint.yaml:3:5", "environment variable STINT_PROXY__ADDR", "default"
std::string source_of(const config::Setting& setting) {
  if (setting.file.empty()) return "default";
  if (setting.line == 0) return setting.file;
  return setting.file + ":" + std::to_string(setting.line) + ":" + std::to_string(setting.column);
}

json::array settings(const config::Bootstrap& bootstrap) {
  json::array out;
  for (const config::Setting& setting : bootstrap.settings) {
    json::object one;
    one["key"] = text(setting.key);
    one["value"] = setting.secret ? masked(setting.value) : text_or_null(setting.value);
    one["source"] = text(source_of(setting));
    out.push_back(std::move(one));
  }
  return out;
}

json::object row(const config::ProviderKey& key) {
  json::object out;
  out["id"] = text(key.id);
  out["display_name"] = text(key.display_name);
  out["provider"] = text(key.provider);
  out["adapter"] = text(to_string(key.adapter));
  out["api_base"] = text(key.api_base);
  out["secret"] = masked(key.secret);
  return out;
}

json::object row(const config::Model& model) {
  json::object out;
  out["id"] = text(model.id);
  out["display_name"] = text(model.display_name);
  out["provider"] = text(model.provider);
  out["model_name"] = text(model.model_name);
  out["provider_key_id"] = text(model.provider_key_id);
  out["max_output_tokens"] =
      model.max_output_tokens ? json::value(*model.max_output_tokens) : json::value();
  out["timeout_secs"] = model.timeout ? seconds(*model.timeout) : json::value();
  out["rate_limit"] = limits(model.rate_limit.limits);
  return out;
}

// Without the hash: it is as good as the key to whoever can try keys.
json::object row(const config::ApiKey& key) {
  json::object out;
  out["id"] = text(key.id);
  out["display_name"] = text_or_null(key.display_name);
  out["allowed_models"] = texts(key.allowed_models);
  out["team_id"] = text_or_null(key.team_id);
  out["user_id"] = text_or_null(key.user_id);
  out["disabled"] = key.disabled;
  out["expires_at"] = key.expires_at ? json::value(text(rfc3339(*key.expires_at))) : json::value();
  out["rate_limit"] = limits(key.rate_limit.limits);
  return out;
}

json::object row(const config::Route& route) {
  json::object match;
  match["host"] = text_or_null(route.match.host);
  match["path"] = text_or_null(route.match.path);
  match["path_prefix"] = text_or_null(route.match.path_prefix);
  match["methods"] = texts(route.match.methods);
  json::object out;
  out["id"] = text(route.id);
  out["name"] = text(route.name);
  out["match"] = std::move(match);
  out["upstream"] = text(route.upstream);
  out["auth"] = route.auth == config::Auth::api_key ? "api_key" : "none";
  out["strip_prefix"] = text_or_null(route.strip_prefix);
  out["rate_limit"] = limits(route.rate_limit.limits);
  out["group_by"] = route.group_by ? json::value(texts(*route.group_by)) : json::value();
  return out;
}

template <class Row>
json::array rows(const std::vector<Row>& all) {
  json::array out;
  for (const Row& one : all) out.push_back(row(one));
  return out;
}

std::string_view name_of(Operator op) noexcept {
  switch (op) {
    case Operator::equal:
      return "==";
    case Operator::not_equal:
      return "~=";
    case Operator::in:
      return "in";
  }
  return "unknown";
}

json::array conditions(const std::vector<Condition>& all) {
  json::array out;
  for (const Condition& condition : all) {
    json::object one;
    if (condition.children.empty()) {
      one["dimension"] = text(condition.dimension);
      one["operator"] = text(name_of(condition.op));
      one["value"] = condition.op == Operator::in || condition.values.empty()
                         ? json::value(texts(condition.values))
                         : json::value(text(condition.values.front()));
    } else {
      one["logic"] = condition.logic == Logic::all ? "and" : "or";
      one["children"] = conditions(condition.children);
    }
    if (condition.negate) one["negate"] = true;
    out.push_back(std::move(one));
  }
  return out;
}

json::object row(const Policy& policy, std::string_view when) {
  json::object out;
  out["id"] = text(policy.id);
  out["name"] = text(policy.name.empty() ? policy.id : policy.name);
  out["when"] = text(when);
  out["conditions"] = conditions(policy.conditions);
  out["group_by"] = texts(policy.group_by);
  out["limits"] = limits(policy.limits);
  out["mode"] = policy.mode == Mode::shadow ? "shadow" : "enforce";
  out["token_admission"] =
      policy.token_admission == TokenAdmission::reserve ? "reserve" : "postpaid";
  out["on_store_error"] = text(config::to_string(policy.on_store_error));
  return out;
}

}  // namespace

json::object configuration(const Program& program) {
  const auto snapshot = program.snapshot();
  json::object resources;
  if (snapshot) {
    const config::Resources& all = snapshot->resources();
    resources["provider_keys"] = rows(all.provider_keys);
    resources["models"] = rows(all.models);
    resources["api_keys"] = rows(all.api_keys);
    resources["routes"] = rows(all.routes);
  }
  json::object out;
  out["settings"] = settings(program.bootstrap());
  out["generation"] = generation_of(snapshot.get());
  out["resources"] = std::move(resources);
  return out;
}

json::object policies(const Program& program) {
  const auto snapshot = program.snapshot();
  json::array all;
  if (snapshot) {
    for (const Policy& policy : snapshot->early()) all.push_back(row(policy, "before_auth"));
    for (const Policy& policy : snapshot->late()) all.push_back(row(policy, "after_auth"));
  }
  json::object out;
  out["generation"] = generation_of(snapshot.get());
  out["policies"] = std::move(all);
  return out;
}

json::object errors(const Program& program) {
  const ConfigReport report = program.report();
  const auto snapshot = program.snapshot();
  json::object resources;
  resources["file"] = text_or_null(report.resources_file);
  resources["generation"] = generation_of(snapshot.get());
  resources["in_force"] = snapshot != nullptr && report.resources_faults.empty();
  resources["faults"] = faults(report.resources_faults);
  resources["warnings"] = faults(report.resources_warnings);
  json::object bootstrap;
  bootstrap["in_force"] = report.bootstrap_faults.empty() && report.needs_restart.empty();
  bootstrap["faults"] = faults(report.bootstrap_faults);
  bootstrap["warnings"] = faults(report.bootstrap_warnings);
  bootstrap["needs_restart"] = texts(report.needs_restart);
  json::object out;
  out["resources"] = std::move(resources);
  out["bootstrap"] = std::move(bootstrap);
  return out;
}

}  // namespace stint::admin
