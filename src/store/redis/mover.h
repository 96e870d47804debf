// Brings buckets from where they were, before the servers were changed, to where they belong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "net/event_loop.h"
#include "redis/call.h"
#include "redis/target.h"
#include "store/redis/server_clock.h"
#include "store/redis/shared.h"

namespace stint::store {

// A script on the old server reads the bucket and leaves a mark (lua/take.lua), one on the new
// server puts it in (lua/install.lua); whoever does it second changes nothing. So every process may
// do it before it first uses a bucket, and none that did counts anywhere else.
// If the old server does not answer, the bucket begins anew; if the new one does not, it is tried
// again with the next use.
// Thread rule: the thread of its event loop.
class Mover {
 public:
  using ClockOf = std::function<ServerClock&(const redis::Target&)>;

  // All must outlive it, and every call it makes.
  Mover(net::EventLoop& loop, Shared& shared, redis::Topology& topology, Duration timeout,
        ClockOf clock_of);
  ~Mover();
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  // Whether the bucket may still lie elsewhere, and can be asked for there.
  [[nodiscard]] bool needed(std::string_view bucket_key);
  // `then` is called once, maybe before it returns, and at the latest soon after the time-out: what
  // could be brought is here.
  void bring(std::string_view bucket_key, std::move_only_function<void()> then);
  [[nodiscard]] bool idle() const noexcept { return under_way_.empty(); }

 private:
  struct Move;

  void take(std::shared_ptr<Move> move);
  void install(std::shared_ptr<Move> move, std::shared_ptr<const redis::Reply> reply);
  [[nodiscard]] bool late(Move& move, const redis::Target& by, const redis::Value& answer,
                          Duration sent);
  void finish(const std::shared_ptr<Move>& move, bool done);

  net::EventLoop& loop_;
  Shared& shared_;
  redis::Topology& topology_;
  const Duration timeout_;
  const ClockOf clock_of_;
  const std::uint64_t seed_;
  std::unordered_set<std::uint64_t> brought_;  // hashes of those of which nothing is left elsewhere
  std::map<std::string, std::shared_ptr<Move>, std::less<>> under_way_;
};

}  // namespace stint::store
