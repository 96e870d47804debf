#include "config/snapshot.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>
#include <utility>

#include "config/policies.h"
#include "config/shape.h"

namespace stint::config {
namespace {

// "*.example.com" stands for every name below example.com, not for itself.
bool host_matches(std::string_view pattern, std::string_view host) noexcept {
  if (pattern.empty()) return true;
  if (!pattern.starts_with("*.")) return pattern == host;
  pattern.remove_prefix(1);
  return host.size() > pattern.size() && host.ends_with(pattern);
}

bool path_matches(const Route::Match& match, std::string_view path) noexcept {
  if (!match.path.empty()) return match.path == path;
  std::string_view prefix = match.path_prefix;
  if (!path.starts_with(prefix)) return false;
  if (prefix.empty() || prefix.ends_with('/')) return true;
  return path.size() == prefix.size() || path[prefix.size()] == '/';
}

// The smaller, the more specific.
auto specificity(const Route& route) noexcept {
  const Route::Match& match = route.match;
  const int host = match.host.empty() ? 2 : match.host.starts_with("*.") ? 1 : 0;
  const auto length = [](const std::string& text) {
    return -static_cast<std::ptrdiff_t>(text.size());
  };
  return std::tuple(host, length(match.host), match.path.empty(), length(match.path_prefix),
                    match.methods.empty());
}

}  // namespace

std::size_t Snapshot::HashOfHash::operator()(const KeyHash& hash) const noexcept {
  // Any bytes of a SHA-256 are as good as a hash of them.
  std::size_t value = 0;
  std::memcpy(&value, hash.data(), sizeof(value));
  return value;
}

Snapshot::Snapshot(Resources resources, std::uint64_t generation)
    : resources_(std::move(resources)), generation_(generation) {
  index();
}

void Snapshot::index() {
  for (const ApiKey& key : resources_.api_keys) api_keys_.emplace(key.hash, &key);
  for (const Model& model : resources_.models) {
    std::string_view name = model.display_name;
    if (model.wildcard()) name.remove_suffix(1);
    (model.wildcard() ? wildcards_ : models_).emplace(name, &model);
    if (model.wildcard()) longest_wildcard_ = std::max(longest_wildcard_, name.size());
  }
  for (const ProviderKey& key : resources_.provider_keys) provider_keys_.emplace(key.id, &key);

  std::vector<std::size_t> order(resources_.routes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t i) {
    return std::tuple_cat(specificity(resources_.routes[i]), std::tuple(i));
  });
  for (const std::size_t i : order) routes_.push_back(&resources_.routes[i]);
}

Loaded<std::shared_ptr<const Snapshot>> Snapshot::create(const std::string& file,
                                                         Resources resources,
                                                         std::uint64_t generation,
                                                         OnStoreError on_store_error) {
  Loaded<std::shared_ptr<const Snapshot>> loaded;
  std::vector<Place> places;
  std::vector<Policy> policies = make_policies(resources, on_store_error, places);
  // Each was validated where it was read; together they may still share an id.
  if (const auto good = validate(policies); !good) {
    std::size_t index = 0;
    const std::string_view field = good.error().field;
    for (const char c : field.substr(std::min(field.find('[') + 1, field.size()))) {
      if (c < '0' || c > '9') break;
      index = index * 10 + static_cast<std::size_t>(c - '0');
    }
    const Place place = index < places.size() ? places[index] : Place{};
    const std::string_view part = field.substr(std::min(field.find('.'), field.size()));
    loaded.faults.push_back(
        {file, place.line, place.column, place.key + std::string(part), good.error().message});
    return loaded;
  }
  std::shared_ptr<Snapshot> snapshot(new Snapshot(std::move(resources), generation));
  for (Policy& policy : policies) {
    (is_early(policy) ? snapshot->early_ : snapshot->late_).push_back(std::move(policy));
  }
  loaded.value = std::move(snapshot);
  return loaded;
}

const ApiKey* Snapshot::find_api_key(const KeyHash& hash) const noexcept {
  const auto found = api_keys_.find(hash);
  return found == api_keys_.end() ? nullptr : found->second;
}

const ApiKey* Snapshot::find_api_key(std::string_view key) const {
  return find_api_key(hash_key(key));
}

const Model* Snapshot::find_model(std::string_view name) const noexcept {
  const auto exact = models_.find(name);
  if (exact != models_.end()) return exact->second;
  // Prefixes end in a slash, and something follows it. Callers choose the name: its length must not
  // matter.
  std::string_view prefix = name.substr(0, std::min(longest_wildcard_, name.size()));
  while (true) {
    const std::size_t slash = prefix.rfind('/');
    if (slash == std::string_view::npos) return nullptr;
    prefix = prefix.substr(0, slash + 1);
    const auto found = wildcards_.find(prefix);
    if (found != wildcards_.end() && prefix.size() < name.size()) return found->second;
    prefix.remove_suffix(1);
  }
}

const ProviderKey* Snapshot::find_provider_key(std::string_view id) const noexcept {
  const auto found = provider_keys_.find(id);
  return found == provider_keys_.end() ? nullptr : found->second;
}

RouteMatch Snapshot::find_route(std::string_view host, std::string_view path,
                                std::string_view method) const noexcept {
  RouteMatch result;
  for (const Route* route : routes_) {
    const Route::Match& match = route->match;
    if (!host_matches(match.host, host) || !path_matches(match, path)) continue;
    if (match.methods.empty() || std::ranges::find(match.methods, method) != match.methods.end()) {
      return {.route = route, .other_method = false};
    }
    result.other_method = true;
  }
  return result;
}

Loaded<std::shared_ptr<const Snapshot>> load_snapshot(
    const std::string& file, std::string_view text, const Environment& environment,
    std::uint64_t generation, OnStoreError on_store_error, int ipv6_prefix) {
  auto resources = parse_resources(file, text, environment, ipv6_prefix);
  if (!resources.value) {
    return {.value = {},
            .faults = std::move(resources.faults),
            .warnings = std::move(resources.warnings)};
  }
  auto snapshot = Snapshot::create(file, std::move(*resources.value), generation, on_store_error);
  snapshot.warnings = std::move(resources.warnings);
  return snapshot;
}

Duration longest_window(const Snapshot& snapshot) noexcept {
  Duration longest{0};
  for (const std::vector<Policy>* policies : {&snapshot.early(), &snapshot.late()}) {
    for (const Policy& policy : *policies) {
      for (const Limit& limit : policy.limits) longest = std::max(longest, limit.window);
    }
  }
  return longest;
}

}  // namespace stint::config
