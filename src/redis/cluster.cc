#include "redis/cluster.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

#include "net/deadline.h"
#include "redis/cluster_map.h"
#include "redis/cluster_node.h"
#include "redis/retired.h"
#include "redis/slots.h"

namespace stint::redis {
namespace {

using Node = ClusterMap::Node;
using Kind = ServerEvent::Kind;

constexpr Duration kAnswerTimeout = std::chrono::milliseconds{500};  // of a question for the map

NodePlace place_of_node(const ServerAddress& address) { return {address.host, address.port}; }

// Equal for equal keys, and for hardly any others; those are of the same slot in any case.
std::uint64_t reach_of(std::uint16_t slot, std::string_view routing_key) noexcept {
  constexpr std::uint64_t kHashBits = (std::uint64_t{1} << 48) - 1;
  return std::uint64_t{slot} << 48 | (std::hash<std::string_view>{}(routing_key)&kHashBits);
}

// Where keys go whose slot nobody has.
class Nowhere final : public Target {
 public:
  void call(const Script& /*script*/, std::span<const std::string_view> /*keys*/,
            std::span<const std::string_view> /*args*/, Duration /*deadline*/,
            CallDone done) override {
    refuse(done);
  }
  void command(std::span<const std::string_view> /*words*/, Duration /*deadline*/,
               CallDone done) override {
    refuse(done);
  }
  [[nodiscard]] bool available() const noexcept override { return false; }
  [[nodiscard]] std::string_view name() const noexcept override { return Cluster::kNowhere; }

 private:
  static void refuse(CallDone& done) {
    CallError error;
    error.text = "no node of the cluster has the slot, as far as is known";
    done(std::unexpected(std::move(error)));
  }
};

}  // namespace

struct Cluster::Impl {
  Impl(net::EventLoop& loop_in, const Deployment& deployment_in, PrepareServer prepare_in)
      : loop(loop_in),
        deployment(deployment_in),
        options(std::get<ClusterDeployment>(deployment.servers)),
        prepare(std::move(prepare_in)),
        whole(prepare(kNowhere)),
        timer(loop.deadlines(), [this] { ask(); }),
        retired(loop) {
    collect_targets();
  }

  // Questions.
  void arm();
  void ask();
  [[nodiscard]] Server* whom_to_ask();
  void ask_server(Server& server);
  void on_answers(const NodePlace& asked, const CallResult& info, const CallResult& slots);
  void start_scouts();

  // Nodes.
  struct Member {
    std::unique_ptr<ClusterNode> node;
    std::function<void(const ServerEvent&)> on_event;  // of whoever prepared its server
    std::optional<std::string> tag;                    // of the keys that it is probed with
  };
  void begin_needed();
  void end_unneeded();
  void begin(Node node);
  [[nodiscard]] ServerAddress address_of(Node node) const;
  [[nodiscard]] ServerOptions completed(ServerOptions server, ServerAddress address) const;
  void on_node_event(Node node, const ServerEvent& event);
  void on_probe(Node node, const CallResult& result);
  [[nodiscard]] std::string tag_of(Node node);
  void collect_targets();
  [[nodiscard]] bool well() const;
  [[nodiscard]] const ClusterNode* node_of(const Target& target) const;
  void tell_of_orphans();
  static void tell(const std::function<void(const ServerEvent&)>& whom, Kind kind,
                   std::string text);

