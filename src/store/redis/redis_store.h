// Buckets in Redis, shared by all processes that use the same servers and key prefix.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/entropy.h"
#include "net/event_loop.h"
#include "redis/server.h"
#include "redis/target.h"
#include "store/rate_store.h"
#include "store/redis/scripts.h"

namespace stint::store {

// What a store tells about one of its targets. All may be empty; called on the threads of the event
// loops: must be quick, and must not call the store.
struct RedisTargetHooks {
  // A call was answered after so long; a call carries up to 64 admissions.
  std::function<void(Duration)> on_latency{};
  // One admission, or what of it this target decides. Undecided: the outage rule went on.
  std::function<void(Outcome)> on_decided{};
  // It is asked about this bucket, by an admission.
  std::function<void(std::string_view bucket_key)> on_bucket{};
  // Charges of which nobody knows whether they were made; they are never given back.
  std::function<void(std::size_t)> on_unknown_charges{};
};

// What a store tells about itself, for metrics and logs, as above. `target`: Target::name().
struct RedisStoreHooks {
  // Asked once by each event loop for each of its targets.
  std::function<RedisTargetHooks(std::string_view target)> of_target{};
  // Whether the outage rule decides for this target's buckets, and if so why; told when it changes.
  std::function<void(std::string_view target, bool, std::string_view why)> on_degraded{};
  // No loop has this target any more.
  std::function<void(std::string_view target)> on_removed{};
  // What an operator should know; the same kind at most once in ten seconds.
  std::function<void(std::string_view)> on_warning{};
};

struct RedisStoreOptions {
  std::string key_prefix = "stint";                  // see docs/redis.md
  Duration timeout = std::chrono::milliseconds{50};  // of one call, from queueing on; 1 ms or more
  std::int64_t replicas = 1;  // assumed while nothing was heard of their number; 1 or more
  // Of the notes and counters that an outage needs; see HeardOptions and LocalOptions.
  std::size_t max_buckets = 1'000'000;
  Duration lease_ttl = std::chrono::seconds{30};  // LimiterOptions::concurrency_ttl
  std::size_t calls_in_flight = 4;                // see LaneOptions
  const Scripts* scripts = nullptr;               // must outlive the store; null: the store's own
  RedisStoreHooks hooks{};
};

// RedisTargetHealth::text of a server of which nothing is known yet.
inline constexpr std::string_view kNotConnectedYet = "not connected yet";

// How a server stands, as this process sees it.
struct RedisTargetHealth {
  std::string name;
  bool degraded = false;  // on any of the event loops
  std::string text;       // why, when degraded
  TimePoint since{};      // when degraded: by the clock of this process
};

// Every event loop has connections of its own, and calls go by the loop that they are made on;
// calls of other threads go by one of the loops in turn.
//
// Errors never reach the callers of acquire: what the servers cannot decide is decided in this
// process by the outage rule of each policy (docs/redis.md).
// Thread rule: as RateStore; `done` is called on the thread of an event loop, or before the call
// returns. A caller must not block an event loop of the store while it waits for it.
class RedisStore final : public RateStore {
 public:
  // What the store needs of a server (scripts, probe, callbacks), by the name of its target; the
  // address and how to log in are to be filled in.
  using Prepare = std::function<redis::ServerOptions(std::string_view name)>;
  // Makes what stands behind the configured addresses, for one event loop.
  using MakeTopology =
      std::function<std::unique_ptr<redis::Topology>(net::EventLoop&, const Prepare&)>;

  // `clock` and `entropy` must outlive it.
  RedisStore(RedisStoreOptions options, const Clock& clock, base::Entropy& entropy);
  // All loops must have been stopped for it (`stop`), if they were started.
  ~RedisStore() override;

  // Before `start`, for each loop; at least one.
  void add_loop(net::EventLoop& loop, const MakeTopology& make);
  // Other servers from soon on, for every loop: what is under way is finished where it was begun,
  // and nothing moves but the calls. The old servers are used until the new ones are connected, for
  // at most a second. After every loop's `start`; any thread. `make` is called on each loop's
  // thread; what it needs must live as long as it does.
  void replace(MakeTopology make, Duration timeout);
  // Begins to connect. On the loop's thread, or before it runs.
  void start(net::EventLoop& loop);
  // On the loop's thread: sends what must not wait, and closes the loop's connections. Calls that
  // come later find nobody, and are decided by the outage rule.
  [[nodiscard]] net::Task<void> stop(net::EventLoop& loop);

  void acquire(AdmissionRecord& record, Done done) override;
  void peek(AdmissionRecord& record, Done done) override;
  void settle(AdmissionRecord& record, Settled done) override;
  void renew(std::span<AdmissionRecord* const> records, Done done) override;
  void reset(std::string_view pattern, std::uint64_t cursor, ResetPage& page, Done done) override;
  void list(std::string_view pattern, std::uint64_t cursor, std::size_t page_size, BucketPage& page,
            Done done) override;
  // Of the buckets that are counted in this process; how many there are in Redis is not known.
  [[nodiscard]] StoreStats stats() const override;

  [[nodiscard]] std::vector<RedisTargetHealth> health() const;
  // The name of the target that has the bucket, whether there is one or not. On the thread of one
  // of the loops.
  [[nodiscard]] std::string target_of(std::string_view bucket_key) const;
  // The number of live replicas as last heard.
  [[nodiscard]] std::int64_t replicas() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stint::store
