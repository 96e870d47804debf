#include "tests/integration/cluster_servers.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <stdexcept>
#include <utility>

#include "redis/slots.h"

namespace stint::redis_testing {
namespace {

void wait_for(const char* what, const std::function<bool()>& condition) {
  if (eventually(condition, std::chrono::seconds{30}, std::chrono::milliseconds{20})) return;
  throw std::runtime_error(std::string("waited in vain for: ") + what);
}

void expect_ok(const redis::Reply& reply, std::string_view what) {
  if (reply.text() == "OK" || reply.text() == "NOKEY") return;
  throw std::runtime_error(std::string(what) + ": " + std::string(reply.text()));
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

ClusterServers::ClusterServers() : ClusterServers(Options()) {}

ClusterServers::ClusterServers(Options options) : options_(std::move(options)) {
  for (std::size_t i = 0; i < kNodes; ++i) {
    RedisServer::Options node = options_.node;
    node.cluster = true;
    node.config.push_back("cluster-node-timeout " +
                          std::to_string(options_.node_timeout / std::chrono::milliseconds{1}));
    node.config.emplace_back("cluster-require-full-coverage no");
    node.config.emplace_back("repl-diskless-sync-delay 0");
    if (!node.password.empty()) node.config.push_back("masterauth " + node.password);
    if (options_.tls) {
      node.config.emplace_back("tls-cluster yes");
      node.config.emplace_back("tls-replication yes");
    }
    nodes_.push_back(std::make_unique<RedisServer>(std::move(node)));
  }
  const std::string port = std::to_string(port_of(0));
  const std::string bus = std::to_string(nodes_[0]->bus_port());
  for (std::size_t i = 0; i < kNodes; ++i) {
    // Different from the beginning, or they would have to agree on them first.
    const std::string epoch = std::to_string(i + 1);
    expect_ok(nodes_[i]->command({"CLUSTER", "SET-CONFIG-EPOCH", epoch}), "SET-CONFIG-EPOCH");
    if (i > 0) expect_ok(nodes_[i]->command({"CLUSTER", "MEET", "127.0.0.1", port, bus}), "MEET");
  }
  for (std::size_t i = 0; i < kMasters; ++i) {
    const std::string first = std::to_string(i * redis::kSlots / kMasters);
    const std::string last = std::to_string((i + 1) * redis::kSlots / kMasters - 1);
    expect_ok(nodes_[i]->command({"CLUSTER", "ADDSLOTSRANGE", first, last}), "ADDSLOTSRANGE");
  }
  for (std::size_t i = kMasters; i < kNodes; ++i) {
    const std::string master = id_of(i - kMasters);
    wait_for("a node to know its master",
             [&] { return nodes_[i]->command({"CLUSTER", "REPLICATE", master}).text() == "OK"; });
  }
  wait_until_settled();
}

std::uint16_t ClusterServers::port_of(std::size_t node) const {
  return options_.tls ? nodes_[node]->tls_port() : nodes_[node]->port();
}

std::optional<std::size_t> ClusterServers::with_port(std::int64_t port) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i]->port() == port || nodes_[i]->tls_port() == port) return i;
  }
  return std::nullopt;
}

std::string ClusterServers::id_of(std::size_t node) {
  return std::string(nodes_[node]->command({"CLUSTER", "MYID"}).text());
}

redis::Deployment ClusterServers::deployment() const {
  redis::ClusterDeployment of;
  for (const std::size_t i : {0U, 1U}) {
    redis::ServerAddress address;
    address.host = "127.0.0.1";
    address.port = port_of(i);
    of.nodes.push_back(std::move(address));
  }
  of.login.password = options_.node.password;
  of.login.tls = options_.tls;
  redis::Deployment deployment;
  deployment.servers = std::move(of);
  return deployment;
}

