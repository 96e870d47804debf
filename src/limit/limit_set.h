// The limits of one policy, compiled; shared by the policy and by every bucket it has counted in.
#pragma once

#include <atomic>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "limit/spec.h"

namespace stint::limit {

// Immutable. Counted inside, so that a bucket pays one pointer for it.
// Thread rule: any thread.
class LimitSet {
 public:
  // Errors: as stint::validate(std::span<const Limit>).
  [[nodiscard]] static Result<boost::intrusive_ptr<const LimitSet>> create(
      std::span<const Limit> limits);

  [[nodiscard]] std::size_t size() const noexcept { return specs_.size(); }
  [[nodiscard]] std::span<const Spec> specs() const noexcept { return specs_; }
  [[nodiscard]] const Spec& operator[](std::size_t index) const noexcept { return specs_[index]; }

  [[nodiscard]] std::optional<std::size_t> find(const LimitName& name) const noexcept;
  // The same names in the same order: counters of one fit the other.
  [[nodiscard]] bool same_names(const LimitSet& other) const noexcept;

  friend void intrusive_ptr_add_ref(const LimitSet* set) noexcept {
    set->references_.fetch_add(1, std::memory_order_relaxed);
  }
  friend void intrusive_ptr_release(const LimitSet* set) noexcept {
    if (set->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete set;
  }

 private:
  explicit LimitSet(std::vector<Spec> specs) noexcept : specs_(std::move(specs)) {}
  ~LimitSet() = default;

  std::vector<Spec> specs_;
  mutable std::atomic<std::uint64_t> references_{0};
};

using LimitSetPtr = boost::intrusive_ptr<const LimitSet>;

}  // namespace stint::limit
