#include "redis/cluster.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "redis/cluster_impl.h"

namespace stint::redis {
namespace {

// Equal for equal keys, and for hardly any others; those are of the same slot in any case.
std::uint64_t reach_of(std::uint16_t slot, std::string_view routing_key) noexcept {
  constexpr std::uint64_t kHashBits = (std::uint64_t{1} << 48) - 1;
  return std::uint64_t{slot} << 48 | (std::hash<std::string_view>{}(routing_key)&kHashBits);
}

}  // namespace

// A server that is needed from now on. Anywhere.
void Cluster::Impl::begin_needed() {
  if (stopping) return;
  const Duration now = loop.now();
  bool changed = false;
  for (Node node = 0; node < map.nodes(); ++node) {
    if (node >= members.size()) {
      members.emplace_back();
      members[node].node =
          std::make_unique<ClusterNode>(loop, map.place(node), to_string(address_of(node)));
    }
    if (members[node].node->server() != nullptr || !map.needed(node, now)) continue;
    begin(node);
    changed = true;
  }
  if (changed) collect_targets();
}

// Servers that are needed no more. Not from a callback of one of them.
void Cluster::Impl::end_unneeded() {
  const Duration now = loop.now();
  bool changed = false;
  bool any = false;
  for (Node node = 0; node < members.size(); ++node) {
    Member& member = members[node];
    if (member.node->server() == nullptr) continue;
    any = any || member.node->server()->available();
    if (map.needed(node, now)) continue;
    retired.add(member.node->end());
    tell(member.on_event, Kind::gone, {});
    changed = true;
  }
  if (any) {
    for (auto& scout : std::exchange(scouts, {})) retired.add(std::move(scout));
  }
  if (changed) collect_targets();
}

ServerAddress Cluster::Impl::address_of(Node node) const {
  ServerAddress address = options.login;
  address.host = map.place(node).host;
  address.port = map.place(node).port;
  return address;
}

ServerOptions Cluster::Impl::completed(ServerOptions server, ServerAddress address) const {
  server.tls = address.tls ? deployment.tls : nullptr;
  server.address = std::move(address);
  server.connect_timeout = deployment.connect_timeout;
  server.gather_writes = true;
  server.in_cluster = true;
  return server;
}

void Cluster::Impl::begin(Node node) {
  Member& member = members[node];
  ClusterNode* const known = member.node.get();
  ServerOptions server = completed(prepare(known->name()), address_of(node));
  member.on_event = std::exchange(
      server.on_event, [this, node](const ServerEvent& event) { on_node_event(node, event); });
  if (server.probe.make) {
    server.probe.make = [this, node, make = std::move(server.probe.make)] {
      Probe::Call call = make();
      for (std::string& key : call.keys) key += '{' + tag_of(node) + '}';
      return call;
    };
  }
  server.probe.on_reply = [this, node,
                           on_reply = std::move(server.probe.on_reply)](const CallResult& result) {
    if (on_reply) on_reply(result);
    on_probe(node, result);
  };
  known->begin(std::make_unique<Server>(loop, std::move(server)));
}

void Cluster::Impl::on_node_event(Node node, const ServerEvent& event) {
  const bool in_trouble = event.kind == Kind::connect_failed || event.kind == Kind::lost ||
                          event.kind == Kind::breaker_opened;
  members[node].node->told(event);
  if (members[node].on_event) members[node].on_event(event);
  if (!in_trouble) return;
  map.hurry();
  arm();
}

void Cluster::Impl::on_probe(Node node, const CallResult& result) {
  ClusterNode& known = *members[node].node;
  if (result) return known.probed();
  const auto redirection = read_redirection(result.error(), known.place());
  if (!redirection) return;
  // It has not got the slot of its tag: it is well, and may have none at all.
  if (!redirection->ask) {
    map.moved(*redirection);
    begin_needed();
    arm();
  }
  known.probed();
  tell(members[node].on_event, Kind::found, {});
}

// The smallest number whose slot the node has: all replicas of ours choose the same.
std::string Cluster::Impl::tag_of(Node node) {
  std::optional<std::string>& tag = members[node].tag;
  if (tag && map.owner(slot_of(*tag)) == node) return *tag;
  tag = "0";
  if (map.slots(node) == 0) return *tag;
  for (unsigned i = 1; map.owner(slot_of(*tag)) != node; ++i) tag = std::to_string(i);
  return *tag;
}

void Cluster::Impl::collect_targets() {
  targets.clear();
  for (const Member& member : members) {
    if (member.node->server() != nullptr) targets.push_back(member.node.get());
  }
  if (targets.empty()) targets.push_back(&nowhere);
  // In an order that does not depend on who became known first: sweeps go by it.
  std::ranges::sort(targets, {}, [](const Target* target) { return target->name(); });
}

bool Cluster::Impl::well() const {
  return map.orphans() == 0 && std::ranges::all_of(members, [](const Member& member) {
           const Server* const server = member.node->server();
           return server == nullptr || server->available();
         });
}

const ClusterNode* Cluster::Impl::node_of(const Target& target) const {
  for (const Member& member : members) {
    ClusterNode& node = *member.node;
    if (&node == &target || &node.asking() == &target) return &node;
  }
  return nullptr;
}

void Cluster::Impl::tell_of_orphans() {
  const std::size_t orphans = map.orphans();
  if (orphans == told_orphans) return;
  told_orphans = orphans;
  if (orphans == 0) return tell(whole.on_event, Kind::found, {});
  tell(whole.on_event, Kind::lost, std::to_string(orphans) + " slots have no node");
}

void Cluster::Impl::tell(const std::function<void(const ServerEvent&)>& whom, Kind kind,
                         std::string text) {
  if (!whom) return;
  ServerEvent event;
  event.kind = kind;
  event.text = std::move(text);
  whom(event);
}

Cluster::Cluster(net::EventLoop& loop, const Deployment& deployment, PrepareServer prepare) {
  const auto& options = std::get<ClusterDeployment>(deployment.servers);
  if (options.nodes.empty()) throw std::invalid_argument("a Redis Cluster without a node");
  if (options.login.database != 0) {
    throw std::invalid_argument("a Redis Cluster has database 0 only");
  }
  if (options.login.tls && !deployment.tls) {
    throw std::invalid_argument("a Redis Cluster with TLS, but no TLS context");
  }
  impl_ = std::make_unique<Impl>(loop, deployment, std::move(prepare));
}
Cluster::~Cluster() = default;

Topology::Route Cluster::route(std::string_view routing_key) {
  Impl& impl = *impl_;
  const std::uint16_t slot = slot_of(routing_key);
  const ClusterMap::Node owner = impl.map.owner(slot);
  Route route;
  route.target = &impl.nowhere;
  if (owner >= impl.members.size()) return route;
  route.target = impl.members[owner].node.get();
  route.reach = reach_of(slot, routing_key);
  return route;
}

Topology::Route Cluster::redirected(std::string_view routing_key, const Target& by,
                                    const CallError& error) {
  Impl& impl = *impl_;
  const ClusterNode* const who = impl.node_of(by);
  const auto redirection = read_redirection(error, who != nullptr ? who->place() : NodePlace());
  if (!redirection || impl.stopping) return {};
  const ClusterMap::Node node = redirection->ask ? impl.map.asked(*redirection, impl.loop.now())
                                                 : impl.map.moved(*redirection);
  impl.begin_needed();
  ClusterNode& to = *impl.members[node].node;
  if (!redirection->ask) impl.says_so = to.place();
  impl.arm();
  Route route;
  route.target = redirection->ask ? &to.asking() : &to;
  route.reach = reach_of(redirection->slot, routing_key);
  return route;
}

std::span<Target* const> Cluster::targets() { return impl_->targets; }

void Cluster::start() { impl_->start(); }

net::Task<void> Cluster::stop() {
  Impl& impl = *impl_;
  impl.stopping = true;
  impl.timer.disarm();
  for (const Impl::Member& member : impl.members) {
    Server* const server = member.node->server();
    if (server == nullptr) continue;
    co_await server->stop();
  }
  for (const auto& scout : impl.scouts) {
    co_await scout->stop();
  }
  co_await impl.retired.join();
}

}  // namespace stint::redis
