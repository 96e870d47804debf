// What stores see of Redis: targets to call, and which target a key belongs to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "net/task.h"
#include "redis/call.h"
#include "redis/script.h"
#include "stint/time.h"

namespace stint::redis {

// The reach of one script call: a server, or a slot of a Cluster.
// Thread rule: the thread of its event loop.
class Target {
 public:
  virtual ~Target() = default;
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  // Runs the script by its digest; a server that does not know it is taught it, and called again.
  // Answers `done` exactly once, on the loop's thread, maybe before it returns and at the latest
  // soon after `deadline` (steady time, net::EventLoop::now()). Keys and args are copied before it
  // returns; the script must live until the answer. Calls reach the server in the order in which
  // they were made, but for those that it had to be taught the script for.
  // `done` may make calls. It must not destroy the target, nor throw.
  virtual void call(const Script& script, std::span<const std::string_view> keys,
                    std::span<const std::string_view> args, Duration deadline, CallDone done) = 0;
  // The same for a plain command, such as {"SCAN", "0"}. None that changes the connection (SELECT,
  // MULTI, SUBSCRIBE, CLIENT REPLY): it is shared.
  virtual void command(std::span<const std::string_view> words, Duration deadline,
                       CallDone done) = 0;

  // Whether a call would be sent. If not, it is answered at once with `not_run`.
  [[nodiscard]] virtual bool available() const noexcept = 0;
  // "host:port/database" or the name of a shard: for metrics and logs, no secrets.
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;

 protected:
  Target() = default;
};

// What stands behind the addresses of the configuration, as one event loop sees it.
// Thread rule: the thread of its event loop; the constructor and `start` also before it runs.
class Topology {
 public:
  virtual ~Topology() = default;
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  // Keys whose routes are equal may be in one script call. A route is good for the call that is
  // made with it at once; targets live as long as the topology.
  struct Route {
    Target* target = nullptr;
    std::uint64_t reach = 0;
    bool operator==(const Route&) const = default;
  };
  // `routing_key`: what is hashed, such as a key's hash tag without its braces. Its target is never
  // null.
  [[nodiscard]] virtual Route route(std::string_view routing_key) = 0;
  // Where a call about the key goes on that `by` refused with this error, and therefore certainly
  // did not run: a Cluster answers MOVED and ASK. A null target: nowhere, the error stands.
  [[nodiscard]] virtual Route redirected(std::string_view /*routing_key*/, const Target& /*by*/,
                                         const CallError& /*error*/) {
    return {};
  }
  // Where the key was before the servers were changed: another target than that of `route`. For
  // `left` from now on the key's data may have to be brought from there. Nothing if it stays, or
  // no change is under way.
  struct Previous {
    Route route;
    Duration left{0};
  };
  [[nodiscard]] virtual std::optional<Previous> previous(std::string_view /*routing_key*/) {
    return std::nullopt;
  }
  // All there are now, for sweeps over every key. Valid until the loop goes on.
  [[nodiscard]] virtual std::span<Target* const> targets() = 0;

  // Whether its targets are nodes of a Redis Cluster.
  [[nodiscard]] virtual bool of_cluster() const noexcept { return false; }

  // Begins to connect. Once.
  virtual void start() = 0;
  // Answers every pending call, closes all connections, ends when nothing runs any more. To be
  // awaited before the destruction if `start` was called; may be awaited twice.
  [[nodiscard]] virtual net::Task<void> stop() = 0;

 protected:
  Topology() = default;
};

}  // namespace stint::redis
