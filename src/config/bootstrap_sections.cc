#include "config/bootstrap_sections.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "config/address.h"

namespace stint::config {
namespace {

constexpr Duration kMillisecond = std::chrono::milliseconds{1};
constexpr Duration kSecond = std::chrono::seconds{1};
constexpr std::int64_t kDayMs = 86'400'000;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

constexpr std::array<std::string_view, 6> kLogLevels{"trace", "debug", "info",
                                                     "warn",  "error", "off"};

std::optional<std::string> check_path(std::string_view text) {
  const bool good = text.starts_with('/') && text.find_first_of(" ?#") == std::string_view::npos;
  return good ? std::nullopt : std::optional<std::string>("must be a path such as /metrics");
}

std::optional<std::string> check_header_name(std::string_view text) {
  // RFC 9110, section 5.6.2: token.
  const auto token = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  const bool good = !text.empty() && std::ranges::all_of(text, token);
  return good ? std::nullopt : std::optional(quoted(text) + " is no name of a header");
}

// What can stand behind "Bearer".
bool is_bearer_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7F'; });
}

void lower(std::string& text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  });
}

// Both files, or not at all.
void read_server_tls(MapReader reader, std::optional<ServerTls>& out) {
  ServerTls tls;
  reader.text("cert_file", tls.cert_file);
  reader.text("key_file", tls.key_file);
  reader.finish();
  if (!reader.present()) return;
  reader.require("cert_file");
  reader.require("key_file");
  out = std::move(tls);
}

void read_real_ip(MapReader reader, RealIp& out) {
  reader.texts("trusted_proxies", out.trusted_proxies, check_network);
  reader.boolean("recursive", out.recursive);
  reader.text("header", out.header, check_header_name);
  reader.integer("ipv6_prefix", out.ipv6_prefix, 1, 128);
  reader.finish();
  lower(out.header);
}

void read_prometheus(MapReader reader, Observability::Prometheus& out) {
  out.enabled = reader.given("addr");
  reader.boolean("enabled", out.enabled);
  reader.text("path", out.path, check_path);
  reader.text("addr", out.addr, check_listen_address);
  reader.finish();
}

void read_otlp(MapReader reader, bool samples, Observability::Otlp& out) {
  reader.boolean("enabled", out.enabled);
  reader.text("endpoint", out.endpoint, check_http_url);
  if (samples) reader.decimal("sample_ratio", out.sample_ratio, 0, 1);
  reader.finish();
  if (out.enabled) reader.unavailable("enabled");
}

}  // namespace

void read_client_tls(MapReader reader, ClientTls& out, bool* enabled) {
  if (enabled != nullptr) reader.boolean("enabled", *enabled);
  reader.text("ca_file", out.ca_file);
  reader.text("cert_file", out.cert_file);
  reader.text("key_file", out.key_file);
  reader.boolean("verify", out.verify);
  reader.finish();
  if (reader.given("cert_file") && !reader.given("key_file")) {
    reader.fault("cert_file", "needs its key_file");
  } else if (reader.given("key_file") && !reader.given("cert_file")) {
    reader.fault("key_file", "needs its cert_file");
  }
}

void read_proxy(MapReader reader, Proxy& out) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  reader.text("addr", out.addr, check_listen_address);
  reader.integer("workers", out.workers, 0, 1024);
  reader.boolean("thread_per_core", out.thread_per_core);
  reader.integer("request_body_limit_bytes", out.request_body_limit_bytes, 1, kGiB);
  reader.integer("request_line_limit_bytes", out.request_line_limit_bytes, 64, kMiB);
  reader.integer("header_limit_bytes", out.header_limit_bytes, 256, kMiB);
  reader.integer("header_limit_count", out.header_limit_count, 1, 10'000);
  reader.duration_in("header_timeout_ms", out.header_timeout, kMillisecond, 1, kDayMs);
  reader.duration_in("body_timeout_ms", out.body_timeout, kMillisecond, 1, kDayMs);
  reader.duration_in("idle_timeout_ms", out.idle_timeout, kMillisecond, 1, kDayMs);
  reader.duration_in("write_timeout_ms", out.write_timeout, kMillisecond, 1, kDayMs);
  read_real_ip(reader.map("real_ip"), out.real_ip);
  MapReader request_id = reader.map("request_id");
  request_id.texts("accept_headers", out.request_id_accept_headers, check_header_name);
  request_id.finish();
  std::ranges::for_each(out.request_id_accept_headers, lower);
  read_server_tls(reader.map("tls"), out.tls);
  reader.finish();
  if (out.tls) reader.unavailable("tls");
}

