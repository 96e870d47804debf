#include "config/references.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/limits_reader.h"
#include "config/suggest.h"

namespace stint::config {
namespace {

// Reports every row whose text is that of an earlier one. Empty texts are nobody's.
template <class Rows, class Text>
void distinct(Rows& rows, std::string_view key, const char* what, Text text_of) {
  std::map<std::string, const MapReader*> seen;
  for (auto& draft : rows) {
    std::string text = text_of(draft.row);
    if (text.empty()) continue;
    const auto [other, fresh] = seen.emplace(std::move(text), &draft.reader);
    if (fresh) continue;
    const bool given = draft.reader.given(key);
    // Ids that follow from one name or key are alike because those are, which is told by itself.
    if (key == "id" && !given && !other->second->given(key)) continue;
    draft.reader.fault(given ? key : "",
                       std::string(what) + " of " + other->second->path() + ", too");
  }
}

bool is_zero(const KeyHash& hash) noexcept {
  return std::ranges::all_of(hash, [](std::uint8_t byte) { return byte == 0; });
}

// What rows have: values of one attribute, and what each stands for.
class Values {
 public:
  void add(std::string_view value, std::string_view meaning) {
    if (!value.empty()) meanings_.emplace(value, meaning);
  }
  void add(std::string_view value) { add(value, value); }
  [[nodiscard]] bool has(std::string_view value) const { return meanings_.contains(value); }
  // The text that the value stands for; nothing if there is no such value.
  [[nodiscard]] std::optional<std::string> meaning(std::string_view value) const {
    const auto found = meanings_.find(value);
    return found == meanings_.end() ? std::nullopt : std::optional(std::string(found->second));
  }
  // Takes time in proportion to the values: large files go without.
  [[nodiscard]] std::string hint(std::string_view value) const {
    constexpr std::size_t kMany = 200;
    if (meanings_.size() > kMany) return {};
    std::vector<std::string_view> names;
    names.reserve(meanings_.size());
    for (const auto& [name, meaning] : meanings_) names.push_back(name);
    const std::string_view near = nearest(value, names);
    return near.empty() ? "" : "; did you mean " + std::string(near) + "?";
  }

 private:
  std::map<std::string_view, std::string_view> meanings_;
};

class Resolver {
 public:
  explicit Resolver(Drafts& drafts) : drafts_(drafts) {
    for (const auto& draft : drafts.models) {
      const Model& row = draft.row;
      values_["model"].add(row.display_name);
      values_["provider"].add(row.provider);
      ids_["model"].add(row.id, row.display_name);
      if (row.wildcard()) prefixes_.emplace_back(row.display_name);
    }
    for (const auto& draft : drafts.api_keys) {
      const ApiKey& row = draft.row;
      values_["api_key"].add(row.id);
      ids_["api_key"].add(row.display_name, row.id);
      values_["team"].add(row.team_id);
      values_["member"].add(row.user_id);
    }
    for (const auto& draft : drafts.routes) values_["route"].add(draft.row.name);
  }

  void check_allowed_models() {
    const Values& models = values_["model"];
    for (auto& draft : drafts_.api_keys) {
      if (!drafts_.models.empty() && !draft.reader.given("allowed_models")) {
        draft.reader.warn("",
                          "has no allowed_models, and may use no model; [] says that it is meant");
      }
      for (std::size_t i = 0; i < draft.row.allowed_models.size(); ++i) {
        const std::string& glob = draft.row.allowed_models[i];
        if (models.has(glob) || glob == "*") continue;
        const bool stars = glob.find('*') != std::string::npos;
        if (stars ? names_something(glob) : covered(glob)) continue;
        warn(draft.reader, "allowed_models[" + std::to_string(i) + "]",
             stars ? "there is no model that " + quoted(glob) + " stands for"
                   : "there is no model " + quoted(glob) + models.hint(glob));
      }
    }
  }

  void resolve(PolicyDraft& draft) {
    for (std::size_t i = 0; i < draft.row.policy.conditions.size(); ++i) {
      resolve(draft, draft.row.policy.conditions[i], "conditions[" + std::to_string(i) + "]");
    }
  }

 private:
  static void warn(MapReader& reader, const std::string& field, std::string message) {
    // `report` finds the place; what it says is no fault here.
    Context& context = reader.context();
    report(reader, field, message, {});
    context.warnings.push_back(std::move(context.faults.back()));
    context.faults.pop_back();
  }

  [[nodiscard]] bool covered(std::string_view name) const {
    return std::ranges::any_of(prefixes_, [&](std::string_view prefix) {
      prefix.remove_suffix(1);  // the star
      return name.size() > prefix.size() && name.starts_with(prefix);
    });
  }

