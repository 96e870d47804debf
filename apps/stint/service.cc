#include "service.h"

#include <algorithm>
#include <csignal>
#include <thread>
#include <utility>

#include "store/memory/forward_clock.h"
#include "store/memory/memory_store.h"

namespace stint::app {
namespace {

constexpr Duration kLookAtFiles = std::chrono::milliseconds{200};
constexpr Duration kLookAtStore = std::chrono::milliseconds{50};
constexpr Duration kLookAtWorkers = std::chrono::milliseconds{10};
// For calls to the store whose requests were ended, beyond the time-out of one.
constexpr Duration kLastCalls = std::chrono::seconds{1};

observe::LogLevel level_of(config::LogLevel level) {
  switch (level) {
    case config::LogLevel::trace:
    case config::LogLevel::debug:
      return observe::LogLevel::debug;
    case config::LogLevel::info:
      return observe::LogLevel::info;
    case config::LogLevel::warn:
      return observe::LogLevel::warn;
    case config::LogLevel::error:
      return observe::LogLevel::error;
    case config::LogLevel::off:
      return observe::LogLevel::off;
  }
  return observe::LogLevel::info;
}

observe::LogOptions log_options(const config::Observability& observability) {
  observe::LogOptions options;
  options.level = level_of(observability.log_level);
  options.access_log = observability.access_log;
  options.service_name = observability.service_name;
  return options;
}

std::unexpected<StartError> cannot(std::string text) {
  return std::unexpected(StartError{std::move(text)});
}

std::string cannot_listen(const std::string& addr, const net::NetError& error) {
  if (error.code == net::NetErrc::address_in_use) return addr + ": address already in use";
  return addr + ": " + error.text;
}

}  // namespace

Service::Service(config::Bootstrap bootstrap, config::Environment environment,
                 const std::string& bootstrap_file)
    : bootstrap_(std::move(bootstrap)),
      environment_(std::move(environment)),
      log_(log_options(bootstrap_.observability)) {
  if (!bootstrap_file.empty()) bootstrap_source_.emplace(bootstrap_file);
  auto wired = RedisWiring::create(bootstrap_.ratelimit, metrics_, log_);
  wired ? void(redis_ = std::move(*wired)) : void(redis_fault_ = std::move(wired.error()));
  make_gateway();
}

void Service::make_gateway() {
  const auto warn = [this](std::string_view text) { log_.warn(text); };
  if (redis_) {
    store_ = redis_->store();
  } else {
    store_ = std::make_shared<store::MemoryStore>(
        store::MemoryStoreOptions{.max_buckets = bootstrap_.ratelimit.max_buckets,
                                  .hash_seed = base::system_entropy().next(),
                                  .on_warning = warn},
        std::make_unique<store::ForwardClock>(system_clock(), warn));
  }
  gateway_ = std::make_unique<gateway::Gateway>(bootstrap_, store_, system_clock(),
                                                base::system_entropy(), metrics_, log_);
  if (redis_) gateway_->store_health = [this] { return redis_->health(); };
}

Service::~Service() = default;

void Service::serve_snapshot(std::shared_ptr<const config::Snapshot> snapshot) {
  given_ = std::move(snapshot);
}

void Service::on_decision(std::function<void(const Decision&, std::string_view)> callback) {
  gateway_->on_decision = std::move(callback);
}

std::expected<void, StartError> Service::start() {
  signals_.emplace(loop_, std::initializer_list<int>{SIGTERM, SIGINT, SIGHUP});
  if (auto ok = open_workers(); !ok) return ok;
  if (auto ok = open_metrics(); !ok) return ok;
  if (auto ok = open_admin(); !ok) return ok;
  if (auto ok = load_resources(); !ok) return ok;
  if (auto ok = open_store(); !ok) return ok;
  // What is started must be stopped: nothing may fail from here on.
  if (redis_) redis_->store()->start(loop_);
  for (auto& worker : workers_) worker->start();
  log_.info("serving", {{"addr", bootstrap_.proxy.addr},
                        {"port", std::int64_t{port_}},
                        {"loops", static_cast<std::int64_t>(workers_.size())},
                        {"counters", redis_ ? redis_->description()
                                            : "in memory: limits hold for this process alone"}});
  return {};
}

std::expected<void, StartError> Service::open_store() {
  if (!redis_fault_.empty()) return cannot(redis_fault_);
  if (!redis_) return {};
  if (bootstrap_.ratelimit.redis->required) {
    if (auto reached = redis_->check(); !reached) return cannot(reached.error());
  }
  redis_->add_loop(loop_);
  for (auto& worker : workers_) worker->use(*redis_);
  return {};
}

std::expected<void, StartError> Service::open_workers() {
  const auto endpoint = net::parse_endpoint(bootstrap_.proxy.addr);
  if (!endpoint) return cannot("proxy.addr: " + endpoint.error().text);
  const auto port = net::probe_port(*endpoint);
  if (!port) return cannot(cannot_listen(bootstrap_.proxy.addr, port.error()));
  port_ = *port;
  net::Endpoint bound = *endpoint;
  bound.port = port_;
  const config::ClientTls& tls = bootstrap_.upstream.tls;
  auto context = net::TlsClientContext::create({.ca_file = tls.ca_file,
                                                .cert_file = tls.cert_file,
                                                .key_file = tls.key_file,
                                                .verify = tls.verify});
  if (!context) return cannot("upstream.tls: " + context.error().text);
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int loops = config::event_loops(bootstrap_.proxy, cores);
  for (int i = 0; i < loops; ++i) {
    auto worker = Worker::create(worker_loops_.emplace_back(), *gateway_, bound, *context);
    if (!worker) return cannot(cannot_listen(bootstrap_.proxy.addr, worker.error()));
    workers_.push_back(std::move(*worker));
  }
  return {};
}

std::expected<void, StartError> Service::open_metrics() {
  const auto& prometheus = bootstrap_.observability.prometheus;
  if (!prometheus.enabled) return {};
  const auto endpoint = net::parse_endpoint(prometheus.addr);
  if (!endpoint) return cannot("observability.metrics.prometheus.addr: " + endpoint.error().text);
  if (const auto port = net::probe_port(*endpoint); !port) {
    return cannot(cannot_listen(prometheus.addr, port.error()));
  }
  auto listener = net::Listener::open(loop_, *endpoint);
  if (!listener) return cannot(cannot_listen(prometheus.addr, listener.error()));
  metrics_server_ = std::make_unique<http::Server>(
      loop_, std::move(*listener), http::ServerLimits{},
      [this](http::Exchange& exchange) { return answer_scrape(exchange); });
  return {};
}

std::expected<void, StartError> Service::open_admin() {
  if (!bootstrap_.admin.enabled) return {};
  auto opened = AdminWiring::create(loop_, bootstrap_, *this, redis_.get(), *store_, log_);
  if (!opened) return cannot(std::move(opened.error()));
  admin_ = std::move(*opened);
  return {};
}

std::expected<void, StartError> Service::load_resources() {
  if (given_) {
    adopt(given_);
    return {};
  }
  loader_.emplace(bootstrap_.resources_file, environment_, bootstrap_.ratelimit.on_store_error,
                  bootstrap_.proxy.real_ip.ipv6_prefix);
  const auto loaded = loader_->poll();
  if (!loaded) return {};  // somebody is writing it: 503 until it is whole
  if (const auto* faults = std::get_if<std::vector<config::Fault>>(&*loaded)) {
    std::string text;
    for (const config::Fault& fault : *faults) text += to_string(fault) + "\n";
    if (!text.empty()) text.pop_back();
    return cannot(std::move(text));
  }
  for (const config::Fault& warning : loader_->warnings()) log_.warn(to_string(warning));
  adopt(std::get<config::ResourceLoader::Snapshots>(*loaded));
  return {};
}

void Service::adopt(std::shared_ptr<const config::Snapshot> snapshot) {
  if (redis_) redis_->set_longest_window(config::longest_window(*snapshot));
  snapshot_ = snapshot;
  // The old one is dropped last: metrics that both have go on.
  auto serving = gateway_->adopt(std::move(snapshot));
  for (auto& worker : workers_) worker->serve_by(serving);
  serving_ = std::move(serving);
}

int Service::run() {
  ending_.start(obey_signals());
  tasks_.start(keep_leases());
  if (loader_ || bootstrap_source_) tasks_.start(watch_files());
  if (metrics_server_) tasks_.start(serve_metrics());
  if (admin_) tasks_.start(serve_admin());
  if (redis_) tasks_.start(watch_store());
  loop_.run();
  for (auto& worker : workers_) worker->join();
  return 0;
}

net::Task<void> Service::watch_files() {
  for (;;) {
    auto go_on = co_await loop_.wait_for(kLookAtFiles);
    if (!go_on) co_return;
    if (bootstrap_source_) look_at_bootstrap();
    if (loader_) look_at_resources();
  }
}

void Service::look_at_resources() {
  const auto change = loader_->poll();
  if (refused_ && loader_->faults().empty()) {
    refused_ = false;
    log_.info("the resources are good again");
  }
  if (!change) return;
  if (const auto* faults = std::get_if<std::vector<config::Fault>>(&*change)) {
    for (const config::Fault& fault : *faults) log_.error(to_string(fault));
    log_.error("the resources were refused; the last good ones serve on");
    reload_failures_.add();
    refused_ = true;
    return;
  }
  for (const config::Fault& warning : loader_->warnings()) log_.warn(to_string(warning));
  adopt(std::get<config::ResourceLoader::Snapshots>(*change));
  log_.info("new resources in force",
            {{"generation", static_cast<std::int64_t>(loader_->generation())}});
}

net::Task<void> Service::watch_store() {
  for (;;) {
    auto go_on = co_await loop_.wait_for(kLookAtStore);
    if (!go_on) co_return;
    redis_->tell();
  }
}

net::Task<void> Service::keep_leases() {
  // Short beside the third of it after which leases are renewed: two thirds are left at least.
  const Duration pause = bootstrap_.ratelimit.concurrency_ttl / 90;
  for (;;) {
    auto go_on = co_await loop_.wait_for(pause);
    if (!go_on) co_return;
    gateway_->renew_leases();
  }
}

net::Task<void> Service::obey_signals() {
  for (;;) {
    auto signal = co_await signals_->next();
    if (signal != SIGHUP) break;
    asked_again_ = true;
    if (bootstrap_source_) {
      bootstrap_source_->again();
      look_at_bootstrap();
    } else {
      take_redis(config::Bootstrap(bootstrap_));  // the environment has not changed; files may have
    }
    if (!loader_) continue;
    loader_->again();
    look_at_resources();
  }
  log_.info("stopping");
  gateway_->set_stopping();
  const config::Shutdown& shutdown = bootstrap_.shutdown;
  co_await loop_.wait_for(shutdown.min_drain);
  for (auto& worker : workers_) worker->drain(shutdown.max_drain - shutdown.min_drain);
  // Without blocking: leases are renewed and metrics are shown to the end.
  for (auto& worker : workers_) {
    while (!worker->ended()) {
      co_await loop_.wait_for(kLookAtWorkers);
    }
    worker->join();
  }
  // What was abandoned in the end is settled, too.
  const Duration deadline =
      loop_.now() + gateway_->store_calls()->settle_timeout.load() + kLastCalls;
  while (gateway_->orphan_calls() > 0 && loop_.now() < deadline) {
    co_await loop_.wait_for(kLookAtWorkers);
  }
  if (metrics_server_) co_await metrics_server_->stop();
  if (admin_) co_await admin_->stop();
  if (redis_) co_await redis_->store()->stop(loop_);
  tasks_.cancel_all();
  co_await tasks_.join();
  log_.info("stopped");
  // Not from within: no task may be left when the loop has ended.
  loop_.post([this] { loop_.stop(); });
}

void Service::look_at_bootstrap() {
  const config::FileSource::Poll poll = bootstrap_source_->poll();
  if (poll.outcome == config::FileSource::Outcome::unchanged) return;
  config::Loaded<config::Bootstrap> loaded;
  if (poll.outcome == config::FileSource::Outcome::changed) {
    loaded = config::parse_bootstrap(bootstrap_source_->path(), poll.text, environment_);
  } else {
    loaded.faults.push_back({bootstrap_source_->path(), 0, 0, "", poll.text});
  }
  for (const config::Fault& fault : loaded.faults) log_.error(to_string(fault));
  reread_report_ = {.bootstrap_faults = loaded.faults, .bootstrap_warnings = loaded.warnings};
  if (loaded.value) return take_over(*loaded.value);
  log_.error("the bootstrap configuration was refused; the old one stays");
  reload_failures_.add();
}

void Service::take_over(const config::Bootstrap& wanted) {
  for (const std::string& key : config::restart_keys(bootstrap_, wanted)) {
    log_.warn("changed, and needs a restart: " + key);
    reread_report_.needs_restart.push_back(key);
  }
  const config::LogLevel level = wanted.observability.log_level;
  bootstrap_.observability.log_level = level;
  log_.set_level(level_of(level));
  take_settings(wanted, "observability.log_level");
  take_redis(wanted);
}

void Service::take_redis(const config::Bootstrap& from) {
  const std::optional<config::Redis>& wanted = from.ratelimit.redis;
  const bool asked_again = std::exchange(asked_again_, false);
  if (!redis_ || !wanted) return;  // ratelimit.backend needs a restart
  // The files of certificates may have changed, though their names have not.
  const bool files = asked_again && (wanted->tls != config::ClientTls() ||
                                     wanted->sentinel_tls != config::ClientTls());
  if (*wanted == *bootstrap_.ratelimit.redis && !files) return;
  const auto reloaded = redis_->reload(*wanted);
  if (!reloaded) {
    log_.error(reloaded.error());
    log_.error("the new ratelimit.redis was refused; the old one stays");
    const std::string file = bootstrap_source_ ? bootstrap_source_->path() : "environment";
    reread_report_.bootstrap_faults.push_back({file, 0, 0, "ratelimit.redis", reloaded.error()});
    reload_failures_.add();
    return;
  }
  for (const std::string& warning : *reloaded) log_.warn(warning);
  bootstrap_.ratelimit.redis = wanted;
  gateway_->store_calls()->set_store_timeout(wanted->timeout);
  take_settings(from, "ratelimit.redis.");
  log_.info("new ratelimit.redis in force", {{"counters", redis_->description()}});
}

// What is shown of the keys that begin so is what is in force.
void Service::take_settings(const config::Bootstrap& from, std::string_view begin) {
  std::vector<config::Setting> settings;
  for (const config::Setting& setting : from.settings) {
    const bool taken = setting.key.starts_with(begin);
    const auto old = std::ranges::find(bootstrap_.settings, setting.key, &config::Setting::key);
    if (taken) {
      settings.push_back(setting);
    } else if (old != bootstrap_.settings.end()) {
      settings.push_back(*old);
    }
  }
  bootstrap_.settings = std::move(settings);
}

admin::ConfigReport Service::report() const {
  admin::ConfigReport report = reread_report_;
  report.resources_file = bootstrap_.resources_file;
  if (!loader_) return report;
  report.resources_faults = loader_->faults();
  report.resources_warnings = loader_->warnings();
  return report;
}

net::Task<void> Service::serve_metrics() { co_await metrics_server_->serve(); }
net::Task<void> Service::serve_admin() { co_await admin_->serve(); }

net::Task<void> Service::answer_scrape(http::Exchange& exchange) {
  http::ResponseHead head;
  std::string body;
  if (exchange.head().path != bootstrap_.observability.prometheus.path) {
    head.status = 404;
    head.fields.add("Content-Type", "text/plain");
    body = "not here\n";
  } else {
    head.fields.add("Content-Type", std::string(observe::Metrics::content_type()));
    body = metrics_.text();
  }
  auto sent = co_await exchange.respond(std::move(head), std::move(body));
  (void)sent;
}

}  // namespace stint::app
