// One bucket in memory: header, counters and key in a single block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "limit/counter.h"
#include "limit/limit_set.h"

namespace stint::store {

// The longest text of a key that is kept beside its hash (limit::KeySpan); the rest is cut.
inline constexpr std::size_t kMaxKeptText = 1024;

// Not thread-safe: guarded by the mutex of the stripe it lies in.
class Bucket {
 public:
  struct Destroy {
    void operator()(Bucket* bucket) const noexcept;
  };
  using Owner = std::unique_ptr<Bucket, Destroy>;

  // With fresh counters. `text` is kept only if it is not the key.
  [[nodiscard]] static Owner create(std::uint64_t hash, std::string_view key, std::string_view text,
                                    limit::LimitSetPtr limits, bool overflow);
  // The same key and a copy of every counter.
  [[nodiscard]] Owner clone() const;
  // The same key with the counters of other limits: those of the same name are taken from this
  // bucket, which is to be destroyed then; the others are fresh.
  [[nodiscard]] Owner with_limits(limit::LimitSetPtr limits);

  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  [[nodiscard]] std::string_view key() const noexcept;
  [[nodiscard]] std::string_view text() const noexcept;
  [[nodiscard]] bool overflow() const noexcept { return overflow_; }
  [[nodiscard]] const limit::LimitSet& limits() const noexcept { return *limits_; }
  [[nodiscard]] bool has_limits(const limit::LimitSetPtr& limits) const noexcept {
    return limits_ == limits;
  }
  // Takes over limits of the same names, whose quotas may differ.
  void set_limits(limit::LimitSetPtr limits) noexcept { limits_ = std::move(limits); }

  [[nodiscard]] std::span<limit::Counter> counters() noexcept;
  [[nodiscard]] std::span<const limit::Counter> counters() const noexcept;

  void advance(const limit::Moment& at);
  // From when on the bucket says no more than a fresh one.
  [[nodiscard]] TimePoint spent_at() const noexcept;
  [[nodiscard]] bool spent(TimePoint now) const noexcept;
  // How much is left of the limit with least left, in 1 / 1024 of its capacity; negative if the
  // bucket must not be forgotten: it is at a limit, in debt, or holds leases. After `advance`.
  [[nodiscard]] std::int64_t left(TimePoint now) const noexcept;

  // Its place in the stripe.
  std::uint32_t slot = 0;

 private:
  Bucket(std::uint64_t hash, limit::LimitSetPtr limits, bool overflow) noexcept;
  ~Bucket();

  // Allocates the block and copies the texts; the counters are still to be made.
  [[nodiscard]] static Bucket* allocate(std::uint64_t hash, std::string_view key,
                                        std::string_view text, limit::LimitSetPtr limits,
                                        bool overflow);
  [[nodiscard]] char* chars() noexcept;
  [[nodiscard]] const char* chars() const noexcept;

  std::uint16_t key_size_ = 0;
  std::uint16_t text_size_ : 15 = 0;  // 0: the key is the text
  std::uint16_t overflow_ : 1;
  limit::LimitSetPtr limits_;
  std::uint64_t hash_;
  // Behind it in the block: the counters, the key, the text.
};
static_assert(sizeof(Bucket) == 24);

}  // namespace stint::store
