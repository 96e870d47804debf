// One call of lua/decide.lua: what it is to decide and to change, packed as the script reads it.
#pragma once

#include <boost/container/small_vector.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "limit/limit_set.h"
#include "store/rate_store.h"
#include "store/redis/change.h"

namespace stint::store {

// The longest text of a key that a bucket keeps beside its hash; the rest is cut.
inline constexpr std::size_t kMaxStoredText = 1024;

// Records and changes must lie still, with all their texts, until the plan is done with.
// Not thread-safe.
class Plan {
 public:
  // The most that one call carries.
  static constexpr std::size_t kMaxAdmissions = 64;
  static constexpr std::size_t kMaxChanges = 512;
  static constexpr std::size_t kMaxBuckets = 256;

  using Buckets = boost::container::small_vector<std::uint16_t, 2>;

  // One admission, or what of it is in this call's reach.
  struct Asked {
    AdmissionRecord* record = nullptr;
    Buckets buckets{};   // of the record
    std::size_t op = 0;  // of admitted_ops; equal ones share one
    bool look = false;
  };
  struct AskedBucket {
    std::string_view key{};
    limit::LimitSetPtr limits{};
    std::size_t place = 0;  // as the script counts, from 1
  };

  // `keys_begin` must outlive it (see layout.h).
  explicit Plan(std::string_view keys_begin) : begin_(keys_begin) {}

  // False: it does not fit in, or comes with other limits than those that the call asks the same
  // bucket for; then nothing was added. An empty plan takes anything.
  // `look`: answer as if, and charge nothing.
  [[nodiscard]] bool add(AdmissionRecord& record, const Buckets& buckets, bool look);
  [[nodiscard]] bool add(const Change& change);

  [[nodiscard]] bool empty() const noexcept { return asked_.empty() && changes_ == 0; }
  [[nodiscard]] std::size_t admissions() const noexcept { return asked_.size(); }
  [[nodiscard]] std::size_t buckets() const noexcept { return buckets_.size(); }

  // Writes the plan; once, after the last `add`. `not_after`: store time. `birth`: below 2^52 and
  // not to be guessed or repeated.
  void finish(TimePoint not_after, std::int64_t birth);
  [[nodiscard]] std::span<const std::string_view> keys() const noexcept { return keys_; }
  [[nodiscard]] std::string_view text() const noexcept { return text_; }

  // In the order of `add`.
  [[nodiscard]] const std::vector<Asked>& asked() const noexcept { return asked_; }
  [[nodiscard]] std::size_t ops() const noexcept { return ops_.size(); }
  [[nodiscard]] std::size_t changes() const noexcept { return changes_; }
  // In the order in which they are answered, which is that of their first admission.
  [[nodiscard]] const std::vector<AskedBucket>& asked_buckets() const noexcept {
    return asked_buckets_;
  }
  // What tells the bucket from others of its key if the call makes it.
  [[nodiscard]] std::uint64_t birth_of(const AskedBucket& bucket) const noexcept {
    return static_cast<std::uint64_t>(first_birth_) + bucket.place;
  }
  // Which of asked_buckets() a bucket of a record is, by its key.
  [[nodiscard]] std::size_t asked_place(std::string_view key) const;

 private:
  struct Planned {
    std::string_view key;
    std::string_view text;        // empty: the key
    limit::LimitSetPtr asked;     // null: no admission asks it
    std::size_t asked_place = 0;  // in asked_buckets_
    std::size_t spec = 0;
    bool leases = false;
    boost::container::small_vector<Duration, 1> logs{};
  };
  struct Op {
    std::string terms;  // what admissions of different buckets may have in common
    boost::container::small_vector<std::size_t, 2> places{};
    std::string id{};  // empty: none
    std::size_t count = 1;

    [[nodiscard]] bool same_charge(const Op& other) const noexcept {
      return id.empty() && other.id.empty() && places == other.places && terms == other.terms;
    }
  };

  [[nodiscard]] std::size_t spec_of(const limit::LimitSetPtr& limits);
  // Numbers as the script counts them, from 1.
  [[nodiscard]] std::size_t place_of(std::string_view key, std::string_view text,
                                     const limit::LimitSetPtr& limits);
  [[nodiscard]] Op op_of(const AdmissionRecord& record, const Buckets& buckets, bool look);
  [[nodiscard]] std::size_t ask(const BucketSlot& bucket);
  void append_buckets();
  void append_ops();

  const std::string_view begin_;
  std::int64_t first_birth_ = 0;
  std::vector<limit::LimitSetPtr> specs_;
  std::vector<Planned> buckets_;
  boost::unordered_flat_map<std::string_view, std::size_t> places_;
  std::string change_bodies_;
  std::size_t changes_ = 0;
  std::vector<Op> ops_;
  std::vector<Asked> asked_;
  std::vector<AskedBucket> asked_buckets_;

  std::string text_;
  std::string key_texts_;
  std::vector<std::string_view> keys_;
};

}  // namespace stint::store
