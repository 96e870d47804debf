// routes.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "config/address.h"
#include "config/limits_reader.h"
#include "config/names.h"
#include "config/request_forms.h"
#include "config/rows.h"
#include "config/shape.h"

namespace stint::config {
namespace {

std::optional<std::string> check_route_path(std::string_view path) {
  if (path.find_first_of("?#* ") != std::string_view::npos) {
    return "must not have a query, '*' or spaces";
  }
  return check_request_path(path);
}

// "/a" stands before "/a" and "/a/b", not before "/ab".
bool is_path_prefix(std::string_view prefix, std::string_view path) noexcept {
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  return path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/');
}

// true: the match's path_prefix; a text: that.
void read_strip_prefix(MapReader& reader, Route& out) {
  const Node* node = reader.node("strip_prefix", KnownKey::Kind::value);
  if (node == nullptr || node->kind == Node::Kind::broken) return;
  if (const auto strip = read_boolean(*node)) {
    if (*strip && out.match.path_prefix.empty()) {
      reader.fault("strip_prefix", "needs match.path_prefix, or the prefix in place of true");
    }
    if (*strip) out.strip_prefix = out.match.path_prefix;
  } else if (reader.text("strip_prefix", out.strip_prefix, check_route_path)) {
    const std::string& path = out.match.path.empty() ? out.match.path_prefix : out.match.path;
    if (!is_path_prefix(out.strip_prefix, path)) {
      reader.fault("strip_prefix", "must be how match.path_prefix or match.path begins");
    }
  }
  while (out.strip_prefix.ends_with('/')) out.strip_prefix.pop_back();
}

void read_match(MapReader reader, Route::Match& out) {
  reader.text("host", out.host, check_match_host);
  reader.text("path", out.path, check_route_path);
  reader.text("path_prefix", out.path_prefix, check_route_path);
  reader.texts("methods", out.methods, check_method);
  reader.finish();
  if (!reader.present()) return;
  if (reader.given("path") && reader.given("path_prefix")) {
    reader.fault("path_prefix", "stands beside path; keep one of them");
  }
  if (reader.self()->children.empty()) {
    reader.fault("", "matches nothing in particular: give host, path, path_prefix or methods");
  }
}

void check_group_by(MapReader& reader, const Route& route) {
  if (!route.group_by) return;
  if (!reader.given("rate_limit")) {
    reader.fault("group_by", "has no effect without rate_limit");
    return;
  }
  for (std::size_t i = 0; i < route.group_by->size(); ++i) {
    const std::string& name = (*route.group_by)[i];
    const auto dimension = parse_dimension(name);
    const std::string field = "group_by[" + std::to_string(i) + "]";
    if (auto wrong = check_attribute(name)) {
      report(reader, field, *wrong, {});
    } else if (dimension == Dimension::model || dimension == Dimension::model_name ||
               dimension == Dimension::provider) {
      report(reader, field, "can never apply: requests of a plain route have no " + name, {});
    } else if (route.auth == Auth::none &&
               (dimension == Dimension::api_key || dimension == Dimension::team ||
                dimension == Dimension::member)) {
      report(reader, field, "can never apply: requests have no " + name + " without auth: api_key",
             {});
    }
  }
}

}  // namespace

Draft<Route> read_route(MapReader reader) {
  Route row;
  const std::size_t faults = reader.context().faults.size();
  reader.text("name", row.name, check_name);
  row.id = read_id(reader, "routes", row.name);
  read_match(reader.map("match"), row.match);
  reader.text("upstream", row.upstream, check_http_url);
  reader.choice("auth", row.auth, kAuthNames);
  read_limits(reader, "rate_limit", row.rate_limit);
  std::vector<std::string> group_by;
  if (reader.texts("group_by", group_by)) row.group_by = std::move(group_by);
  read_strip_prefix(reader, row);
  reader.finish();
  row.place = reader.place();
  while (row.upstream.ends_with('/')) row.upstream.pop_back();

  reader.require("name");
  reader.require("match");
  reader.require("upstream");
  check_group_by(reader, row);
  if (reader.context().known != nullptr || reader.context().faults.size() != faults) {
    return {std::move(row), std::move(reader)};
  }
  Policy policy{.id = row.id, .limits = row.rate_limit.limits};
  policy.conditions.push_back(Condition::equal("route", row.name));
  for (const Error& error : shape_faults(policy, reader.context().ipv6_prefix)) {
    report(reader, error.field, error.message, row.rate_limit.places);
  }
  if (row.group_by && !row.rate_limit.empty()) {
    policy.group_by = *row.group_by;
    if (const auto good = validate(std::vector{policy}); !good) {
      constexpr std::string_view kPrefix = "policies[0].";
      const std::string_view field = good.error().field;
      report(reader, field.starts_with(kPrefix) ? field.substr(kPrefix.size()) : "",
             good.error().message, row.rate_limit.places);
    }
  }
  return {std::move(row), std::move(reader)};
}

}  // namespace stint::config
