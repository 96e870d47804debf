// Resources ready for use: looked up by what requests bring, and their limits as policies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "config/fault.h"
#include "config/resources.h"
#include "stint/policy.h"

namespace stint::config {

// Which route a request takes.
struct RouteMatch {
  const Route* route = nullptr;
  // No route takes the request, but one would with another method (405 instead of 404).
  bool other_method = false;
};

// Immutable. Thread rule: any thread. What it returns lives as long as it does.
//
// The attributes that the policies are made for, to be set by whoever serves a request:
//   api_key = ApiKey::id, team = ApiKey::team_id, member = ApiKey::user_id (not set where empty);
//   model = Model::display_name of the row (so all aliases of a wildcard row are one), model_name =
//   upstream_model(), provider = Model::provider; route = Route::name (plain routes only);
//   client_ip, host (lower case, no port), method, path (normal form), header:<lower case name>.
class Snapshot {
 public:
  // `generation` numbers the snapshots of a process, from 1. Faults: limits that cannot be
  // enforced, policies that can never apply. Warnings: references to what is not there.
  // `on_store_error`: ratelimit.on_store_error, for policies that do not say.
  [[nodiscard]] static Loaded<std::shared_ptr<const Snapshot>> create(
      const std::string& file, Resources resources, std::uint64_t generation,
      OnStoreError on_store_error = OnStoreError::local);

  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  [[nodiscard]] const Resources& resources() const noexcept { return resources_; }
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }

  // All of these: null if there is none.
  [[nodiscard]] const ApiKey* find_api_key(const KeyHash& hash) const noexcept;
  // As a caller presents it. Takes one SHA-256.
  [[nodiscard]] const ApiKey* find_api_key(std::string_view key) const;
  // The row of exactly this name, else the longest "prefix/*" that it begins with.
  [[nodiscard]] const Model* find_model(std::string_view name) const noexcept;
  [[nodiscard]] const ProviderKey* find_provider_key(std::string_view id) const noexcept;
  // `host` lower case without port, `path` in normal form, without query. The most specific route:
  // an exact host before a wildcard one before none; then an exact path, then the longest prefix;
  // then one that names methods; then the first in the file.
  [[nodiscard]] RouteMatch find_route(std::string_view host, std::string_view path,
                                      std::string_view method) const noexcept;

  // Everything that limits. `early`: needs nothing but client_ip, host, method, path, headers and
  // route, and counts no tokens; to be admitted before authentication. `late`: the rest.
  // Ids: that of the rate_limit_policies row, else "api_keys/<id>", "models/<id>", "routes/<id>".
  [[nodiscard]] const std::vector<Policy>& early() const noexcept { return early_; }
  [[nodiscard]] const std::vector<Policy>& late() const noexcept { return late_; }

 private:
  struct HashOfHash {
    [[nodiscard]] std::size_t operator()(const KeyHash& hash) const noexcept;
  };

  Snapshot(Resources resources, std::uint64_t generation);
  void index();

  Resources resources_;
  std::uint64_t generation_;
  std::unordered_map<KeyHash, const ApiKey*, HashOfHash> api_keys_;
  std::map<std::string_view, const Model*, std::less<>> models_;     // exact
  std::map<std::string_view, const Model*, std::less<>> wildcards_;  // without the "*"
  std::size_t longest_wildcard_ = 0;
  std::map<std::string_view, const ProviderKey*, std::less<>> provider_keys_;
  std::vector<const Route*> routes_;  // most specific first
  std::vector<Policy> early_;
  std::vector<Policy> late_;
};

// Of all limits in it; zero without any.
[[nodiscard]] Duration longest_window(const Snapshot& snapshot) noexcept;

// As parse_resources and Snapshot::create.
[[nodiscard]] Loaded<std::shared_ptr<const Snapshot>> load_snapshot(
    const std::string& file, std::string_view text, const Environment& environment,
    std::uint64_t generation, OnStoreError on_store_error = OnStoreError::local,
    int ipv6_prefix = kIpv6Prefix);

}  // namespace stint::config
