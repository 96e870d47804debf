#include "config/resources.h"

#include <algorithm>
#include <utility>

#include "config/identity.h"
#include "config/reach.h"
#include "config/reader.h"
#include "config/references.h"
#include "config/rows.h"
#include "config/substitute.h"
#include "config/yaml.h"

namespace stint::config {
namespace {

void check_version(MapReader& reader) {
  const Node* version = reader.node("_format_version", KnownKey::Kind::value);
  if (version == nullptr) {
    reader.fault("_format_version", "is missing: write _format_version: \"1\"");
  } else if (version->kind != Node::Kind::broken &&
             (version->style == Node::Style::plain || version->text != "1")) {
    reader.fault("_format_version", "must be \"1\", in quotes");
  }
}

template <class Rows>
auto rows_of(Rows& drafts) {
  std::vector<decltype(drafts.front().row)> rows;
  rows.reserve(drafts.size());
  for (auto& draft : drafts) rows.push_back(std::move(draft.row));
  return rows;
}

Resources read_all(Context& context, const Node& root, const Environment& environment) {
  MapReader reader(context, &root, "", {.line = root.line, .column = root.column, .key = ""});
  Drafts drafts;
  check_version(reader);
  reader.maps("provider_keys",
              [&](MapReader& item) { drafts.provider_keys.push_back(read_provider_key(item)); });
  reader.maps("models", [&](MapReader& item) { drafts.models.push_back(read_model(item)); });
  reader.maps("api_keys",
              [&](MapReader& item) { drafts.api_keys.push_back(read_api_key(item, environment)); });
  reader.maps("routes", [&](MapReader& item) { drafts.routes.push_back(read_route(item)); });
  reader.maps("rate_limit_policies",
              [&](MapReader& item) { drafts.policies.push_back(read_policy(item)); });
  reader.finish();
  if (context.known != nullptr) return {};

  check_distinct(drafts);
  check_reach(drafts.routes);
  resolve(drafts);
  return {.provider_keys = rows_of(drafts.provider_keys),
          .models = rows_of(drafts.models),
          .api_keys = rows_of(drafts.api_keys),
          .routes = rows_of(drafts.routes),
          .rate_limit_policies = rows_of(drafts.policies)};
}

// `*` stands for any text. Takes time in proportion to the product of both lengths at most: only
// the last star is ever tried again.
bool matches(std::string_view glob, std::string_view text) noexcept {
  std::size_t g = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_text = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      star_text = t;
    } else if (g < glob.size() && glob[g] == text[t]) {
      ++g;
      ++t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

}  // namespace

std::optional<std::string> check_name(std::string_view name) {
  constexpr std::size_t kLongest = 128;
  const bool control =
      std::ranges::any_of(name, [](char c) { return (c >= 0 && c < ' ') || c == '\x7F'; });
  if (!name.empty() && name.size() <= kLongest && !control) return std::nullopt;
  return "must be 1 to 128 bytes without control characters";
}

std::string upstream_model(const Model& model, std::string_view asked) {
  const std::size_t star = model.model_name.find('*');
  if (star == std::string::npos) return model.model_name;
  const std::size_t prefix = model.display_name.size() - 1;
  std::string name = model.model_name.substr(0, star);
  name += asked.substr(std::min(prefix, asked.size()));
  name += std::string_view(model.model_name).substr(star + 1);
  return name;
}

bool ApiKey::allows(std::string_view model) const noexcept {
  return std::ranges::any_of(allowed_models,
                             [&](const std::string& glob) { return matches(glob, model); });
}

Loaded<Resources> parse_resources(const std::string& file, std::string_view text,
                                  const Environment& environment, int ipv6_prefix) {
  auto tree = parse_yaml(file, text);
  if (!tree.value) return {.value = {}, .faults = std::move(tree.faults), .warnings = {}};
  if (tree.value->kind != Node::Kind::map) {
    const Node& root = *tree.value;
    tree.faults.push_back({file, root.line, root.column, "", "must be a map of keys"});
    return {.value = {}, .faults = std::move(tree.faults), .warnings = {}};
  }
  Context context{.file = file, .faults = std::move(tree.faults), .ipv6_prefix = ipv6_prefix};
  substitute(*tree.value, file, environment, context.faults);
  Resources resources = read_all(context, *tree.value, environment);
  context.sort();
  Loaded<Resources> loaded;
  if (context.faults.empty()) loaded.value = std::move(resources);
  loaded.faults = std::move(context.faults);
  loaded.warnings = std::move(context.warnings);
  return loaded;
}

std::vector<std::string> known_resource_keys() {
  std::vector<KnownKey> known;
  Context context;
  context.known = &known;
  (void)read_all(context, Node{.kind = Node::Kind::map}, {});
  std::vector<std::string> paths;
  for (const KnownKey& key : known) {
    // Keys of several types are asked for more than once.
    if (std::ranges::find(paths, key.path) == paths.end()) paths.push_back(key.path);
  }
  return paths;
}

}  // namespace stint::config
