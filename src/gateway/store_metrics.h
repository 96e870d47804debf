// The metrics of a store across a network, by server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "observe/metrics.h"
#include "stint/decision.h"
#include "stint/time.h"

namespace stint::gateway {

// Of one server ("shard"), named as configured. The wiring makes one for each, and has the store's
// own callbacks call it; as long as it lives, the series are shown. Copies count into the same.
// Thread rule: any thread.
class ShardMetrics {
 public:
  ShardMetrics(observe::Metrics& metrics, std::string_view shard);

  // The server decided on an admission, or (undecided) did not.
  void decided(Outcome outcome) const noexcept;
  // One call to it was answered, after so long.
  void answered(Duration took) const noexcept { latency_.observe(took); }
  // The outage rule decided in its place.
  void fell_back() const noexcept { fallbacks_.add(); }
  // A charge or settlement whose outcome nobody knows.
  void lost_track() const noexcept { unknown_.add(); }
  void set_degraded(bool degraded) const noexcept { degraded_.set(degraded ? 1 : 0); }
  // How many different buckets it was asked about in the last minute, about.
  void set_keys(std::size_t keys) const noexcept { keys_.set(static_cast<std::int64_t>(keys)); }

 private:
  observe::Counter admitted_;
  observe::Counter refused_;
  observe::Counter undecided_;
  observe::Counter fallbacks_;
  observe::Counter unknown_;
  observe::Histogram latency_;
  observe::Gauge degraded_;
  observe::Gauge keys_;
};

}  // namespace stint::gateway
