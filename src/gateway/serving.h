// What the gateway serves by: one generation of the configuration, made ready for requests.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "config/snapshot.h"
#include "http/upstream.h"
#include "observe/metrics.h"
#include "stint/decision.h"

namespace stint::gateway {

// The metrics of one policy. Labels come from the configuration only.
struct PolicyMetrics {
  observe::Counter admitted;
  observe::Counter refused;
  observe::Counter undecided;
  observe::Counter shadow_refused;
  observe::Counter not_charged;
  std::map<Unit, observe::Counter> rejections;
  observe::Gauge info{};  // always 1: which name belongs to the id
};

struct ModelMetrics {
  observe::Counter input_tokens;
  observe::Counter output_tokens;
  observe::Counter cached_tokens;
  observe::Counter reasoning_tokens;
  observe::Counter unmetered;
};

// Immutable; any thread. Every event loop holds the one that it serves by.
class Serving {
 public:
  Serving(std::shared_ptr<const config::Snapshot> snapshot, observe::Metrics& metrics);

  [[nodiscard]] const config::Snapshot& snapshot() const noexcept { return *snapshot_; }
  // The attributes that are header fields and that policies look at: "header:<lower-case name>".
  [[nodiscard]] const std::vector<std::string>& header_attributes() const noexcept {
    return header_attributes_;
  }
  [[nodiscard]] const http::Origin& origin_of(const config::Route& route) const;
  [[nodiscard]] const http::Origin& origin_of(const config::ProviderKey& key) const;
  [[nodiscard]] const ModelMetrics& metrics_of(const config::Model& model) const;

  // Counts one decision: once for each policy that applied, and once for all. `given_back`: how
  // those stood that had admitted before, and whose charges were given back. What a policy is
  // counted as is what it said; but `admitted` only if that was charged, else `not_charged`.
  void count(const Decision& decision, const std::vector<LimitStatus>& given_back) const;

 private:
  void count_policies(Outcome outcome, const std::vector<LimitStatus>& limits) const;
  void add_policies(const std::vector<Policy>& policies, observe::Metrics& metrics);
  void note_headers(const Condition& condition);
  void note_header(std::string_view attribute);

  std::shared_ptr<const config::Snapshot> snapshot_;
  std::vector<std::string> header_attributes_;
  std::unordered_map<const void*, http::Origin> origins_;  // by the address of the row
  std::unordered_map<const void*, ModelMetrics> models_;
  std::unordered_map<std::string_view, PolicyMetrics> policies_;  // by id
  PolicyMetrics all_;
};

}  // namespace stint::gateway
