// The servers of one configuration as one event loop sees them, and the ways to them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "net/event_loop.h"
#include "net/task.h"
#include "redis/target.h"
#include "store/redis/lane.h"
#include "store/redis/mover.h"
#include "store/redis/redis_store.h"
#include "store/redis/server_clock.h"
#include "store/redis/shared.h"

namespace stint::store {

// A server, by the name of its target.
struct Site {
  std::string name;
  RedisTargetHooks hooks;
  ServerClock clock;
  bool degraded = true;    // until it is connected
  bool looked_at = false;  // its settings were
  int looking = 0;         // questions about them that are under way
  bool gone = false;       // the topology has it no more
};

// Announces this replica to each server, tells how they stand, and has a lane for each route.
// Thread rule: the thread of its event loop; the constructor and `start` also before it runs.
class Servers final : public std::enable_shared_from_this<Servers> {
 public:
  // `on_available`: a server takes calls again, or for the first time; and every few seconds while
  // it does. The loop and `shared` must outlive it.
  Servers(net::EventLoop& loop, Shared& shared, const RedisStore::MakeTopology& make,
          Duration timeout, std::function<void()> on_available);
  ~Servers();
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  // Begins to connect. Once.
  void start() { topology_->start(); }
  // Answers all that is under way, and closes the connections. May be awaited twice.
  [[nodiscard]] net::Task<void> stop();

  // From now on, and until `leave`, it is told how these servers stand. Each once.
  void enter();
  void leave();

  [[nodiscard]] redis::Topology& topology() noexcept { return *topology_; }
  [[nodiscard]] Site& site(std::string_view target);
  // Where calls about the bucket go; good until the loop goes on.
  [[nodiscard]] Lane& lane(std::string_view bucket_key);
  [[nodiscard]] Mover& mover() noexcept { return mover_; }
  // Whether all of the servers take calls.
  [[nodiscard]] bool all_available();
  // How many lanes there are, for tests.
  [[nodiscard]] std::size_t lanes() const noexcept { return lanes_.size(); }
  // Whether nothing waits for an answer.
  [[nodiscard]] bool idle() const noexcept;

 private:
  struct HashRoute {
    std::size_t operator()(const redis::Topology::Route& route) const noexcept {
      return std::hash<const void*>{}(route.target) ^ (route.reach * 0x9E3779B97F4A7C15U);
    }
  };

  static constexpr std::size_t kFewLanes = 64;

  [[nodiscard]] redis::ServerOptions prepare(std::string_view name);
  [[nodiscard]] redis::Probe announcement(Site& site);
  void announced(Site& site, const redis::CallResult& result);
  void on_event(Site& site, const redis::ServerEvent& event);
  void set_degraded(Site& site, bool degraded, const std::string& why);
  // Warns about settings under which counters would be lost, and servers that are too old.
  void look_at_settings(Site& site, redis::Target& target);
  void forget(Site& site);
  [[nodiscard]] Lane& lane_of(const redis::Topology::Route& route);
  [[nodiscard]] LaneHooks lane_hooks(Site& site, redis::Target& target);
  // In a Cluster every bucket has a lane of its own: those that nobody uses are given up.
  void free_idle_lanes();

  net::EventLoop& loop_;
  Shared& shared_;
  const Duration timeout_;
  const std::function<void()> on_available_;
  bool entered_ = false;
  std::map<std::string, std::unique_ptr<Site>, std::less<>> sites_;
  std::unique_ptr<redis::Topology> topology_;
  std::unordered_map<redis::Topology::Route, std::unique_ptr<Lane>, HashRoute> lanes_;
  std::size_t most_lanes_ = kFewLanes;
  bool freeing_ = false;
  std::uint64_t births_;  // see Lane
  Mover mover_;
};

}  // namespace stint::store
