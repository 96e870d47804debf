// provider_keys, models and api_keys.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "config/address.h"
#include "config/identity.h"
#include "config/limits_reader.h"
#include "config/names.h"
#include "config/rows.h"
#include "config/text_check.h"

namespace stint::config {
namespace {

// The version belongs to the base, but many leave it out where nothing else is in the path.
std::string versioned_base(std::string_view url, Adapter adapter) {
  const std::string_view path = path_of_url(url);
  while (url.ends_with('/')) url.remove_suffix(1);
  const bool add = adapter == Adapter::openai ? path.empty() : !path.ends_with("/v1");
  return std::string(url) + (add ? "/v1" : "");
}

std::optional<std::string> check_model_name(std::string_view name) {
  if (auto wrong = check_name(name)) return wrong;
  const std::size_t star = name.find('*');
  if (star == std::string_view::npos) return std::nullopt;
  const bool at_end = star + 1 == name.size() && star >= 2 && name[star - 1] == '/';
  return at_end ? std::nullopt
                : std::optional<std::string>("may have one '*', at its end after a '/': openai/*");
}

void check_upstream_name(MapReader& reader, Model& model) {
  const auto stars = std::ranges::count(model.model_name, '*');
  if (!reader.given("model_name")) {
    model.model_name = model.wildcard() ? "*" : model.display_name;
  } else if (model.model_name.empty()) {
    reader.fault("model_name", "must not be empty");
  } else if (stars > 1 || (stars == 1 && !model.wildcard())) {
    reader.fault("model_name", "may have one '*', and only where display_name ends in /*");
  }
}

// routing and cooldown: their keys are known, but nothing uses them.
void read_unbuilt(MapReader& reader) {
  const std::size_t faults = reader.context().faults.size();
  MapReader routing = reader.map("routing");
  std::string text;
  std::vector<std::string> texts;
  double weight = 1;
  int number = 0;
  routing.text("strategy", text);
  routing.maps("targets", [&](MapReader& target) {
    target.text("model", text);
    target.decimal("weight", weight, 0, 1e6);
    target.integer("priority", number, 0, 1000);
    target.finish();
  });
  routing.integer("retries", number, 0, 100);
  (void)routing.node("fallback_on_statuses", KnownKey::Kind::list);
  routing.finish();
  (void)reader.node("cooldown", KnownKey::Kind::either);
  if (reader.context().faults.size() != faults) return;
  reader.unavailable("routing");
  reader.unavailable("cooldown");
}

// Exactly one of key_hash, key and key_env. The key itself is in no message and kept nowhere.
void read_key(MapReader& reader, const Environment& environment, ApiKey& out) {
  std::string hash;
  std::string key;
  std::string variable;
  const bool has_hash = reader.secret("key_hash", hash);
  const bool has_key = reader.secret("key", key);
  const bool has_variable = reader.text("key_env", variable);
  constexpr std::array<const char*, 3> kNames{"key_hash", "key", "key_env"};
  const auto given = [&](const char* name) { return reader.given(name); };
  if (std::ranges::count_if(kNames, given) != 1) {
    const auto first = std::ranges::find_if(kNames, given);
    if (first == kNames.end()) {
      reader.fault("", "has no key: give key_hash, key or key_env");
      return;
    }
    const auto second = std::ranges::find_if(first + 1, kNames.end(), given);
    reader.fault(*second, "stands beside " + std::string(*first) + "; keep one of them");
    return;
  }
  if (has_hash) {
    const auto parsed = parse_key_hash(hash);
    if (parsed) out.hash = *parsed;
    if (!parsed) reader.fault("key_hash", "must be a SHA-256 in 64 hexadecimal digits");
  } else if (has_variable) {
    const auto found = environment.find(variable);
    if (found == environment.end()) {
      reader.fault("key_env", "the variable " + quoted(variable) + " is not set");
      return;
    }
    if (find_non_text(found->second)) {
      reader.fault("key_env", "the variable " + quoted(variable) + " " + std::string(kNoText));
      return;
    }
    key = found->second;
  }
  if (has_hash || (!has_key && !has_variable)) return;
  if (key.empty()) {
    reader.fault(has_key ? "key" : "key_env", "must not be empty");
    return;
  }
  out.hash = hash_key(key);
}

void read_expiry(MapReader& reader, ApiKey& out) {
  std::string text;
  if (!reader.text("expires_at", text)) return;
  out.expires_at = parse_time(text);
  if (!out.expires_at) {
    reader.fault("expires_at",
                 quoted(text) + " is no time such as 2030-01-31T23:59:59Z (RFC 3339)");
  }
}

}  // namespace

std::string read_id(MapReader& reader, std::string_view collection, std::string_view name) {
  std::string id;
  if (reader.text("id", id, check_id)) return id;
  return name.empty() || reader.given("id") ? "" : derived_id(collection, name);
}

Draft<ProviderKey> read_provider_key(MapReader reader) {
  ProviderKey row;
  std::string api_key;
  reader.text("display_name", row.display_name, check_name);
  row.id = read_id(reader, "provider_keys", row.display_name);
  reader.text("provider", row.provider);
  if (!reader.given("adapter") && row.provider == "anthropic") row.adapter = Adapter::anthropic;
  reader.choice("adapter", row.adapter, kAdapterNames);
  reader.secret("secret", row.secret);
  if (reader.secret("api_key", api_key) && !reader.given("secret")) row.secret = api_key;
  reader.text("api_base", row.api_base, check_http_url);
  reader.finish();
  row.place = reader.place();

  reader.require("display_name");
  if (reader.given("secret") && reader.given("api_key")) {
    reader.fault("api_key", "says the same as secret; keep one of them");
  }
  const std::string own_provider(kAdapterNames[static_cast<std::size_t>(row.adapter)]);
  if (row.provider.empty()) row.provider = own_provider;
  if (!reader.given("api_base")) {
    // A secret of one provider must not go to another for want of an address.
    if (row.provider != own_provider) {
      reader.fault("api_base", "is missing: where provider " + quoted(row.provider) + " is");
    }
    row.api_base =
        row.adapter == Adapter::openai ? "https://api.openai.com" : "https://api.anthropic.com";
  }
  row.api_base = versioned_base(row.api_base, row.adapter);
  return {std::move(row), std::move(reader)};
}

Draft<Model> read_model(MapReader reader) {
  constexpr std::int64_t kMostTokens = 1'000'000'000;
  Model row;
  std::string key;
  reader.text("display_name", row.display_name, check_model_name);
  row.id = read_id(reader, "models", row.display_name);
  reader.text("provider", row.provider);
  reader.text("model_name", row.model_name);
  reader.text("provider_key_id", row.provider_key_id);
  reader.text("provider_key", key);
  reader.integer("max_output_tokens", row.max_output_tokens, 1, kMostTokens);
  reader.duration("timeout", row.timeout);
  read_limits(reader, "rate_limit", row.rate_limit);
  read_unbuilt(reader);
  reader.finish();
  row.place = reader.place();

  if (reader.require("display_name") && !row.display_name.empty()) check_upstream_name(reader, row);
  if (reader.given("provider_key_id") && reader.given("provider_key")) {
    reader.fault("provider_key", "stands beside provider_key_id; keep one of them");
  } else if (!reader.given("provider_key_id")) {
    reader.require("provider_key");
    row.provider_key_id = std::move(key);
  }
  return {std::move(row), std::move(reader)};
}

Draft<ApiKey> read_api_key(MapReader reader, const Environment& environment) {
  ApiKey row;
  reader.text("display_name", row.display_name, check_name);
  read_key(reader, environment, row);
  const std::string name = row.display_name.empty() ? to_hex(row.hash) : row.display_name;
  row.id = read_id(reader, "api_keys", name);
  reader.texts("allowed_models", row.allowed_models);
  read_limits(reader, "rate_limit", row.rate_limit);
  reader.text("team_id", row.team_id);
  reader.text("user_id", row.user_id);
  reader.boolean("disabled", row.disabled);
  read_expiry(reader, row);
  reader.finish();
  row.place = reader.place();
  return {std::move(row), std::move(reader)};
}

std::string_view to_string(Adapter adapter) noexcept {
  const auto index = static_cast<std::size_t>(adapter);
  return index < kAdapterNames.size() ? kAdapterNames[index] : "unknown";
}

}  // namespace stint::config
