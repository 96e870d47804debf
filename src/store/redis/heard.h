// What this process last heard of each bucket from Redis: where counting goes on in an outage.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "limit/limit_set.h"
#include "stint/time.h"
#include "store/rate_store.h"

namespace stint::store {

struct HeardOptions {
  // The most buckets that are remembered, at about 120 bytes each. 0 is taken as 1.
  std::size_t max_buckets = 1'000'000;
  // Secret, random: buckets are told apart by a 64-bit hash of their key. Two that meet are taken
  // for each other in an outage, which a stranger must not be able to bring about.
  std::uint64_t hash_seed = 0;
  // How long leases that were heard of are taken to live: the ttl of leases.
  Duration lease_ttl = std::chrono::seconds{30};
};

// How one limit stood.
struct HeardLimit {
  // Used, 0 to the quota; of a token bucket: its level, below 0 when it owes.
  std::int64_t value = 0;
  // From when on it says no more than a fresh one.
  TimePoint until{};
};

struct HeardBucket {
  limit::LimitSetPtr limits;  // those that were heard of, which a reload may have replaced
  TimePoint at{};             // the server's time of the answer
  boost::container::small_vector<HeardLimit, 2> values;  // one for each of `limits`

  // Null: nothing was heard of such a limit.
  [[nodiscard]] const HeardLimit* find(const limit::LimitName& name) const noexcept;
};

// Thread rule: any thread.
class Heard {
 public:
  explicit Heard(HeardOptions options);
  ~Heard();
  Heard(const Heard&) = delete;
  Heard& operator=(const Heard&) = delete;

  // Takes in the answer of the store to one bucket, as it was at `store_now`, the time of the
  // server that has it: the `remaining` and `reset` of the slots. A bucket of which nothing is used
  // is forgotten: it counts as one that was never heard of. Looks at a few old notes to forget
  // those that say nothing any more, by `now`: steady time, as servers have times of their own.
  void note(const BucketSlot& bucket, std::span<const LimitSlot> slots, TimePoint store_now,
            Duration now);

  // The last note, which may be one whose time is over.
  [[nodiscard]] std::optional<HeardBucket> find(std::string_view key) const;

  [[nodiscard]] std::size_t size() const;

 private:
  class Stripe;

  [[nodiscard]] Stripe& stripe_of(std::uint64_t hash) const noexcept;

  const HeardOptions options_;
  std::unique_ptr<Stripe[]> stripes_;
  std::size_t stripe_count_;
};

}  // namespace stint::store