void read_decision(MapReader reader, DecisionService& out) {
  reader.text("http_addr", out.http_addr, check_optional_listen_address);
  reader.text("grpc_addr", out.grpc_addr, check_optional_listen_address);
  reader.finish();
  if (!out.http_addr.empty()) reader.unavailable("http_addr");
  if (!out.grpc_addr.empty()) reader.unavailable("grpc_addr");
}

void read_admin(MapReader reader, Admin& out) {
  reader.boolean("enabled", out.enabled);
  reader.text("addr", out.addr, check_listen_address);
  reader.secrets("admin_keys", out.admin_keys);
  if (!std::ranges::all_of(out.admin_keys, is_bearer_token)) {
    reader.fault("admin_keys", "must be keys of visible ASCII characters, without blanks");
  }
  read_server_tls(reader.map("tls"), out.tls);
  reader.finish();
  if (!out.enabled) return;
  if (out.tls) reader.unavailable("tls");
  if (out.admin_keys.empty() && !is_loopback(out.addr)) {
    reader.fault("admin_keys",
                 "is missing: addr " + quoted(out.addr) + " can be reached from other machines");
  }
}

void read_observability(MapReader reader, Observability& out) {
  reader.text("service_name", out.service_name);
  reader.choice("log_level", out.log_level, kLogLevels);
  reader.boolean("access_log", out.access_log);
  MapReader metrics = reader.map("metrics");
  read_prometheus(metrics.map("prometheus"), out.prometheus);
  read_otlp(metrics.map("otlp"), false, out.metrics_otlp);
  metrics.finish();
  MapReader tracing = reader.map("tracing");
  read_otlp(tracing.map("otlp"), true, out.tracing_otlp);
  tracing.finish();
  reader.finish();
}

void read_etcd(MapReader reader, bool chosen, std::optional<Etcd>& out) {
  Etcd etcd;
  const std::size_t faults = reader.context().faults.size();
  reader.texts("endpoints", etcd.endpoints, check_http_url);
  reader.text("prefix", etcd.prefix);
  reader.text("user", etcd.user);
  reader.text("password_env", etcd.password_env);
  reader.duration_in("dial_timeout_ms", etcd.dial_timeout, kMillisecond, 1, kDayMs);
  reader.duration_in("request_timeout_ms", etcd.request_timeout, kMillisecond, 1, kDayMs);
  read_client_tls(reader.map("tls"), etcd.tls);
  reader.finish();
  if (!reader.present()) return;
  if (reader.require("endpoints") && etcd.endpoints.empty() &&
      reader.context().faults.size() == faults) {
    reader.fault("endpoints", "needs at least one URL");
  }
  // Whoever has to mend the block is told that first.
  if (chosen && reader.context().faults.size() == faults) reader.fault("", "not available yet");
  out = std::move(etcd);
}

void read_upstream(MapReader reader, Upstream& out) {
  reader.duration_in("connect_timeout_ms", out.connect_timeout, kMillisecond, 1, kDayMs);
  reader.duration_in("timeout_ms", out.timeout, kMillisecond, 1, kDayMs);
  reader.duration_in("stream_timeout_ms", out.stream_timeout, kMillisecond, 1, kDayMs);
  reader.duration_in("idle_timeout_ms", out.idle_timeout, kMillisecond, 1, kDayMs);
  reader.integer("max_idle_connections", out.max_idle_connections, 0, 100'000);
  read_client_tls(reader.map("tls"), out.tls);
  reader.finish();
}

void read_shutdown(MapReader reader, Shutdown& out) {
  constexpr std::int64_t kHour = 3600;
  reader.duration_in("min_drain_secs", out.min_drain, kSecond, 0, kHour);
  reader.duration_in("max_drain_secs", out.max_drain, kSecond, 0, kHour);
  reader.finish();
  if (out.max_drain >= out.min_drain) return;
  const char* name = reader.given("max_drain_secs") ? "max_drain_secs" : "min_drain_secs";
  reader.fault(name, "max_drain_secs (" + std::to_string(out.max_drain / kSecond) +
                         ") must not be below min_drain_secs (" +
                         std::to_string(out.min_drain / kSecond) + ")");
}

std::string_view to_string(LogLevel level) noexcept {
  const auto index = static_cast<std::size_t>(level);
  return index < kLogLevels.size() ? kLogLevels[index] : "unknown";
}

}  // namespace stint::config