  net::EventLoop& loop;
  const Deployment deployment;
  const ClusterDeployment& options;
  const PrepareServer prepare;
  const ServerOptions whole;  // what is told of the Cluster as such goes by its callbacks
  Nowhere nowhere;
  ClusterMap map;
  std::vector<Member> members;  // by their number in the map
  std::vector<Target*> targets;
  std::vector<std::unique_ptr<Server>> scouts;  // while no node answers
  std::string trouble = "not connected yet";    // of the last scout that had some
  std::optional<NodePlace> says_so{};           // whom somebody was redirected to last
  std::size_t turn = 0;
  std::size_t told_orphans = kSlots;
  net::Deadline timer;
  RetiredServers retired;
  bool stopping = false;
};

void Cluster::Impl::arm() {
  if (!stopping) timer.arm(std::max(map.next_question(well()), loop.now()));
}

void Cluster::Impl::ask() {
  if (stopping) return;
  end_unneeded();
  if (map.take_question(loop.now(), well())) {
    if (Server* const server = whom_to_ask(); server != nullptr) {
      ask_server(*server);
    } else {
      map.failed();
      start_scouts();
      if (map.orphans() > 0) {
        tell(whole.on_event, Kind::connect_failed, "no node answers: " + trouble);
      }
    }
  }
  arm();
}

// Whoever a call was sent on to knows more than who sent it. Else all in turn: one may be cut off.
Server* Cluster::Impl::whom_to_ask() {
  const std::optional<NodePlace> first = std::exchange(says_so, std::nullopt);
  for (const Member& member : members) {
    Server* const server = member.node->server();
    if (!first || member.node->place() != *first || server == nullptr) continue;
    if (server->available()) return server;
  }
  const std::size_t all = members.size() + scouts.size();
  for (std::size_t i = 0; i < all; ++i) {
    const std::size_t at = turn++ % all;
    Server* const server =
        at < members.size() ? members[at].node->server() : scouts[at - members.size()].get();
    if (server != nullptr && server->available()) return server;
  }
  return nullptr;
}

void Cluster::Impl::ask_server(Server& server) {
  struct Answers {
    NodePlace asked;
    std::optional<CallResult> info;
    std::optional<CallResult> slots;
  };
  const auto answers = std::make_shared<Answers>();
  answers->asked = place_of_node(server.address());
  const auto into = [this, answers](std::optional<CallResult> Answers::* which) {
    return [this, answers, which](CallResult result) {
      ((*answers).*which).emplace(std::move(result));
      if (answers->info && answers->slots) {
        on_answers(answers->asked, *answers->info, *answers->slots);
      }
    };
  };
  const Duration deadline = loop.now() + kAnswerTimeout;
  constexpr std::array<std::string_view, 2> kInfo = {"CLUSTER", "INFO"};
  constexpr std::array<std::string_view, 2> kSlotsOf = {"CLUSTER", "SLOTS"};
  server.command(kInfo, deadline, into(&Answers::info));
  server.command(kSlotsOf, deadline, into(&Answers::slots));
}

void Cluster::Impl::on_answers(const NodePlace& asked, const CallResult& info,
                               const CallResult& slots) {
  if (stopping) return;
  const auto answer = read_slots(info, slots, asked);
  if (!answer) {
    trouble = asked.host + ":" + std::to_string(asked.port) + ": " + answer.error();
    map.failed();
    if (map.orphans() == kSlots) tell(whole.on_event, Kind::connect_failed, trouble);
  } else if (map.learned(*answer, loop.now())) {
    begin_needed();
    tell_of_orphans();
  } else if (map.orphans() == kSlots) {
    trouble = "no slot has a node yet";
    tell(whole.on_event, Kind::connect_failed, trouble);
  }
  timer.arm(loop.now());  // what is not needed any more may be the one that answers here
}

void Cluster::Impl::start_scouts() {
  if (!scouts.empty()) return;
  std::vector<NodePlace> places;
  for (const ServerAddress& address : options.nodes) places.push_back(place_of_node(address));
  for (const NodePlace& replica : map.replicas()) {
    if (std::ranges::find(places, replica) == places.end()) places.push_back(replica);
  }
  for (const NodePlace& place : places) {
    ServerAddress address = options.login;
    address.host = place.host;
    address.port = place.port;
    ServerOptions scout = completed(ServerOptions(), std::move(address));
    scout.client_name = whole.client_name;
    scout.entropy = whole.entropy;
    scout.on_event = [this, place](const ServerEvent& event) {
      const std::string text = place.host + ":" + std::to_string(place.port) + ": " + event.text;
      if (event.kind == Kind::connect_failed || event.kind == Kind::lost) trouble = text;
      if (event.kind == Kind::configuration) tell(whole.on_event, event.kind, text);
    };
    scout.probe.on_reply = [this](const CallResult& result) {
      if (!result) return;
      map.hurry();
      arm();
    };
    scouts.push_back(std::make_unique<Server>(loop, std::move(scout)));
    scouts.back()->start();
  }
}

// A server that is needed from now on. Anywhere.
void Cluster::Impl::begin_needed() {
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
  const Node owner = impl.map.owner(slot);
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
  const Node node = redirection->ask ? impl.map.asked(*redirection, impl.loop.now())
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

void Cluster::start() {
  impl_->start_scouts();
  // They are asked as soon as they are connected; those that are not by then have failed.
  impl_->timer.arm(impl_->loop.now() + kAnswerTimeout);
}

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
