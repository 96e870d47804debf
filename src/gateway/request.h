// One request on its way through the gateway.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/client_address.h"
#include "gateway/gateway.h"
#include "gateway/permit.h"
#include "gateway/serving.h"
#include "gateway/store_wait.h"
#include "gateway/usage_meter.h"
#include "http/server.h"
#include "http/upstream.h"
#include "observe/metrics.h"
#include "stint/headers.h"

namespace stint::gateway {

// Whether this is the value of an Authorization field that holds a key.
[[nodiscard]] bool is_bearer(std::string_view authorization) noexcept;

struct Gateway::RequestMetrics {
  explicit RequestMetrics(observe::Metrics& metrics);

  void count(int status) const;

  observe::Gauge in_flight;
  observe::Histogram latency;
  observe::Counter by_class[6];  // by the first digit of the status; 0: no answer was sent
};

struct Dispatcher::Request {
  Request(http::Exchange& exchange, std::shared_ptr<const Serving> serving, Gateway& gateway,
          net::EventLoop& loop);
  ~Request() {
    permit.release();
    store->leave();
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  http::Exchange& exchange;
  const std::shared_ptr<const Serving> serving;  // null before the first configuration
  const Duration started;
  std::string id;
  ClientAddress client;
  const bool trusted_peer;  // the connection is that of a proxy that is believed
  HeaderStyle style = HeaderStyle::openai;
  std::string_view route = "none";  // for logs

  std::vector<std::string> header_values;  // what `attributes` points to
  Attributes attributes;
  const config::ApiKey* key = nullptr;
  const config::Model* model = nullptr;
  const std::shared_ptr<StoreWait> store;
  Permit permit;
  bool left = false;  // the client, before it was admitted: there is nobody to answer
  bool decision_counted = false;

  // For the log.
  int status = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  MeteredUsage usage;
  std::string refused_by;

  [[nodiscard]] const http::RequestHead& head() const noexcept { return exchange.head(); }
  // Before the last byte of an answer: whether StoreWait::until_settled is to be awaited. Not for
  // a client that has gone.
  [[nodiscard]] bool unsettled() const noexcept {
    return store->settling() && !exchange.client_gone();
  }
};

// A request to an upstream, and how its answer is metered.
struct Dispatcher::Forwarding {
  http::Origin origin;
  http::UpstreamRequest request;
  http::UpstreamLimits limits;
  std::optional<UsageMeterOptions> meter;  // absent: tokens are not counted
};

}  // namespace stint::gateway
