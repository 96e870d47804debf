// What is to be done to a bucket of which an admission was decided before.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "base/id.h"
#include "limit/limit_set.h"
#include "store/rate_store.h"

namespace stint::store {

// The numbers are those of lua/decide.lua.
enum class Action : std::uint8_t {
  give_back = 1,       // `amount` back to the window `when` (of a token bucket: its fills)
  take = 2,            // `amount` more in the window of now
  take_in_window = 3,  // `amount` more in the window `when`, if that still counts
  remove = 4,          // the log entry (that cost `amount`) or the lease of the id
  put = 5,             // a log entry of `amount` made at `when`; or a lease that expires at `when`
  renew = 6,           // the id's lease, for `amount` microseconds from now
};

// Owns what it says: it may have to wait longer than the record that it comes from lives.
struct Change {
  struct Step {
    Action action{};
    limit::LimitName limit{};
    std::int64_t amount = 0;
    std::int64_t when = 0;
  };
  std::string key{};
  std::string text{};
  limit::LimitSetPtr limits{};  // of a bucket that has to be made for it
  // Of the bucket that was charged: another one gets nothing back. 0: whichever there is.
  std::uint64_t birth = 0;
  base::Id id{};
  boost::container::small_vector<Step, 4> steps{};
};

// What settling leaves to do (RateStore::settle); nothing if all that was charged is to stay.
[[nodiscard]] std::optional<Change> settlement(const AdmissionRecord& record,
                                               const BucketSlot& bucket);
// The renewal of the bucket's lease; nothing if the record holds none there.
[[nodiscard]] std::optional<Change> renewal(const AdmissionRecord& record,
                                            const BucketSlot& bucket);

}  // namespace stint::store
