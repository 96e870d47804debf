#include "config/environment.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "config/suggest.h"
#include "config/text_check.h"

namespace stint::config {
namespace {

constexpr std::string_view kPrefix = "STINT_";

// "proxy.real_ip.header" as "STINT_PROXY__REAL_IP__HEADER".
std::string variable_of(std::string_view path) {
  std::string name(kPrefix);
  for (const char c : path) {
    if (c == '.') {
      name += "__";
    } else {
      name += c >= 'a' && c <= 'z' ? static_cast<char>(c - ('a' - 'A')) : c;
    }
  }
  return name;
}

// The value goes to the path, over what stands there. Where the file has something else than a map
// on the way, the file is at fault and will be told so.
void put(Node& root, std::string_view path, const std::string& variable, const std::string& text,
         Context& context) {
  const bool good = !find_non_text(text);
  if (!good) {
    context.faults.push_back(
        {"environment variable " + variable, 0, 0, std::string(path), std::string(kNoText)});
  }
  Node* node = &root;
  while (true) {
    if (node->kind == Node::Kind::empty) node->kind = Node::Kind::map;
    if (node->kind != Node::Kind::map) return;
    const std::size_t dot = path.find('.');
    const std::string_view name = path.substr(0, dot);
    Node* child = node->find(name);
    if (child == nullptr) {
      node->children.push_back(Node{.name = std::string(name)});
      child = &node->children.back();
    }
    node = child;
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
  }
  node->kind = good ? Node::Kind::scalar : Node::Kind::broken;
  node->style = Node::Style::untyped;
  node->text = text;
  node->variable = variable;
  node->children.clear();
}

const Node* get(const Node& root, std::string_view path) {
  const Node* node = &root;
  while (node != nullptr) {
    const std::size_t dot = path.find('.');
    node = node->find(path.substr(0, dot));
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
  }
  return node;
}

bool holds(const Node& root, std::string_view path, std::string_view text) {
  const Node* node = get(root, path);
  return node != nullptr && node->kind == Node::Kind::scalar && node->text == text;
}

bool any_of(const Node& root, std::span<const std::string_view> paths) {
  return std::ranges::any_of(paths, [&](auto path) { return get(root, path) != nullptr; });
}

}  // namespace

void apply_variables(Node& root, const Environment& environment, std::span<const KnownKey> known,
                     Context& context) {
  std::vector<std::string> names;
  for (const KnownKey& key : known) names.push_back(variable_of(key.path));
  const std::vector<std::string_view> views(names.begin(), names.end());

  for (auto it = environment.lower_bound(kPrefix);
       it != environment.end() && it->first.starts_with(kPrefix); ++it) {
    const auto& [variable, text] = *it;
    const auto found = std::ranges::find(names, variable);
    const std::string where = "environment variable " + variable;
    const bool nested = variable.find("__", kPrefix.size()) != std::string::npos;
    if (found == names.end()) {
      if (!nested) continue;
      const std::string_view near = nearest(variable, views);
      context.warnings.push_back(
          {where, 0, 0, "",
           "names no key" + (near.empty() ? "" : "; did you mean " + std::string(near) + "?")});
      continue;
    }
    const KnownKey& key = known[static_cast<std::size_t>(found - names.begin())];
    if (key.kind == KnownKey::Kind::value || key.kind == KnownKey::Kind::list) {
      put(root, key.path, variable, text, context);
    } else if (nested) {
      context.warnings.push_back({where, 0, 0, key.path, "takes more than a variable can hold"});
    }
  }
}

void apply_redis_variables(Node& root, const Environment& environment, Context& context) {
  constexpr std::array<std::string_view, 5> kAddresses{
      "ratelimit.redis.url", "ratelimit.redis.nodes", "ratelimit.redis.sentinels",
      "ratelimit.redis.shards", "ratelimit.redis.urls"};
  constexpr std::array<std::string_view, 2> kRing{"ratelimit.redis.shards", "ratelimit.redis.urls"};
  const auto value = [&](const char* name) -> const std::string* {
    const auto found = environment.find(name);
    return found == environment.end() || found->second.empty() ? nullptr : &found->second;
  };
  if (!holds(root, "ratelimit.backend", "redis")) return;

  if (!any_of(root, kAddresses)) {
    const std::string* urls = value("REDIS_URLS");
    const std::string* url = value("REDIS_URL");
    if (urls != nullptr && urls->find(',') != std::string::npos) {
      put(root, "ratelimit.redis.urls", "REDIS_URLS", *urls, context);
      const std::string* nodes = value("RATE_LIMIT_CONSISTENT_HASH_VNODES");
      if (nodes != nullptr && get(root, "ratelimit.redis.virtual_nodes") == nullptr) {
        put(root, "ratelimit.redis.virtual_nodes", "RATE_LIMIT_CONSISTENT_HASH_VNODES", *nodes,
            context);
      }
    } else if (urls != nullptr) {
      put(root, "ratelimit.redis.url", "REDIS_URLS", *urls, context);
    } else if (url != nullptr) {
      put(root, "ratelimit.redis.url", "REDIS_URL", *url, context);
    }
  }
  const std::string* previous = value("REDIS_URLS_PREVIOUS");
  if (previous != nullptr && any_of(root, kRing) &&
      get(root, "ratelimit.redis.previous") == nullptr) {
    put(root, "ratelimit.redis.previous.urls", "REDIS_URLS_PREVIOUS", *previous, context);
  }
}

}  // namespace stint::config
