// Decisions a second of the store in Redis, on one event loop. run.py starts it.
//   decisions URL[,URL...] SCENARIO SECONDS OUTSTANDING [IN_FLIGHT [ONLY]]
// Several URLs are the shards of a ring, or with "cluster:" in front all masters of a Cluster, with
// as many slots each. IN_FLIGHT: calls of one lane; with as many as OUTSTANDING nothing is batched;
// 0: as usual. ONLY: the number of a server; buckets of the others are left out.
// Prints one line: "decisions seconds own_cpu_seconds median_us p99_us calls all_decisions", where
// the last were made before and after the measured span as well.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/entropy.h"
#include "net/event_loop.h"
#include "redis/deployment.h"
#include "redis/slots.h"
#include "store/redis/redis_store.h"

namespace {

using namespace stint;

struct Scenario {
  std::vector<Limit> limits;
  std::size_t buckets = 1;
  std::size_t asked = 1;  // by one admission; if there are several shards, on as many
};

constexpr std::int64_t kMany = 1'000'000'000'000;
constexpr Duration kMinute = std::chrono::minutes{1};

Scenario scenario(std::string_view name) {
  const Limit fixed = requests_per(kMinute, kMany);
  if (name == "different") return {{fixed}, 100'000};
  if (name == "hot") return {{fixed}, 1};
  if (name == "four") {
    return {{requests_per(std::chrono::seconds{1}, kMany), fixed,
             requests_per(std::chrono::hours{1}, kMany), requests_per(std::chrono::days{1}, kMany)},
            100'000};
  }
  if (name == "one") return {{fixed}, 100'000};      // with OUTSTANDING 1
  if (name == "pair") return {{fixed}, 100'000, 2};  // likewise
  std::fprintf(stderr, "no such scenario\n");
  std::exit(2);
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Which server has a key.
std::size_t place_of(const redis::Deployment& deployment, const std::string& key) {
  if (const auto* ring = std::get_if<redis::RingDeployment>(&deployment.servers)) {
    return ring->ring->node_index(key).value();
  }
  if (const auto* cluster = std::get_if<redis::ClusterDeployment>(&deployment.servers)) {
    return redis::slot_of(key) * cluster->nodes.size() / redis::kSlots;
  }
  return 0;
}

// Keys whose neighbours are on different servers, if there are several; or all on one.
std::vector<std::string> keys_of(const Scenario& scenario, const redis::Deployment& deployment,
                                 std::optional<std::size_t> only) {
  const bool several = !std::holds_alternative<redis::SingleDeployment>(deployment.servers);
  std::vector<std::string> keys;
  for (std::size_t i = 0; keys.size() < scenario.buckets; ++i) {
    std::string key = "bench:key=" + std::to_string(i);
    if (only && place_of(deployment, key) != *only) continue;
    const bool apart = !several || scenario.asked == 1 || keys.empty() ||
                       place_of(deployment, key) != place_of(deployment, keys.back());
    if (apart) keys.push_back(std::move(key));
  }
  return keys;
}

// Keeps so many admissions under way, each for the next bucket.
class Load {
 public:
  Load(net::EventLoop& loop, store::RedisStore& store, const Scenario& scenario,
       std::vector<std::string> keys, std::size_t outstanding)
      : loop_(loop),
        store_(store),
        limits_(limit::LimitSet::create(scenario.limits).value()),
        keys_(std::move(keys)) {
    for (std::size_t i = 0; i < outstanding; ++i) {
      auto& record = records_.emplace_back(std::make_unique<Slot>());
      for (std::size_t b = 0; b < scenario.asked; ++b) {
        record->record.buckets.push_back({.key = {},
                                          .text = {},
                                          .policy = "bench",
                                          .limits = limits_,
                                          .first_slot = record->record.slots.size()});
        for (std::size_t k = 0; k < limits_->size(); ++k) {
          record->record.slots.push_back({.need = 1, .charge = 1});
        }
      }
    }
  }

  void start() {
    for (auto& slot : records_) ask(*slot);
  }
  void measure() {
    before_ = decisions_;
    latencies_.clear();
    measuring_ = true;
  }
  void stop() { stopped_ = true; }

  [[nodiscard]] std::size_t decisions() const { return decisions_ - before_; }
  [[nodiscard]] std::size_t all_decisions() const { return decisions_; }
  [[nodiscard]] std::size_t failed() const { return failed_; }
  std::vector<Duration>& latencies() { return latencies_; }

 private:
  struct Slot {
    store::AdmissionRecord record;
    Duration asked{0};
  };

  void ask(Slot& slot) {
    for (store::BucketSlot& bucket : slot.record.buckets) {
      bucket.key = bucket.text = keys_[next_++ % keys_.size()];
    }
    slot.asked = loop_.now();
    store_.acquire(slot.record, [this, &slot] {
      if (slot.record.outcome != Outcome::admitted || slot.record.buckets[0].local != 0) ++failed_;
      ++decisions_;
      if (measuring_ && latencies_.size() < 1'000'000) {
        latencies_.push_back(loop_.now() - slot.asked);
      }
      if (!stopped_) ask(slot);
    });
  }

  net::EventLoop& loop_;
  store::RedisStore& store_;
  limit::LimitSetPtr limits_;
  std::vector<std::string> keys_;
  std::vector<std::unique_ptr<Slot>> records_;
  std::size_t next_ = 0;
  std::size_t decisions_ = 0;
  std::size_t before_ = 0;  // of them: before the measured span
  std::size_t failed_ = 0;
  std::vector<Duration> latencies_;
  bool measuring_ = false;
  bool stopped_ = false;
};

net::Task<void> run(net::EventLoop& loop, store::RedisStore& store, Load& load, Duration span,
                    std::size_t& calls) {
  const auto away = [](const store::RedisTargetHealth& target) { return target.degraded; };
  while (store.health().empty() || std::ranges::any_of(store.health(), away)) {
    co_await loop.wait_for(span / 1000);
  }
  load.start();
  co_await loop.wait_for(span / 4);
  calls = 0;
  load.measure();
  const double cpu = cpu_seconds();
  const Duration began = loop.now();
  co_await loop.wait_for(span);
  const double seconds = static_cast<double>((loop.now() - began).count()) / 1e6;
  const double own = cpu_seconds() - cpu;
  const std::size_t decisions = load.decisions();
  const std::size_t made = calls;
  load.stop();
  auto& latencies = load.latencies();
  std::ranges::sort(latencies);
  const auto at = [&](double part) {
    if (latencies.empty()) return 0LL;
    const auto place = static_cast<std::size_t>(part * static_cast<double>(latencies.size() - 1));
    return static_cast<long long>(latencies[place].count());
  };
  co_await loop.wait_for(span / 10);
  co_await store.stop(loop);
  if (load.failed() > 0) std::fprintf(stderr, "%zu not decided by Redis\n", load.failed());
  std::printf("%zu %.3f %.3f %lld %lld %zu %zu\n", decisions, seconds, own, at(0.5), at(0.99), made,
              load.all_decisions());
  loop.post([&loop] { loop.stop(); });
}

redis::Deployment deployment_of(std::string_view urls) {
  constexpr std::string_view kCluster = "cluster:";
  const bool cluster = urls.starts_with(kCluster);
  if (cluster) urls.remove_prefix(kCluster.size());
  redis::Deployment deployment;
  redis::ClusterDeployment nodes;
  redis::RingDeployment from;
  HashRing ring = HashRing::create().value();
  for (std::size_t at = 0; at < urls.size();) {
    const std::size_t end = std::min(urls.find(',', at), urls.size());
    const redis::ServerAddress address = redis::parse_url(urls.substr(at, end - at)).value();
    nodes.nodes.push_back(address);
    from.shards.push_back({redis::to_string(address), address});
    (void)ring.add_node(from.shards.back().name);
    at = end + 1;
  }
  if (cluster) {
    deployment.servers = std::move(nodes);
  } else if (from.shards.size() == 1) {
    deployment.servers = redis::SingleDeployment{from.shards[0].address};
  } else {
    from.ring = std::make_shared<const HashRing>(std::move(ring));
    deployment.servers = std::move(from);
  }
  return deployment;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5 || argc > 7) {
    std::fprintf(stderr,
                 "usage: decisions URL[,URL...] SCENARIO SECONDS OUTSTANDING [IN_FLIGHT [ONLY]]\n");
    return 2;
  }
  const redis::Deployment deployment = deployment_of(argv[1]);
  const Scenario asked = scenario(argv[2]);
  const Duration span{static_cast<std::int64_t>(std::atof(argv[3]) * 1e6)};
  net::EventLoop loop;
  std::size_t calls = 0;
  store::RedisStoreOptions options;
  options.timeout = std::chrono::seconds{5};
  const auto number = [&](int at) { return static_cast<std::size_t>(std::atol(argv[at])); };
  if (argc > 5 && number(5) > 0) options.calls_in_flight = number(5);
  std::optional<std::size_t> only;
  if (argc > 6) only = number(6);
  options.hooks.of_target = [&](std::string_view) {
    return store::RedisTargetHooks{.on_latency = [&](Duration) { ++calls; }};
  };
  store::RedisStore store(std::move(options), system_clock(), base::system_entropy());
  store.add_loop(loop, [&](net::EventLoop& on, const store::RedisStore::Prepare& prepare) {
    return redis::make_topology(on, deployment, prepare);
  });
  store.start(loop);
  Load load(loop, store, asked, keys_of(asked, deployment, only), number(4));
  net::TaskGroup tasks(loop);
  tasks.start(run(loop, store, load, span, calls));
  loop.run();
}
