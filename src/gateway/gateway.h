// The gateway: authenticates, admits, forwards and meters.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admission/limiter_core.h"
#include "base/entropy.h"
#include "config/bootstrap.h"
#include "gateway/client_address.h"
#include "gateway/serving.h"
#include "gateway/store_health.h"
#include "gateway/store_wait.h"
#include "http/server.h"
#include "http/upstream.h"
#include "net/event_loop.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "stint/time.h"
#include "store/rate_store.h"

namespace stint::gateway {

enum class GatewayError : std::uint8_t;  // refusal.h
class Relay;
struct OwnAnswer;  // refusal.h

// What all event loops share. Thread rule: any thread.
class Gateway {
 public:
  // All references must outlive it. Error: what in the bootstrap cannot be used.
  Gateway(const config::Bootstrap& bootstrap, std::shared_ptr<store::RateStore> store,
          const Clock& clock, base::Entropy& entropy, observe::Metrics& metrics,
          const observe::Log& log);

  // Puts the policies of the snapshot into force and makes what the loops are to serve by.
  [[nodiscard]] std::shared_ptr<const Serving> adopt(
      std::shared_ptr<const config::Snapshot> snapshot);

  // To be called at least each ninth of the lease ttl.
  void renew_leases();

  // From SIGTERM on /readyz says so.
  void set_stopping() noexcept { stopping_ = true; }
  [[nodiscard]] bool stopping() const noexcept { return stopping_; }

  // For a request that the server refused before a dispatcher saw it. Any thread.
  void note_unread(int status, std::string_view peer) const;

  // For requests that were decided; also called by `stint demo` to show them.
  std::function<void(const Decision&, std::string_view request)> on_decision;

  // For the body of /readyz; set by the wiring where the store can be away. Any thread; quick.
  std::function<StoreHealth()> store_health;

  // Calls to the store that are under way and whose requests have ended: to be waited for, not
  // for long, when the loops have ended.
  [[nodiscard]] std::size_t orphan_calls() const noexcept { return store_calls_->orphans; }
  [[nodiscard]] const std::shared_ptr<StoreCalls>& store_calls() const noexcept {
    return store_calls_;
  }

  struct RequestMetrics;
  [[nodiscard]] const RequestMetrics& request_metrics() const noexcept { return *request_metrics_; }
  [[nodiscard]] admission::LimiterCore& early() noexcept { return early_; }
  [[nodiscard]] admission::LimiterCore& late() noexcept { return late_; }
  [[nodiscard]] const store::RateStore& store() const noexcept { return *store_; }
  [[nodiscard]] const config::Bootstrap& bootstrap() const noexcept { return bootstrap_; }
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
  [[nodiscard]] const observe::Log& log() const noexcept { return log_; }
  [[nodiscard]] const ClientAddresses& addresses() const noexcept { return addresses_; }
  [[nodiscard]] std::string new_request_id() noexcept;

  ~Gateway();

 private:
  const config::Bootstrap& bootstrap_;
  std::shared_ptr<store::RateStore> store_;
  const Clock& clock_;
  observe::Metrics& metrics_;
  const observe::Log& log_;
  base::IdGenerator ids_;
  ClientAddresses addresses_;
  admission::LimiterCore early_;
  admission::LimiterCore late_;
  std::unique_ptr<RequestMetrics> request_metrics_;
  std::vector<observe::Watch> watches_;
  observe::Gauge generation_;
  const std::shared_ptr<StoreCalls> store_calls_;
  std::atomic<bool> stopping_{false};
};

// The requests of one event loop. Thread rule: the loop's thread, but for the constructor.
class Dispatcher {
 public:
  // Both must outlive it. `tls`: for https upstreams.
  Dispatcher(net::EventLoop& loop, Gateway& gateway,
             std::shared_ptr<const net::TlsClientContext> tls);
  ~Dispatcher();

  void serve_by(std::shared_ptr<const Serving> serving) noexcept { serving_ = std::move(serving); }
  void close_idle() noexcept { upstream_.close_idle(); }

  // Answers one request: the handler of http::Server.
  [[nodiscard]] net::Task<void> handle(http::Exchange& exchange);

  struct Request;  // what is known of the request, and what is to be logged of it

 private:
  [[nodiscard]] net::Task<void> dispatch(Request& request);
  [[nodiscard]] net::Task<void> chat_or_embeddings(Request& request);
  [[nodiscard]] net::Task<void> models(Request& request);
  [[nodiscard]] net::Task<void> plain_route(Request& request);
  [[nodiscard]] net::Task<void> readyz(Request& request);
  [[nodiscard]] net::Task<void> respond(Request& request, http::ResponseHead head,
                                        std::string body);
  // The answer to a request that was not admitted, if there is anybody to read it.
  [[nodiscard]] net::Task<void> refuse(Request& request);

  [[nodiscard]] net::Task<void> fail(Request& request, GatewayError error, std::string about = {});
  // The same; but of a request that a limit refused before, that is its answer.
  [[nodiscard]] net::Task<void> fail_or_refuse(Request& request, OwnAnswer answer);
  // The answer to a request whose body could not be read, if there is anybody to read it.
  [[nodiscard]] net::Task<void> refuse_body(Request& request);
  // Answers with an error of ours, and how the limits stand.
  [[nodiscard]] net::Task<void> give_up(Request& request, OwnAnswer answer);
  [[nodiscard]] net::Task<void> wrong_method(Request& request, std::string allowed);

  // Nothing if the request may go on; else the error to answer with.
  [[nodiscard]] std::optional<GatewayError> authenticate(Request& request) const;
  // False if not admitted: to be answered by `refuse`. Waits for a store that answers later, as
  // long as the client does.
  [[nodiscard]] net::Task<bool> admit_early(Request& request);
  [[nodiscard]] net::Task<bool> admit_late(Request& request, Cost cost);
  [[nodiscard]] net::Task<bool> admitted(Request& request);
  // Of a request that the early policies refused: whether the late ones may have more to say.
  [[nodiscard]] bool worth_a_look(const Request& request) const;
  // What they would say, which charges nothing, becomes a part of the refusal.
  [[nodiscard]] net::Task<void> look_late(Request& request, Cost cost);
  // False if the client left before the store answered.
  [[nodiscard]] net::Task<bool> store_answered(Request& request);

  struct Forwarding;
  [[nodiscard]] net::Task<void> forward(Request& request, Forwarding forwarding);
  [[nodiscard]] http::ResponseHead client_head(Request& request, http::ResponseHead head);
  [[nodiscard]] net::Task<void> relay(Request& request, Forwarding forwarding,
                                      std::unique_ptr<http::UpstreamAnswer> answer);
  // Until all that was taken is metered; others have their turn meanwhile.
  [[nodiscard]] net::Task<void> meter_all(Relay& relay);
  [[nodiscard]] net::Task<void> relay_whole(Request& request, Relay& relay, http::ResponseHead head,
                                            http::UpstreamAnswer& answer);
  [[nodiscard]] net::Task<void> break_off(Request& request, Relay& relay, GatewayError error);
  // Counts and shows the decision, once: when it is made, not when the answer has ended.
  void decided(Request& request) const;
  void finish(Request& request) const;

  net::EventLoop& loop_;
  Gateway& gateway_;
  http::UpstreamClient upstream_;
  std::shared_ptr<const Serving> serving_;
};

}  // namespace stint::gateway
