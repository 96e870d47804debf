#include "config/bootstrap.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <utility>

#include "config/address.h"
#include "config/bootstrap_sections.h"
#include "config/environment.h"
#include "config/limits_reader.h"
#include "config/read_file.h"
#include "config/reader.h"
#include "config/substitute.h"
#include "config/yaml.h"

namespace stint::config {
namespace {

constexpr std::array<std::string_view, 3> kCacheBackends{"none", "memory", "redis"};

void read_cache(MapReader reader, CacheBackend& out) {
  std::size_t index = static_cast<std::size_t>(out);
  reader.choice("backend", index, kCacheBackends);
  reader.note("backend", std::string(kCacheBackends[index]));
  reader.finish();
  if (index < 2) {
    out = static_cast<CacheBackend>(index);
  } else {
    reader.unavailable("backend");
  }
}

// A relative path of the file is relative to the file, so that it means the same wherever the
// program is started; one of a variable was written by whoever starts it.
std::string resolve(const std::string& path, const Node* node, const std::string& file) {
  if (node == nullptr || !node->variable.empty()) return path;
  const std::filesystem::path given(path);
  if (given.is_absolute()) return path;
  return (std::filesystem::path(file).parent_path() / given).lexically_normal().string();
}

void read_sources(MapReader& reader, Bootstrap& out) {
  const bool file = reader.text("resources_file", out.resources_file);
  const bool both = reader.given("resources_file") && reader.given("etcd");
  if (both) {
    reader.fault("etcd", "stands beside resources_file; keep one source of resources");
  } else if (!reader.given("resources_file") && !reader.given("etcd")) {
    reader.fault("resources_file", "is missing: name a file of resources, or give etcd");
  } else if (file && out.resources_file.empty()) {
    reader.fault("resources_file", "must not be empty");
  }
  read_etcd(reader.map("etcd"), !both, out.etcd);
}

void check_listeners(MapReader& reader, const Bootstrap& bootstrap) {
  const Observability::Prometheus& prometheus = bootstrap.observability.prometheus;
  const Admin& admin = bootstrap.admin;
  const auto apart = [&](std::string_view key, const std::string& addr, std::string_view other,
                         const std::string& taken) {
    if (!same_listener(addr, taken)) return;
    report(reader, key,
           "is where " + std::string(other) + " (" + taken + ") listens; give it another port", {});
  };
  if (prometheus.enabled) {
    apart("observability.metrics.prometheus.addr", prometheus.addr, "proxy.addr",
          bootstrap.proxy.addr);
  }
  if (!admin.enabled) return;
  apart("admin.addr", admin.addr, "proxy.addr", bootstrap.proxy.addr);
  if (!prometheus.enabled) return;
  apart("admin.addr", admin.addr, "observability.metrics.prometheus.addr", prometheus.addr);
}

// In the order of the documentation.
Bootstrap read_all(Context& context, const Node& root) {
  Bootstrap out;
  MapReader reader(context, &root, "", {.line = root.line, .column = root.column, .key = ""});
  read_proxy(reader.map("proxy"), out.proxy);
  read_decision(reader.map("decision"), out.decision);
  read_admin(reader.map("admin"), out.admin);
  read_observability(reader.map("observability"), out.observability);
  read_ratelimit(reader.map("ratelimit"), out.ratelimit);
  read_sources(reader, out);
  read_cache(reader.map("cache"), out.cache);
  read_upstream(reader.map("upstream"), out.upstream);
  read_shutdown(reader.map("shutdown"), out.shutdown);
  reader.finish();
  if (context.known == nullptr) check_listeners(reader, out);
  out.resources_file = resolve(out.resources_file, reader.peek("resources_file"), context.file);
  return out;
}

std::vector<KnownKey> known_keys() {
  std::vector<KnownKey> keys;
  Context context;
  context.known = &keys;
  (void)read_all(context, Node{.kind = Node::Kind::map});
  return keys;
}

Loaded<Bootstrap> load(Context context, Node root, const Environment& environment,
                       std::string* resources_file) {
  apply_variables(root, environment, known_keys(), context);
  apply_redis_variables(root, environment, context);
  std::vector<Setting> settings;
  context.settings = &settings;
  Bootstrap bootstrap = read_all(context, root);
  if (resources_file != nullptr) *resources_file = bootstrap.resources_file;
  context.sort();
  Loaded<Bootstrap> loaded;
  bootstrap.settings = std::move(settings);
  if (context.faults.empty()) loaded.value = std::move(bootstrap);
  loaded.faults = std::move(context.faults);
  loaded.warnings = std::move(context.warnings);
  return loaded;
}

Loaded<Bootstrap> parse(const std::string& file, std::string_view text,
                        const Environment& environment, std::string* resources_file) {
  auto tree = parse_yaml(file, text);
  if (!tree.value) return {.value = {}, .faults = std::move(tree.faults), .warnings = {}};
  if (tree.value->kind != Node::Kind::map) {
    const Node& root = *tree.value;
    tree.faults.push_back({file, root.line, root.column, "", "must be a map of keys"});
    return {.value = {}, .faults = std::move(tree.faults), .warnings = {}};
  }
  Context context{.file = file, .faults = std::move(tree.faults)};
  substitute(*tree.value, file, environment, context.faults);
  return load(std::move(context), std::move(*tree.value), environment, resources_file);
}

}  // namespace

int event_loops(const Proxy& proxy, int cores) noexcept {
  if (proxy.workers > 0) return proxy.workers;
  return proxy.thread_per_core ? std::max(cores, 1) : 1;
}

Loaded<Bootstrap> load_bootstrap(const std::optional<std::string>& file,
                                 const Environment& environment, std::string* resources_file) {
  if (!file) {
    return load(Context{.file = "environment"}, Node{.kind = Node::Kind::map}, environment,
                resources_file);
  }
  const auto text = read_file(*file);
  if (!text) return {.value = {}, .faults = {{*file, 0, 0, "", text.error()}}, .warnings = {}};
  return parse(*file, *text, environment, resources_file);
}

Loaded<Bootstrap> parse_bootstrap(const std::string& file, std::string_view text,
                                  const Environment& environment) {
  return parse(file, text, environment, nullptr);
}

std::vector<std::string> restart_keys(const Bootstrap& before, const Bootstrap& after) {
  const auto by_key = [](const Bootstrap& bootstrap) {
    std::map<std::string_view, std::string_view> values;
    for (const Setting& setting : bootstrap.settings) {
      const bool taken_over =
          setting.key == "observability.log_level" || setting.key.starts_with("ratelimit.redis.");
      if (!taken_over) values[setting.key] = setting.value;
    }
    return values;
  };
  const auto old_values = by_key(before);
  const auto new_values = by_key(after);
  std::vector<std::string> keys;
  for (const Setting& setting : after.settings) {
    const auto value = new_values.find(setting.key);
    const auto old = old_values.find(setting.key);
    if (value == new_values.end()) continue;
    if (old == old_values.end() || old->second != value->second) keys.push_back(setting.key);
  }
  for (const auto& [key, value] : old_values) {
    if (!new_values.contains(key)) keys.emplace_back(key);
  }
  return keys;
}

std::vector<std::string> known_bootstrap_keys() {
  std::vector<std::string> paths;
  for (const KnownKey& key : known_keys()) paths.push_back(key.path);
  return paths;
}

}  // namespace stint::config
