#include "config/redis_nodes.h"

#include <charconv>
#include <cstdint>
#include <map>
#include <utility>

#include "config/bootstrap_sections.h"

namespace stint::config {
namespace {

// "host:port", "[v6]:port"; good as check_host_port says.
RedisUrl parse_host_port(std::string_view text) {
  RedisUrl server;
  const std::size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  server.host = host;
  const std::string_view port = text.substr(colon + 1);
  std::from_chars(port.data(), port.data() + port.size(), server.port);
  return server;
}

bool is_url(std::string_view text) { return text.contains("://"); }

RedisUrl parse_node(std::string_view text) {
  if (!is_url(text)) return parse_host_port(text);
  return parse_redis_url(text).value_or(RedisUrl());
}

void check_asked_once(MapReader& reader, std::string_view list,
                      const std::vector<RedisUrl>& servers) {
  std::map<std::pair<std::string, std::uint16_t>, std::size_t> seen;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (servers[i].host.empty()) continue;  // no good, and was told
    const auto [other, fresh] = seen.emplace(std::pair(servers[i].host, servers[i].port), i);
    if (fresh) continue;
    reader.fault(list, i,
                 "is the same as " + std::string(list) + "[" + std::to_string(other->second) +
                     "]; name each once");
  }
}

}  // namespace

RedisNodes sentinels_of(const Redis& redis) {
  RedisNodes nodes;
  for (const std::string& text : redis.sentinels) {
    RedisUrl server = parse_host_port(text);
    server.username = redis.sentinel_username;
    server.password = redis.sentinel_password;
    server.tls = redis.sentinel_tls_enabled;
    nodes.asked.push_back(std::move(server));
  }
  nodes.data.username = redis.username;
  nodes.data.password = redis.password;
  nodes.data.database = redis.database;
  nodes.data.tls = redis.tls_enabled;
  return nodes;
}

RedisNodes nodes_of(const Redis& redis) {
  RedisNodes nodes;
  RedisUrl& data = nodes.data;
  data.database = 0;
  data.tls = redis.tls_enabled;
  for (const std::string& text : redis.nodes) {
    nodes.asked.push_back(parse_node(text));
    const RedisUrl& node = nodes.asked.back();
    data.tls = data.tls || node.tls;
    if (data.username.empty()) data.username = node.username;
    if (data.password.empty()) data.password = node.password;
  }
  if (data.username.empty()) data.username = redis.username;
  if (data.password.empty()) data.password = redis.password;
  for (RedisUrl& node : nodes.asked) {
    node.username = data.username;
    node.password = data.password;
    node.tls = data.tls;
    node.database.reset();
  }
  return nodes;
}

std::optional<std::string> check_node(std::string_view text) {
  return is_url(text) ? check_redis_url(text) : check_host_port(text);
}

void read_sentinel_keys(MapReader& reader, Redis& redis) {
  reader.texts("sentinels", redis.sentinels, check_host_port);
  reader.text("master_name", redis.master_name);
  reader.text("sentinel_username", redis.sentinel_username);
  reader.secret("sentinel_password", redis.sentinel_password);
  redis.sentinel_tls = redis.tls;
  redis.sentinel_tls_enabled = redis.tls_enabled;
  read_client_tls(reader.map("sentinel_tls"), redis.sentinel_tls, &redis.sentinel_tls_enabled);
}

void check_asked_once(MapReader& reader, const Redis& redis) {
  check_asked_once(reader, "sentinels", sentinels_of(redis).asked);
  check_asked_once(reader, "nodes", nodes_of(redis).asked);
}

void check_nodes(MapReader& reader, const Redis& redis) {
  if (redis.database != 0) reader.fault("database", "must be 0: a Redis Cluster has no other");
  const RedisNodes all = nodes_of(redis);
  for (std::size_t i = 0; i < redis.nodes.size(); ++i) {
    if (!is_url(redis.nodes[i])) continue;
    const RedisUrl node = parse_node(redis.nodes[i]);
    if (node.database.value_or(0) != 0) {
      reader.fault("nodes", i, "must have database 0: a Redis Cluster has no other");
    }
    if (node.tls != all.data.tls) {
      reader.fault("nodes", i,
                   "is redis://, and others are reached by TLS: write rediss:// for all of them");
    }
    const bool other_user = !node.username.empty() && node.username != all.data.username;
    const bool other_password = !node.password.empty() && node.password != all.data.password;
    if (other_user || other_password) {
      reader.fault("nodes", i,
                   "has another user or password than those before it: one holds for all nodes");
    }
  }
}

}  // namespace stint::config
