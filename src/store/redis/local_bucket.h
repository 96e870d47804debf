// One bucket that is counted in this process.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/redis/local_limit.h"

namespace stint::store {

// Not thread-safe.
class LocalBucket {
 public:
  // How a bucket begins: by whose rule, and knowing what.
  struct Start {
    TimePoint now{};
    std::int64_t replicas = 1;  // last known, at least 1
    OnStoreError rule = OnStoreError::local;
    std::optional<HeardBucket> heard{};
    std::uint64_t begun = 0;  // a number that no other beginning has
  };

  LocalBucket(std::string key, std::string text, limit::LimitSetPtr limits, bool overflow,
              const Start& start);

  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  [[nodiscard]] bool overflow() const noexcept { return overflow_; }
  [[nodiscard]] const limit::LimitSetPtr& limits() const noexcept { return limits_; }

  // Makes the bucket fit an admission: other limits, another rule; it begins anew where that is
  // due (see LocalCounters): nothing of it is unsent, and it is spent or was heard of since.
  void fit(const limit::LimitSetPtr& limits, const Start& start);

  [[nodiscard]] LocalLimit& operator[](std::size_t limit) noexcept { return counted_[limit]; }
  // The limit of that name, or null.
  [[nodiscard]] LocalLimit* find(const limit::LimitName& name) noexcept;
  void advance(TimePoint now);
  // Whether it says no more than a fresh one. May notice late that something was given back: it
  // looks again when what it last saw is over, as counting leases takes long.
  [[nodiscard]] bool spent(TimePoint now) noexcept;

  // Charges are told apart by when they were taken: all since the last time are of one
  // generation, which is named by a number that begins with the first of them.
  [[nodiscard]] bool unsent() const noexcept { return !generations_.empty(); }
  [[nodiscard]] bool holds(std::uint64_t generation) const noexcept;
  // The generation of a charge made now; `fresh` if a new one is to begin, which it then does.
  [[nodiscard]] std::uint64_t generation(std::uint64_t fresh);

  [[nodiscard]] SpentBucket take(TimePoint now);
  void restore(const SpentBucket& spent, TimePoint now);

 private:
  void begin(const Start& start);

  std::string key_;
  std::string text_;
  limit::LimitSetPtr limits_;
  bool overflow_;
  OnStoreError rule_ = OnStoreError::local;
  std::int64_t replicas_ = 1;
  std::uint64_t begun_ = 0;
  TimePoint taken_at_ = TimePoint::min();
  TimePoint not_spent_before_ = TimePoint::min();
  boost::container::small_vector<std::uint64_t, 1> generations_;  // ascending
  std::vector<LocalLimit> counted_;                               // one for each of limits_
};

}  // namespace stint::store
