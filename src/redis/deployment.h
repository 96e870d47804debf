// Which Redis there is, as configured, and the topology that it makes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "net/connect.h"
#include "net/event_loop.h"
#include "redis/server.h"
#include "redis/target.h"
#include "redis/url.h"
#include "stint/hash_ring.h"
#include "stint/time.h"

namespace stint::redis {

struct SingleDeployment {
  ServerAddress address{};
};

struct SentinelDeployment {
  std::vector<ServerAddress> sentinels{};  // each with how to log in there; at least one
  std::string master_name{};
  // How to log in at the master, its database and whether over TLS; host and port are not used.
  ServerAddress master{};
  Duration missing_after = std::chrono::seconds{10};  // see SentinelOptions
};

struct ClusterDeployment {
  std::vector<ServerAddress> nodes{};  // any of them, to ask for the others; at least one
  // How to log in at all of them, and whether over TLS; host and port are not used.
  ServerAddress login{};
};

struct RingDeployment {
  struct Shard {
    std::string name{};
    ServerAddress address{};
  };
  std::vector<Shard> shards{};             // of both rings; of a name in both the present one
  std::shared_ptr<const HashRing> ring{};  // of their names, as in RingOptions
  std::shared_ptr<const HashRing> previous{};
  Duration handover{0};
  // See RingOptions.
  std::map<std::string, std::string, std::less<>> aliases{};
};

struct Deployment {
  std::variant<SingleDeployment, SentinelDeployment, ClusterDeployment, RingDeployment> servers{};
  std::shared_ptr<const net::TlsClientContext> tls{};           // needed if an address has tls
  std::shared_ptr<const net::TlsClientContext> sentinel_tls{};  // the same for Sentinels
  Duration connect_timeout = std::chrono::seconds{1};
};

// What its owner wants of a server, by the name of its target; addresses and how to log in are
// filled in.
using PrepareServer = std::function<ServerOptions(std::string_view name)>;

// For one event loop. `prepare` may be called as long as the topology lives. Throws
// std::invalid_argument: see the topologies.
[[nodiscard]] std::unique_ptr<Topology> make_topology(net::EventLoop& loop,
                                                      const Deployment& deployment,
                                                      const PrepareServer& prepare);

// The names of the targets, as far as they are known before anybody was asked.
[[nodiscard]] std::vector<std::string> target_names(const Deployment& deployment);
// Whether Deployment::tls is used, and sentinel_tls.
[[nodiscard]] bool needs_tls(const Deployment& deployment);
[[nodiscard]] bool needs_sentinel_tls(const Deployment& deployment);

// "10.0.0.1:6379/0", "ring of 3", "master mymaster of the sentinels 10.0.0.1:26379, ...": for logs,
// no secrets.
[[nodiscard]] std::string to_string(const Deployment& deployment);

}  // namespace stint::redis