std::optional<std::size_t> ClusterServers::owner_of(std::uint16_t slot) {
  std::map<std::size_t, std::size_t> votes;
  std::size_t voters = 0;
  for (const auto& node : nodes_) {
    const auto ranges = ask(*node, {"CLUSTER", "SLOTS"});
    if (!ranges) continue;
    ++voters;
    for (const redis::Value& range : ranges->elements()) {
      if (slot < range[0].integer() || slot > range[1].integer()) continue;
      if (const auto owner = with_port(range[2][1].integer())) ++votes[*owner];
    }
  }
  for (const auto& [owner, count] : votes) {
    if (count * 2 > voters) return owner;
  }
  return std::nullopt;
}

std::size_t ClusterServers::node_of(std::string_view key) {
  const auto owner = owner_of(redis::slot_of_key(key));
  if (!owner) throw std::runtime_error("a slot without a node");
  return *owner;
}

std::string ClusterServers::bucket_at(std::size_t node, const std::string& begin) {
  for (int i = 0;; ++i) {
    std::string bucket = begin + std::to_string(i);
    if (owner_of(redis::slot_of(bucket)) == node) return bucket;
  }
}

std::size_t ClusterServers::wait_for_other_owner(std::uint16_t slot, std::size_t old) {
  std::optional<std::size_t> owner;
  wait_for("another node to have the slot", [&] {
    owner = owner_of(slot);
    return owner && *owner != old;
  });
  return *owner;
}

void ClusterServers::wait_until_settled() {
  wait_for("the cluster to be in order", [this] { return settled(); });
}

bool ClusterServers::settled() {
  for (const auto& node : nodes_) {
    if (!node->answers()) continue;
    const auto info = ask(*node, {"CLUSTER", "INFO"});
    if (!info || info_field(*info, "cluster_state") != "ok" ||
        info_field(*info, "cluster_slots_assigned") != std::to_string(redis::kSlots) ||
        info_field(*info, "cluster_known_nodes") != std::to_string(kNodes)) {
      return false;
    }
    const auto state = ask(*node, {"INFO", "replication"});
    if (!state) return false;
    const bool master = info_field(*state, "role") == "master";
    if (!master && info_field(*state, "master_link_status") != "up") return false;
    // All agree who is who.
    const auto list = ask(*node, {"CLUSTER", "NODES"});
    if (!list || list->text().contains("fail") || list->text().contains("handshake")) return false;
    if (master && info_field(*info, "cluster_size") != std::to_string(kMasters)) return false;
  }
  std::size_t replicas = 0;
  for (const auto& node : nodes_) {
    const auto state = ask(*node, {"INFO", "replication"});
    replicas += state && info_field(*state, "role") == "slave";
  }
  return replicas == kNodes - kMasters;
}

void ClusterServers::begin_move(std::uint16_t slot, std::size_t from, std::size_t to) {
  const std::string number = std::to_string(slot);
  expect_ok(nodes_[to]->command({"CLUSTER", "SETSLOT", number, "IMPORTING", id_of(from)}),
            "IMPORTING");
  expect_ok(nodes_[from]->command({"CLUSTER", "SETSLOT", number, "MIGRATING", id_of(to)}),
            "MIGRATING");
}

void ClusterServers::move_keys(std::uint16_t slot, std::size_t from, std::size_t to) {
  const std::string number = std::to_string(slot);
  const std::string port = std::to_string(nodes_[to]->port());
  for (;;) {
    const redis::Reply keys = nodes_[from]->command({"CLUSTER", "GETKEYSINSLOT", number, "1"});
    if (keys.size() == 0) return;
    expect_ok(nodes_[from]->command({"MIGRATE", "127.0.0.1", port, keys[0].text(), "0", "5000"}),
              "MIGRATE");
  }
}

void ClusterServers::end_move(std::uint16_t slot, std::size_t to) {
  const std::string number = std::to_string(slot);
  const std::string id = id_of(to);
  expect_ok(nodes_[to]->command({"CLUSTER", "SETSLOT", number, "NODE", id}), "SETSLOT NODE");
  for (std::size_t i = 0; i < kNodes; ++i) {
    const auto state = ask(*nodes_[i], {"INFO", "replication"});
    if (i == to || !state || info_field(*state, "role") != "master") continue;
    expect_ok(nodes_[i]->command({"CLUSTER", "SETSLOT", number, "NODE", id}), "SETSLOT NODE");
  }
}

}  // namespace stint::redis_testing
