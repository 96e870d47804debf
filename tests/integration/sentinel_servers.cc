#include "tests/integration/sentinel_servers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <stdexcept>
#include <utility>

namespace stint::redis_testing {
namespace {

// A third of it does not do: a Sentinel takes longer to connect with a new master, and holds that
// to be down, too.
constexpr const char* kDownAfterMs = "1500";

void wait_for(const char* what, const std::function<bool()>& condition) {
  if (eventually(condition, std::chrono::seconds{30}, std::chrono::milliseconds{20})) return;
  throw std::runtime_error(std::string("waited in vain for: ") + what);
}

// The value of a field in a map that RESP2 sends as names and values in turn.
std::string field_of(const redis::Value& map, std::string_view field) {
  for (std::size_t i = 0; i + 1 < map.size(); i += 2) {
    if (map[i].text() == field) return std::string(map[i + 1].text());
  }
  return {};
}

// Nothing if it does not answer.
std::optional<redis::Reply> ask(RedisServer& server, const std::vector<std::string_view>& words) {
  if (!server.answers()) return std::nullopt;
  try {
    return server.command(words);
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

}  // namespace

SentinelServers::SentinelServers() : SentinelServers(Options()) {}

SentinelServers::SentinelServers(Options options) : options_(std::move(options)) {
  const std::string& password = options_.data.password;
  for (std::size_t i = 0; i < kNodes; ++i) {
    RedisServer::Options data = options_.data;
    data.config.emplace_back("repl-diskless-sync-delay 0");
    if (!password.empty()) data.config.push_back("masterauth " + password);
    if (options_.tls) data.config.emplace_back("tls-replication yes");
    if (i > 0) {
      data.config.push_back("replicaof 127.0.0.1 " + std::to_string(options_.tls
                                                                        ? nodes_[0]->tls_port()
                                                                        : nodes_[0]->port()));
    }
    nodes_.push_back(std::make_unique<RedisServer>(std::move(data)));
  }
  const std::string name = kName;
  for (std::size_t i = 0; i < 3; ++i) {
    RedisServer::Options watcher = options_.watcher;
    watcher.sentinel = true;
    if (options_.tls) watcher.config.emplace_back("tls-replication yes");
    const std::uint16_t port = options_.tls ? nodes_[0]->tls_port() : nodes_[0]->port();
    watcher.config.push_back("sentinel monitor " + name + " 127.0.0.1 " + std::to_string(port) +
                             " 2");
    watcher.config.push_back("sentinel down-after-milliseconds " + name + " " + kDownAfterMs);
    watcher.config.push_back("sentinel failover-timeout " + name + " 4000");
    watcher.config.push_back("sentinel parallel-syncs " + name + " 2");
    if (!password.empty()) {
      watcher.config.push_back("sentinel auth-pass " + name + " " + password);
    }
    if (!watcher.password.empty()) {
      watcher.config.push_back("sentinel sentinel-pass " + watcher.password);
    }
    sentinels_.push_back(std::make_unique<RedisServer>(std::move(watcher)));
  }
  for (const auto& sentinel : sentinels_) hurry(*sentinel);
  wait_until_settled();
}

// Else it takes a demoted master ten to twenty seconds to become a replica. Before Redis 7 nobody
// can change it.
void SentinelServers::hurry(RedisServer& sentinel) {
  sentinel.command({"SENTINEL", "DEBUG", "info-period", "500", "publish-period", "400"});
}

void SentinelServers::restart_sentinel(std::size_t index) {
  sentinels_[index]->restart();
  hurry(*sentinels_[index]);
}

redis::Deployment SentinelServers::deployment() const {
  redis::SentinelDeployment from;
  for (const auto& sentinel : sentinels_) {
    redis::ServerAddress address;
    address.host = "127.0.0.1";
    address.port = options_.tls ? sentinel->tls_port() : sentinel->port();
    address.password = options_.watcher.password;
    address.tls = options_.tls;
    from.sentinels.push_back(std::move(address));
  }
  from.master_name = kName;
  from.master.password = options_.data.password;
  from.master.tls = options_.tls;
  redis::Deployment deployment;
  deployment.servers = std::move(from);
  return deployment;
}

std::size_t SentinelServers::node_of(std::uint16_t port) const {
  const auto found = std::ranges::find_if(nodes_, [&](const auto& node) {
    return node->port() == port || (port != 0 && node->tls_port() == port);
  });
  return static_cast<std::size_t>(found - nodes_.begin());
}

std::optional<std::size_t> SentinelServers::named_master() {
  std::map<std::size_t, int> votes;
  for (const auto& sentinel : sentinels_) {
    const auto reply = ask(*sentinel, {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", kName});
    if (!reply) continue;
    const auto port = static_cast<std::uint16_t>((*reply)[1].number().value_or(0));
    const std::size_t node = node_of(port);
    if (node < nodes_.size() && ++votes[node] >= 2) return node;
  }
  return std::nullopt;
}

void SentinelServers::order_failover() {
  // INPROG, or NOGOODSLAVE just after another one: it is not ready yet.
  wait_for("a failover to begin", [this] {
    const auto reply = ask(*sentinels_[0], {"SENTINEL", "FAILOVER", kName});
    return reply && reply->text() == "OK";
  });
}

void SentinelServers::let_sentinels_miss_nobody(bool set) {
  for (const auto& sentinel : sentinels_) {
    sentinel->command(
        {"SENTINEL", "SET", kName, "down-after-milliseconds", set ? "3600000" : kDownAfterMs});
  }
}

std::size_t SentinelServers::wait_for_other_master(std::size_t old) {
  std::optional<std::size_t> master;
  wait_for("another master", [&] {
    master = named_master();
    return master && *master != old;
  });
  return *master;
}

void SentinelServers::wait_until_settled() {
  wait_for("a master and its replicas", [this] { return settled(); });
}

bool SentinelServers::settled() {
  const auto master = named_master();
  if (!master) return false;
  std::size_t replicas = 0;
  std::size_t running = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i]->answers()) continue;
    ++running;
    const auto info = ask(*nodes_[i], {"INFO", "replication"});
    if (!info) return false;
    if (i == *master) {
      if (info_field(*info, "role") != "master") return false;
      continue;
    }
    if (info_field(*info, "master_link_status") != "up") return false;
    if (node_of(static_cast<std::uint16_t>(std::stoi(info_field(*info, "master_port")))) !=
        *master) {
      return false;
    }
    ++replicas;
  }
  if (replicas + 1 != running) return false;
  for (const auto& sentinel : sentinels_) {
    if (!sentinel->answers()) continue;
    const auto state = ask(*sentinel, {"SENTINEL", "MASTER", kName});
    if (!state || field_of(*state, "flags") != "master" ||
        field_of(*state, "num-other-sentinels") != "2") {
      return false;
    }
    const auto known = ask(*sentinel, {"SENTINEL", "REPLICAS", kName});
    std::size_t good = 0;
    for (const redis::Value& replica :
         known ? known->elements() : std::span<const redis::Value>()) {
      good +=
          field_of(replica, "flags") == "slave" && field_of(replica, "master-link-status") == "ok";
    }
    if (good != replicas) return false;
  }
  return true;
}

}  // namespace stint::redis_testing
