// How a Cluster finds out who has which slot.
#include <algorithm>
#include <array>
#include <utility>

#include "redis/cluster_impl.h"

namespace stint::redis {
namespace {

constexpr Duration kAnswerTimeout = std::chrono::milliseconds{500};  // of a question for the map

NodePlace place_of_node(const ServerAddress& address) { return {address.host, address.port}; }

std::string text_of(const NodePlace& place) {
  ServerAddress address;
  address.host = place.host;
  address.port = place.port;
  return place_of(address);
}

}  // namespace

void Cluster::Impl::start() {
  start_scouts();
  // They are asked as soon as they are connected; those that are not by then have failed.
  timer.arm(loop.now() + kAnswerTimeout);
}

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
    trouble = text_of(asked) + ": " + answer.error();
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
  places.reserve(options.nodes.size() + map.replicas().size());
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
      const std::string text = text_of(place) + ": " + event.text;
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

}  // namespace stint::redis
