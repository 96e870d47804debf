#include "gateway/gateway.h"

#include <array>
#include <stdexcept>
#include <utility>

#include "gateway/request.h"

namespace stint::gateway {
namespace {

ClientAddresses make_addresses(const config::RealIp& real_ip) {
  RealIpOptions options;
  options.recursive = real_ip.recursive;
  options.header = real_ip.header;
  options.ipv6_prefix = real_ip.ipv6_prefix;
  for (const std::string& text : real_ip.trusted_proxies) {
    auto cidr = Cidr::parse(text);
    if (!cidr) throw std::invalid_argument("proxy.real_ip.trusted_proxies: " + cidr.error());
    options.trusted_proxies.push_back(std::move(*cidr));
  }
  return ClientAddresses(std::move(options));
}

std::shared_ptr<StoreCalls> make_store_calls(const config::RateLimit& ratelimit) {
  auto calls = std::make_shared<StoreCalls>();
  if (ratelimit.redis) calls->set_store_timeout(ratelimit.redis->timeout);
  return calls;
}

std::shared_ptr<const policy::Table> no_policies() { return *policy::Table::create({}); }

}  // namespace

Gateway::Gateway(const config::Bootstrap& bootstrap, std::shared_ptr<store::RateStore> store,
                 const Clock& clock, base::Entropy& entropy, observe::Metrics& metrics,
                 const observe::Log& log)
    : bootstrap_(bootstrap),
      store_(std::move(store)),
      clock_(clock),
      metrics_(metrics),
      log_(log),
      ids_(entropy),
      addresses_(make_addresses(bootstrap.proxy.real_ip)),
      early_(store_, no_policies(), clock, bootstrap.ratelimit.concurrency_ttl, entropy),
      late_(store_, no_policies(), clock, bootstrap.ratelimit.concurrency_ttl, entropy),
      request_metrics_(std::make_unique<RequestMetrics>(metrics)),
      generation_(metrics.gauge("stint_config_generation",
                                "Number of the configuration in force; 0 before the first.")),
      store_calls_(make_store_calls(bootstrap.ratelimit)) {
  watches_.push_back(metrics.watch_gauge("stint_buckets", "Buckets in memory.", {}, [this] {
    return static_cast<double>(store_->stats().buckets);
  }));
  watches_.push_back(metrics.watch_gauge(
      "stint_buckets_unsent", "Buckets counted here in an outage that Redis was not told of yet.",
      {}, [this] { return static_cast<double>(store_->stats().unsent_buckets); }));
  watches_.push_back(metrics.watch_counter("stint_buckets_evicted_total",
                                           "Buckets that made way at the cap although not spent.",
                                           {}, [this] { return store_->stats().evicted; }));
  watches_.push_back(metrics.watch_counter("stint_overflow_charges_total",
                                           "Charges that went to a bucket shared at the cap.", {},
                                           [this] { return store_->stats().overflowed; }));
  watches_.push_back(metrics.watch_gauge(
      "stint_leases_held", "Reservations that hold a slot.", {},
      [this] { return static_cast<double>(early_.stats().held + late_.stats().held); }));
}

Gateway::~Gateway() = default;

std::shared_ptr<const Serving> Gateway::adopt(std::shared_ptr<const config::Snapshot> snapshot) {
  auto serving = std::make_shared<const Serving>(std::move(snapshot), metrics_);
  // The snapshot has validated them, one list with the other.
  auto early = early_.set_policies(serving->snapshot().early());
  auto late = late_.set_policies(serving->snapshot().late());
  if (!early || !late) {
    throw std::logic_error("a validated policy was refused: " +
                           to_string(early ? late.error() : early.error()));
  }
  generation_.set(static_cast<std::int64_t>(serving->snapshot().generation()));
  return serving;
}

void Gateway::renew_leases() {
  early_.renew_leases();
  late_.renew_leases();
}

std::string Gateway::new_request_id() noexcept {
  constexpr char kHex[] = "0123456789abcdef";
  const base::Id id = ids_.next();
  std::string text = "req-00000000000000000000000000000000";
  std::size_t at = 4;
  for (const std::uint64_t half : {id.high, id.low}) {
    for (int shift = 60; shift >= 0; shift -= 4) text[at++] = kHex[(half >> shift) & 15];
  }
  return text;
}

Gateway::RequestMetrics::RequestMetrics(observe::Metrics& metrics)
    : in_flight(metrics.gauge("stint_requests_in_flight", "Requests that are being answered.")),
      latency(metrics.histogram("stint_request_duration_seconds",
                                "From the head of a request to the end of its answer.")) {
  constexpr std::array<std::string_view, 6> kClasses{"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
  for (std::size_t i = 0; i < kClasses.size(); ++i) {
    by_class[i] = metrics.counter("stint_requests_total", "Requests by class of their status.",
                                  {{"status", kClasses[i]}});
  }
}

void Gateway::RequestMetrics::count(int status) const {
  const auto first = static_cast<std::size_t>(status / 100);
  by_class[first < 6 ? first : 0].add();
}

void Gateway::note_unread(int status, std::string_view peer) const {
  request_metrics_->count(status);
  if (!log_.access_log()) return;
  const ClientAddress client = addresses_.direct(peer);
  log_.access({.route = "none", .status = status, .client = client.address});
}

}  // namespace stint::gateway
