#include "demo.h"

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "config/snapshot.h"
#include "mock_upstream.h"
#include "net/listener.h"
#include "service.h"

namespace stint::app {
namespace {

constexpr std::uint16_t kFirstPort = 3000;
constexpr std::uint16_t kFirstMetricsPort = 9464;
constexpr std::uint16_t kPorts = 100;

std::string resources_for(std::uint16_t upstream) {
  const std::string origin = "http://127.0.0.1:" + std::to_string(upstream);
  return R"(_format_version: "1"
provider_keys:
  - display_name: demo upstream
    provider: demo
    adapter: openai
    secret: not-a-secret
    api_base: )" +
         origin + R"(/v1
models:
  - {display_name: demo-chat, model_name: demo-chat, provider_key: demo upstream}
  - {display_name: demo-embed, model_name: demo-embed, provider_key: demo upstream}
api_keys:
  - display_name: demo key
    key: sk-demo
    allowed_models: ["*"]
    rate_limit: {rpm: 5, tpm: 1000, concurrency: 1}
routes:
  - name: hello
    match: {path_prefix: /hello}
    upstream: )" +
         origin + R"(
    rate_limit:
      - {unit: requests, quota: 3, per: 10s, algorithm: sliding_log}
)";
}

config::Bootstrap bootstrap_for(std::uint16_t port, std::uint16_t metrics_port) {
  config::Bootstrap bootstrap;
  bootstrap.proxy.addr = "127.0.0.1:" + std::to_string(port);
  bootstrap.proxy.workers = 1;
  bootstrap.observability.access_log = false;
  bootstrap.observability.log_level = config::LogLevel::warn;
  bootstrap.observability.prometheus.enabled = true;
  bootstrap.observability.prometheus.addr = "127.0.0.1:" + std::to_string(metrics_port);
  bootstrap.shutdown.min_drain = Duration{0};
  bootstrap.shutdown.max_drain = std::chrono::seconds{2};
  return bootstrap;
}

void show_what_to_try(std::uint16_t port, std::uint16_t metrics_port) {
  const std::string at = "http://127.0.0.1:" + std::to_string(port);
  const std::string metrics = "http://127.0.0.1:" + std::to_string(metrics_port) + "/metrics";
  const std::string key = " -H 'Authorization: Bearer sk-demo' -H 'Content-Type: application/json'";
  std::printf(
      "stint demo: a gateway on %s, in front of an upstream of its own.\n"
      "The key sk-demo may make 5 requests and use 1000 tokens a minute, one request at a time.\n"
      "Chats, streams and embeddings share the five; a minute begins when the clock's does.\n\n"
      "Paste into another terminal, a few times each:\n\n"
      "  # a chat: 200 five times a minute, then 429 with Retry-After\n"
      "  curl -i %s/v1/chat/completions%s -d '{\"model\":\"demo-chat\",\"messages\":"
      "[{\"role\":\"user\",\"content\":\"hello there\"}]}'\n\n"
      "  # a streamed chat: event by event; while it runs, the slot of the key is taken\n"
      "  curl -iN %s/v1/chat/completions%s -d '{\"model\":\"demo-chat\",\"stream\":true,"
      "\"messages\":[{\"role\":\"user\",\"content\":\"tell me a story about a rate "
      "limiter\"}]}'\n\n"
      "  # embeddings, and the models of the key\n"
      "  curl -i %s/v1/embeddings%s -d '{\"model\":\"demo-embed\",\"input\":\"hello\"}'\n"
      "  curl %s/v1/models%s\n\n"
      "  # a plain route: three requests in any ten seconds for each client\n"
      "  curl -i %s/hello\n\n"
      "  # what was counted, for Prometheus\n"
      "  curl -s %s\n\n"
      "Each decision shows here. Ctrl-C ends it.\n\n",
      at.c_str(), at.c_str(), key.c_str(), at.c_str(), key.c_str(), at.c_str(), key.c_str(),
      at.c_str(), key.c_str(), at.c_str(), metrics.c_str());
  std::fflush(stdout);
}

std::string limit_text(const LimitStatus& status) {
  std::string text =
      std::to_string(status.limit.quota) + " " + std::string(to_string(status.limit.unit));
  if (status.limit.window > Duration::zero()) {
    text += " per " +
            std::to_string(std::chrono::ceil<std::chrono::seconds>(status.limit.window).count()) +
            " s";
  }
  return text + " (" + std::string(status.policy_name) + ")";
}

void show(const Decision& decision, std::string_view request) {
  std::string line;
  if (const LimitStatus* refused = decision.refused_by()) {
    const Duration wait = decision.retry_after().value_or(Duration::zero());
    line = "refused by " + limit_text(*refused) + ", come back in " +
           std::to_string(std::chrono::ceil<std::chrono::milliseconds>(wait).count()) + " ms";
  } else if (decision.limits.empty()) {
    line = "no limit applies";
  } else {
    line = "admitted";
    for (const LimitStatus& status : decision.limits) {
      line += "; " + std::to_string(status.remaining) + " left of " + limit_text(status);
    }
  }
  std::printf("%.*s  %s\n", static_cast<int>(request.size()), request.data(), line.c_str());
  std::fflush(stdout);
}

// The first free port from this one on; 0 if a hundred in a row are taken.
std::uint16_t free_port(std::uint16_t first) {
  for (std::uint16_t port = first; port < first + kPorts; ++port) {
    if (net::probe_port({"127.0.0.1", port})) return port;
  }
  return 0;
}

}  // namespace

int run_demo() {
  auto upstream = MockUpstream::create();
  if (!upstream) {
    std::fprintf(stderr, "stint: %s\n", upstream.error().text.c_str());
    return 1;
  }
  auto loaded =
      config::load_snapshot("demo", resources_for((*upstream)->port()), config::Environment{}, 1);
  if (!loaded.value) {
    for (const config::Fault& fault : loaded.faults) {
      std::fprintf(stderr, "stint: %s\n", to_string(fault).c_str());
    }
    return 1;
  }
  const std::uint16_t metrics_port = free_port(kFirstMetricsPort);
  Service service(bootstrap_for(free_port(kFirstPort), metrics_port), {}, {});
  service.serve_snapshot(std::move(*loaded.value));
  service.on_decision(show);
  if (auto started = service.start(); !started) {
    std::fprintf(stderr, "stint: %s\n", started.error().text.c_str());
    return 1;
  }
  show_what_to_try(service.port(), metrics_port);
  return service.run();
}

}  // namespace stint::app
