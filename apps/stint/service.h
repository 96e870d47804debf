// The whole program while it serves: configuration, data plane, metrics, signals.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/program.h"
#include "admin_wiring.h"
#include "config/bootstrap.h"
#include "config/file_source.h"
#include "gateway/gateway.h"
#include "net/event_loop.h"
#include "net/listener.h"
#include "net/signals.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "redis_wiring.h"
#include "worker.h"

namespace stint::app {

// One of the start-up errors that end the program, as text for a person.
struct StartError {
  std::string text;
};

// Thread rule: the thread that runs it.
class Service final : private admin::Program {
 public:
  // `bootstrap_file`: where the bootstrap comes from, to be read again; empty: only from the
  // environment.
  Service(config::Bootstrap bootstrap, config::Environment environment,
          const std::string& bootstrap_file);
  ~Service() override;

  // Instead of a resources file, for `stint demo`. Before `start`.
  void serve_snapshot(std::shared_ptr<const config::Snapshot> snapshot);
  // See Gateway::on_decision. Before `start`.
  void on_decision(std::function<void(const Decision&, std::string_view)> callback);

  // Binds everything and serves from then on.
  [[nodiscard]] std::expected<void, StartError> start();
  // Where the data plane listens, after `start`.
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

  // Until SIGTERM or SIGINT, and until all requests have ended then. 0: orderly.
  [[nodiscard]] int run();

 private:
  void make_gateway();
  [[nodiscard]] std::expected<void, StartError> open_store();
  [[nodiscard]] std::expected<void, StartError> load_resources();
  [[nodiscard]] std::expected<void, StartError> open_metrics();
  [[nodiscard]] std::expected<void, StartError> open_admin();
  [[nodiscard]] std::expected<void, StartError> open_workers();
  void adopt(std::shared_ptr<const config::Snapshot> snapshot);
  void look_at_bootstrap();
  void take_over(const config::Bootstrap& wanted);
  void take_redis(const config::Bootstrap& from);
  void take_settings(const config::Bootstrap& from, std::string_view begin);
  void look_at_resources();

  // For the admin API.
  [[nodiscard]] const config::Bootstrap& bootstrap() const override { return bootstrap_; }
  [[nodiscard]] std::shared_ptr<const config::Snapshot> snapshot() const override {
    return snapshot_;
  }
  [[nodiscard]] admin::ConfigReport report() const override;

  [[nodiscard]] net::Task<void> watch_files();
  [[nodiscard]] net::Task<void> watch_store();
  [[nodiscard]] net::Task<void> keep_leases();
  [[nodiscard]] net::Task<void> obey_signals();
  [[nodiscard]] net::Task<void> serve_metrics();
  [[nodiscard]] net::Task<void> serve_admin();
  [[nodiscard]] net::Task<void> answer_scrape(http::Exchange& exchange);

  config::Bootstrap bootstrap_;
  config::Environment environment_;
  std::optional<config::FileSource> bootstrap_source_;
  bool asked_again_ = false;  // by SIGHUP
  observe::Metrics metrics_;
  observe::Log log_;
  observe::Counter reload_failures_ = metrics_.counter(
      "stint_config_reload_failures_total", "Configurations that were refused at run time.");
  bool refused_ = false;  // the resources file as it was seen last is not in force
  net::EventLoop loop_;   // of everything but the data plane
  net::TaskGroup tasks_{loop_};
  net::TaskGroup ending_{loop_};  // of what ends the others
  std::optional<net::Signals> signals_;
  // They outlive the store, whose connections are on them.
  std::deque<net::EventLoop> worker_loops_;
  std::unique_ptr<RedisWiring> redis_;  // null: counters are in memory
  std::string redis_fault_;             // why there is none although it is wanted
  std::shared_ptr<store::RateStore> store_;
  std::unique_ptr<gateway::Gateway> gateway_;
  std::optional<config::ResourceLoader> loader_;
  std::shared_ptr<const config::Snapshot> given_;
  std::shared_ptr<const config::Snapshot> snapshot_;
  std::shared_ptr<const gateway::Serving> serving_;
  admin::ConfigReport reread_report_;  // of the bootstrap; the rest is the loader's
  std::unique_ptr<http::Server> metrics_server_;
  std::unique_ptr<AdminWiring> admin_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::uint16_t port_ = 0;
};

}  // namespace stint::app
