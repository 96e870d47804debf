#include "redis/deployment.h"

#include <algorithm>
#include <utility>

#include "redis/cluster.h"
#include "redis/ring.h"
#include "redis/sentinel.h"
#include "redis/single.h"

namespace stint::redis {
namespace {

std::string list_of(const std::vector<ServerAddress>& addresses) {
  std::string text;
  for (const ServerAddress& address : addresses) {
    if (!text.empty()) text += ", ";
    text += place_of(address);
  }
  return text;
}

// Makes the topology of each kind of deployment.
struct Make {
  net::EventLoop& loop;
  const Deployment& deployment;
  const PrepareServer& prepare;

  [[nodiscard]] ServerOptions prepared(std::string_view name, const ServerAddress& address) const {
    ServerOptions server = prepare(name);
    server.address = address;
    server.tls = address.tls ? deployment.tls : nullptr;
    server.connect_timeout = deployment.connect_timeout;
    return server;
  }
  std::unique_ptr<Topology> operator()(const SingleDeployment& single) const {
    return std::make_unique<Single>(loop, prepared(to_string(single.address), single.address));
  }
  std::unique_ptr<Topology> operator()(const SentinelDeployment& from) const {
    SentinelOptions options;
    options.sentinels = from.sentinels;
    options.sentinel_tls = deployment.sentinel_tls;
    options.master_name = from.master_name;
    options.missing_after = from.missing_after;
    options.master = prepared(from.master_name, from.master);
    return std::make_unique<Sentinel>(loop, std::move(options));
  }
  std::unique_ptr<Topology> operator()(const ClusterDeployment& /*from*/) const {
    return std::make_unique<Cluster>(loop, deployment, prepare);
  }
  std::unique_ptr<Topology> operator()(const RingDeployment& from) const {
    RingOptions options;
    options.ring = from.ring;
    options.previous = from.previous;
    options.handover = from.handover;
    options.aliases = from.aliases;
    for (const RingDeployment::Shard& shard : from.shards) {
      options.servers.push_back(prepared(shard.name, shard.address));
    }
    return std::make_unique<Ring>(loop, std::move(options));
  }
};

struct Describe {
  std::string operator()(const SingleDeployment& single) const { return to_string(single.address); }
  std::string operator()(const SentinelDeployment& from) const {
    return "master " + from.master_name + " of the sentinels " + list_of(from.sentinels);
  }
  std::string operator()(const ClusterDeployment& from) const {
    return "cluster of " + list_of(from.nodes);
  }
  std::string operator()(const RingDeployment& from) const {
    return "ring of " + std::to_string(from.ring->size());
  }
};

struct Names {
  std::vector<std::string> operator()(const SingleDeployment& single) const {
    return {to_string(single.address)};
  }
  std::vector<std::string> operator()(const SentinelDeployment& from) const {
    return {from.master_name};
  }
  std::vector<std::string> operator()(const ClusterDeployment& /*from*/) const {
    return {std::string(Cluster::kNowhere)};
  }
  std::vector<std::string> operator()(const RingDeployment& from) const {
    std::vector<std::string> names;
    names.reserve(from.shards.size());
    for (const RingDeployment::Shard& shard : from.shards) names.push_back(shard.name);
    return names;
  }
};

struct NeedsTls {
  bool operator()(const SingleDeployment& single) const { return single.address.tls; }
  bool operator()(const SentinelDeployment& from) const { return from.master.tls; }
  bool operator()(const ClusterDeployment& from) const { return from.login.tls; }
  bool operator()(const RingDeployment& from) const {
    return std::ranges::any_of(
        from.shards, [](const RingDeployment::Shard& shard) { return shard.address.tls; });
  }
};

}  // namespace

std::unique_ptr<Topology> make_topology(net::EventLoop& loop, const Deployment& deployment,
                                        const PrepareServer& prepare) {
  return std::visit(Make{loop, deployment, prepare}, deployment.servers);
}

std::string to_string(const Deployment& deployment) {
  return std::visit(Describe{}, deployment.servers);
}

std::vector<std::string> target_names(const Deployment& deployment) {
  return std::visit(Names{}, deployment.servers);
}

bool needs_tls(const Deployment& deployment) { return std::visit(NeedsTls{}, deployment.servers); }

bool needs_sentinel_tls(const Deployment& deployment) {
  const auto* const from = std::get_if<SentinelDeployment>(&deployment.servers);
  return from != nullptr && std::ranges::any_of(from->sentinels, &ServerAddress::tls);
}

}  // namespace stint::redis
