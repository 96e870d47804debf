// What a Cluster is made of; cluster.cc has its nodes, cluster_questions.cc how it finds them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "net/deadline.h"
#include "net/event_loop.h"
#include "redis/cluster.h"
#include "redis/cluster_map.h"
#include "redis/cluster_node.h"
#include "redis/deployment.h"
#include "redis/retired.h"
#include "redis/server.h"
#include "redis/slots.h"

namespace stint::redis {

// Where keys go whose slot nobody has.
class ClusterNowhere final : public Target {
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

struct Cluster::Impl {
  using Node = ClusterMap::Node;
  using Kind = ServerEvent::Kind;

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
  void start();
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
  ClusterNowhere nowhere;
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

}  // namespace stint::redis
