// The resources: who may call what, and how often (`resources.yaml`).
// docs/configuration.md describes every key for people.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/bootstrap.h"
#include "config/fault.h"
#include "stint/limit.h"
#include "stint/policy.h"
#include "stint/time.h"

namespace stint::config {

// Where something stands in its file, for faults that are found later.
struct Place {
  int line = 0;
  int column = 0;
  std::string key{};  // "models[0].rate_limit.rpm"
};

// The limits of a row and where each stands.
struct Limits {
  std::vector<Limit> limits{};
  std::vector<Place> places{};  // one for each limit

  [[nodiscard]] bool empty() const noexcept { return limits.empty(); }
};

// SHA-256 of an API key. Plain keys are not kept.
using KeyHash = std::array<std::uint8_t, 32>;
[[nodiscard]] KeyHash hash_key(std::string_view key);
[[nodiscard]] std::string to_hex(const KeyHash& hash);

enum class Adapter : std::uint8_t { openai, anthropic };
[[nodiscard]] std::string_view to_string(Adapter adapter) noexcept;

// Every row has an id: the explicit one, else the UUIDv5 of its collection and name. 1 to 48
// visible ASCII characters without '/'.

struct ProviderKey {
  std::string id{};
  std::string display_name{};
  std::string provider{};  // for people and conditions: "openai", "mistral"
  Adapter adapter = Adapter::openai;
  std::string secret{};  // what the upstream takes us for
  // What stands before "/chat/completions", "/embeddings", "/messages": http or https, with the
  // version ("https://api.openai.com/v1"), without a slash at its end.
  std::string api_base{};
  Place place{};
};

struct Model {
  std::string id{};
  // What callers ask for, and the value of the attribute `model`. May end in "/*".
  std::string display_name{};
  std::string provider{};  // default: that of the provider key
  // What the upstream is asked for; see upstream_model.
  std::string model_name{};
  // Of a row of provider_keys.
  std::string provider_key_id{};
  // The most tokens an answer has if the request does not say. Absent: unknown.
  std::optional<std::int64_t> max_output_tokens{};
  std::optional<Duration> timeout{};  // instead of upstream.timeout_ms
  Limits rate_limit{};
  Place place{};

  [[nodiscard]] bool wildcard() const noexcept { return display_name.ends_with("/*"); }
};

// The name to ask the upstream for, when a caller asked for `asked`: model_name, with its `*` (only
// wildcard rows have one) replaced by what the `*` of display_name stood for.
[[nodiscard]] std::string upstream_model(const Model& model, std::string_view asked);

struct ApiKey {
  std::string id{};            // the value of the attribute `api_key`
  std::string display_name{};  // may be empty
  KeyHash hash{};
  std::vector<std::string> allowed_models{};  // globs; empty: none
  std::string team_id{};                      // attribute `team`; empty: has none
  std::string user_id{};                      // attribute `member`; empty: has none
  bool disabled = false;
  std::optional<TimePoint> expires_at{};  // not valid from then on
  Limits rate_limit{};
  Place place{};

  // Whether the key may be used for a model of this name. `*` stands for any text.
  [[nodiscard]] bool allows(std::string_view model) const noexcept;
  [[nodiscard]] bool expired(TimePoint now) const noexcept {
    return expires_at && *expires_at <= now;
  }
};

enum class Auth : std::uint8_t { none, api_key };

// A plain HTTP route.
struct Route {
  std::string id{};
  std::string name{};  // the value of the attribute `route`
  struct Match {
    std::string host{};                  // lower case, no port; "*.example.com"; empty: any
    std::string path{};                  // exactly this
    std::string path_prefix{};           // this and what lies below: "/a" is not "/ab"
    std::vector<std::string> methods{};  // upper case; empty: any
  } match{};
  std::string upstream{};  // http or https, without a slash at its end
  Auth auth = Auth::none;
  std::string strip_prefix{};  // taken off the front of the path before it is forwarded
  Limits rate_limit{};
  std::optional<std::vector<std::string>> group_by{};
  Place place{};
};

// A row of rate_limit_policies, classic forms already turned into the general one.
struct PolicyRow {
  Policy policy{};
  std::vector<Place> limit_places{};  // one for each limit
  // Absent: ratelimit.on_store_error. Without effect while counters are in memory.
  std::optional<OnStoreError> on_store_error{};
  Place place{};
};

struct Resources {
  std::vector<ProviderKey> provider_keys{};
  std::vector<Model> models{};
  std::vector<ApiKey> api_keys{};
  std::vector<Route> routes{};
  std::vector<PolicyRow> rate_limit_policies{};
};

inline constexpr int kIpv6Prefix = 64;  // the default of proxy.real_ip.ipv6_prefix

// Reads the text of a resources file; `file` names it in faults. `environment` is what ${VAR} and
// key_env mean. `ipv6_prefix`: proxy.real_ip.ipv6_prefix, for conditions on client_ip; 0: unknown.
[[nodiscard]] Loaded<Resources> parse_resources(const std::string& file, std::string_view text,
                                                const Environment& environment,
                                                int ipv6_prefix = kIpv6Prefix);

// Every key that is known, in the order of the documentation; "[]" stands for list elements.
[[nodiscard]] std::vector<std::string> known_resource_keys();

}  // namespace stint::config
