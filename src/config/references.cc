#include "config/references.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

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

// What rows have: values of one attribute.
class Values {
 public:
  void add(std::string_view value) {
    if (!value.empty()) values_.push_back(value);
  }
  [[nodiscard]] bool has(std::string_view value) const noexcept {
    return std::ranges::find(values_, value) != values_.end();
  }
  [[nodiscard]] std::string hint(std::string_view value) const {
    const std::string_view near = nearest(value, values_);
    return near.empty() ? "" : "; did you mean " + std::string(near) + "?";
  }

 private:
  std::vector<std::string_view> values_;
};

class Resolver {
 public:
  explicit Resolver(Drafts& drafts) : drafts_(drafts) {
    for (const auto& draft : drafts.models) {
      values_["model"].add(draft.row.display_name);
      values_["provider"].add(draft.row.provider);
    }
    for (const auto& draft : drafts.api_keys) {
      values_["api_key"].add(draft.row.id);
      names_of_keys_.add(draft.row.display_name);
      values_["team"].add(draft.row.team_id);
      values_["member"].add(draft.row.user_id);
    }
    for (const auto& draft : drafts.routes) values_["route"].add(draft.row.name);
  }

  void check_allowed_models() {
    const Values& models = values_["model"];
    for (auto& draft : drafts_.api_keys) {
      for (std::size_t i = 0; i < draft.row.allowed_models.size(); ++i) {
        const std::string& glob = draft.row.allowed_models[i];
        if (glob.find('*') != std::string::npos || models.has(glob) || covered(glob)) continue;
        warn(draft.reader, "allowed_models[" + std::to_string(i) + "]",
             "there is no model " + quoted(glob) + models.hint(glob));
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
    return std::ranges::any_of(drafts_.models, [&](const Draft<Model>& draft) {
      std::string_view prefix = draft.row.display_name;
      if (!draft.row.wildcard()) return false;
      prefix.remove_suffix(1);
      return name.size() > prefix.size() && name.starts_with(prefix);
    });
  }

  void resolve(PolicyDraft& draft, Condition& condition, const std::string& path) {
    for (std::size_t i = 0; i < condition.children.size(); ++i) {
      resolve(draft, condition.children[i], path + ".children[" + std::to_string(i) + "]");
    }
    const auto known = values_.find(condition.dimension);
    if (!condition.children.empty() || known == values_.end()) return;
    for (std::size_t i = 0; i < condition.values.size(); ++i) {
      std::string& value = condition.values[i];
      if (condition.dimension == "api_key") name_to_id(value);
      if (condition.dimension == "model") id_to_name(value);
      if (value.empty() || known->second.has(value)) continue;
      const bool list = condition.op == Operator::in;
      const std::string field = draft.classic
                                    ? "scope_ref"
                                    : path + ".value" + (list ? "[" + std::to_string(i) + "]" : "");
      const std::string hint =
          condition.dimension == "api_key" ? names_of_keys_.hint(value) : known->second.hint(value);
      warn(draft.reader, field, "there is no " + condition.dimension + " " + quoted(value) + hint);
    }
  }

  void name_to_id(std::string& value) const {
    if (values_.at("api_key").has(value)) return;
    for (const auto& draft : drafts_.api_keys) {
      if (draft.row.display_name == value) {
        value = draft.row.id;
        return;
      }
    }
  }
  void id_to_name(std::string& value) const {
    for (const auto& draft : drafts_.models) {
      if (draft.row.id == value && !draft.row.display_name.empty()) {
        value = draft.row.display_name;
        return;
      }
    }
  }

  Drafts& drafts_;
  std::map<std::string, Values, std::less<>> values_{{"api_key", {}},  {"team", {}},
                                                     {"member", {}},   {"model", {}},
                                                     {"provider", {}}, {"route", {}}};
  Values names_of_keys_;
};

// Ids stand for themselves; else a provider key is known by its name.
void resolve_provider_keys(Drafts& drafts) {
  for (auto& draft : drafts.models) {
    Model& model = draft.row;
    const char* key = draft.reader.given("provider_key_id") ? "provider_key_id" : "provider_key";
    if (model.provider_key_id.empty()) continue;
    const bool by_id = draft.reader.given("provider_key_id");
    Values names;
    const ProviderKey* found = nullptr;
    for (const auto& other : drafts.provider_keys) {
      const std::string& name = by_id ? other.row.id : other.row.display_name;
      names.add(name);
      if (found == nullptr && name == model.provider_key_id) found = &other.row;
    }
    if (found == nullptr) {
      draft.reader.warn(key, "there is no provider key " + quoted(model.provider_key_id) +
                                 names.hint(model.provider_key_id) +
                                 "; requests for this model will fail");
      continue;
    }
    model.provider_key_id = found->id;
    if (model.provider.empty()) model.provider = found->provider;
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
