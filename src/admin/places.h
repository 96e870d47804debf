// Where the counters live, as the admin API shows it: what the wiring knows of the store behind the
// RateStore contract.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stint/time.h"

namespace stint::admin {

// One server, or this process.
struct Shard {
  std::string name;
  // host:port/database, no secrets; empty: this process, or whichever is the master.
  std::string address{};
  double weight = 1.0;
  std::size_t points = 0;             // on the ring; 0: there is none
  std::optional<double> share = 1.0;  // of all buckets; nothing: not known
};

struct Ring {
  std::string backend;    // "memory", "redis"
  std::string mode;       // "memory", "single", "sentinel", "cluster", "ring"
  int virtual_nodes = 0;  // 0: there is no ring
  std::vector<Shard> shards{};
};

struct ShardHealth {
  std::string name;
  bool degraded = false;  // the outage rule decides
  std::string why{};      // of a degraded one, for a person
  TimePoint since{};      // of a degraded one: wall clock
};

// Thread rule: the thread of the admin API's loop. All must be quick.
class Places {
 public:
  virtual ~Places() = default;

  [[nodiscard]] virtual Ring ring() const = 0;
  // Of every server.
  [[nodiscard]] virtual std::vector<ShardHealth> health() const = 0;
  // The name of the shard where the bucket of this key lives, whether there is one or not.
  // `bucket_key`: as the store has it, see limit::key_of.
  [[nodiscard]] virtual std::string shard_of(std::string_view bucket_key) const = 0;
};

// Of counters in this process.
class InMemory final : public Places {
 public:
  [[nodiscard]] Ring ring() const override;
  [[nodiscard]] std::vector<ShardHealth> health() const override;
  [[nodiscard]] std::string shard_of(std::string_view bucket_key) const override;
};

}  // namespace stint::admin
