#include "gateway/store_metrics.h"

namespace stint::gateway {
namespace {

observe::Counter requests(observe::Metrics& metrics, std::string_view shard,
                          std::string_view decision) {
  return metrics.counter("stint_shard_requests_total", "Admissions by server and its decision.",
                         {{"shard", shard}, {"decision", decision}});
}

}  // namespace

ShardMetrics::ShardMetrics(observe::Metrics& metrics, std::string_view shard)
    : admitted_(requests(metrics, shard, "admitted")),
      refused_(requests(metrics, shard, "refused")),
      undecided_(requests(metrics, shard, "undecided")),
      fallbacks_(metrics.counter("stint_fallback_decisions_total",
                                 "Decisions by the outage rule in the place of a server.",
                                 {{"shard", shard}})),
      unknown_(metrics.counter("stint_unknown_charges_total",
                               "Charges and settlements whose outcome is unknown.",
                               {{"shard", shard}})),
      latency_(metrics.histogram("stint_store_latency_seconds",
                                 "From a call to a server to its answer.", observe::store_buckets(),
                                 {{"shard", shard}})),
      degraded_(metrics.gauge("stint_store_degraded",
                              "1 while a server does not answer and the outage rule decides.",
                              {{"shard", shard}})),
      keys_(metrics.gauge("stint_shard_keys",
                          "Different buckets this process asked the server about in the last "
                          "minute, about.",
                          {{"shard", shard}})) {}

void ShardMetrics::decided(Outcome outcome) const noexcept {
  switch (outcome) {
    case Outcome::admitted:
      return admitted_.add();
    case Outcome::refused:
      return refused_.add();
    case Outcome::undecided:
      return undecided_.add();
  }
}

}  // namespace stint::gateway