  // Whether a text that the glob stands for is the name of a model. Each glob is tried once.
  [[nodiscard]] bool names_something(const std::string& glob) {
    const auto [found, fresh] = globs_.emplace(glob, false);
    if (!fresh) return found->second;
    const ApiKey key{.allowed_models = {glob}};
    found->second = std::ranges::any_of(drafts_.models, [&](const auto& draft) {
      return draft.row.wildcard() ? meets(glob, draft.row.display_name)
                                  : key.allows(draft.row.display_name);
    });
    return found->second;
  }

  // Whether the glob stands for a name that a wildcard row takes: its prefix, and more.
  [[nodiscard]] static bool meets(std::string_view glob, std::string_view row) noexcept {
    row.remove_suffix(1);  // the star
    const std::string_view literal = glob.substr(0, glob.find('*'));
    return literal.size() > row.size() ? literal.starts_with(row) : row.starts_with(literal);
  }

  void resolve(PolicyDraft& draft, Condition& condition, const std::string& path) {
    for (std::size_t i = 0; i < condition.children.size(); ++i) {
      resolve(draft, condition.children[i], path + ".children[" + std::to_string(i) + "]");
    }
    const auto known = values_.find(condition.dimension);
    if (!condition.children.empty() || known == values_.end()) return;
    for (std::size_t i = 0; i < condition.values.size(); ++i) {
      std::string& value = condition.values[i];
      if (value.empty() || known->second.has(value)) continue;
      const Values& others = ids_[condition.dimension];
      if (auto meaning = others.meaning(value)) {
        value = std::move(*meaning);
        continue;
      }
      const bool list = condition.op == Operator::in;
      const std::string field = draft.classic
                                    ? "scope_ref"
                                    : path + ".value" + (list ? "[" + std::to_string(i) + "]" : "");
      const std::string hint =
          condition.dimension == "api_key" ? others.hint(value) : known->second.hint(value);
      warn(draft.reader, field, "there is no " + condition.dimension + " " + quoted(value) + hint);
    }
  }

  Drafts& drafts_;
  std::map<std::string, Values, std::less<>> values_{{"api_key", {}},  {"team", {}},
                                                     {"member", {}},   {"model", {}},
                                                     {"provider", {}}, {"route", {}}};
  // Other ways to name the same: the names of keys, the ids of models.
  std::map<std::string, Values, std::less<>> ids_;
  std::map<std::string_view, bool> globs_;  // of allowed_models: whether there is such a model
  std::vector<std::string_view> prefixes_;  // of wildcard rows, with their star
};

// Models name a provider key by its id or by its name.
void resolve_provider_keys(Drafts& drafts) {
  Values ids;
  Values names;
  std::map<std::string_view, std::string_view> providers;
  for (const auto& draft : drafts.provider_keys) {
    ids.add(draft.row.id);
    names.add(draft.row.display_name, draft.row.id);
    providers.emplace(draft.row.id, draft.row.provider);
  }
  for (auto& draft : drafts.models) {
    Model& model = draft.row;
    if (model.provider_key_id.empty()) continue;
    const bool by_id = draft.reader.given("provider_key_id");
    const Values& known = by_id ? ids : names;
    auto id = known.meaning(model.provider_key_id);
    if (!id) {
      draft.reader.fault(by_id ? "provider_key_id" : "provider_key",
                         "there is no provider key " + quoted(model.provider_key_id) +
                             known.hint(model.provider_key_id));
      continue;
    }
    model.provider_key_id = std::move(*id);
    if (model.provider.empty()) model.provider = providers[model.provider_key_id];
  }
}

}  // namespace

void check_distinct(Drafts& drafts) {
  const auto id = [](const auto& row) { return row.id; };
  const auto display_name = [](const auto& row) { return row.display_name; };
  constexpr const char* kIsId = "is the id";
  constexpr const char* kIsName = "is the name";
  distinct(drafts.provider_keys, "display_name", kIsName, display_name);
  distinct(drafts.models, "display_name", kIsName, display_name);
  distinct(drafts.api_keys, "display_name", kIsName, display_name);
  distinct(drafts.routes, "name", kIsName, [](const Route& row) { return row.name; });
  distinct(drafts.policies, "name", kIsName, [](const PolicyRow& row) { return row.policy.name; });
  distinct(drafts.api_keys, "key_hash", "has the key",
           [](const ApiKey& row) { return is_zero(row.hash) ? std::string() : to_hex(row.hash); });

  distinct(drafts.provider_keys, "id", kIsId, id);
  distinct(drafts.models, "id", kIsId, id);
  distinct(drafts.api_keys, "id", kIsId, id);
  distinct(drafts.routes, "id", kIsId, id);
  distinct(drafts.policies, "id", kIsId, [](const PolicyRow& row) { return row.policy.id; });
}

void resolve(Drafts& drafts) {
  resolve_provider_keys(drafts);
  Resolver resolver(drafts);
  resolver.check_allowed_models();
  for (PolicyDraft& draft : drafts.policies) resolver.resolve(draft);
}

}  // namespace stint::config
