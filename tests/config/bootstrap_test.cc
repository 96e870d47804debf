// Good bootstrap configurations: defaults, values, overrides by the environment.
#include "config/bootstrap.h"

#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <vector>

#include "config/redis_nodes.h"

namespace stint::config {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> texts_of(const std::vector<Fault>& faults) {
  std::vector<std::string> texts;
  texts.reserve(faults.size());
  for (const Fault& fault : faults) texts.push_back(to_string(fault));
  return texts;
}

Bootstrap good(const std::string& text, const Environment& environment = {}) {
  auto loaded = parse_bootstrap("stint.yaml", text, environment);
  EXPECT_THAT(texts_of(loaded.faults), IsEmpty());
  EXPECT_THAT(texts_of(loaded.warnings), IsEmpty());
  return loaded.value.value_or(Bootstrap{});
}

std::vector<std::string> faults_of(const std::string& text, const Environment& environment) {
  return texts_of(parse_bootstrap("stint.yaml", text, environment).faults);
}

TEST(Bootstrap, HasDefaults) {
  const Bootstrap bootstrap = good("resources_file: r.yaml\n");
  EXPECT_EQ(bootstrap.resources_file, "r.yaml");
  EXPECT_EQ(bootstrap.proxy.addr, "0.0.0.0:3000");
  EXPECT_EQ(bootstrap.proxy.workers, 0);
  EXPECT_THAT(bootstrap.proxy.real_ip.trusted_proxies, IsEmpty());  // C18: nobody is trusted
  EXPECT_EQ(bootstrap.proxy.real_ip.header, "x-forwarded-for");
  EXPECT_EQ(bootstrap.proxy.real_ip.ipv6_prefix, 64);
  EXPECT_FALSE(bootstrap.observability.prometheus.enabled);
  EXPECT_EQ(bootstrap.observability.log_level, LogLevel::info);
  EXPECT_EQ(bootstrap.ratelimit.backend, Backend::memory);
  EXPECT_EQ(bootstrap.ratelimit.max_buckets, 1'000'000U);
  EXPECT_EQ(bootstrap.ratelimit.concurrency_ttl, seconds{30});
  EXPECT_EQ(bootstrap.ratelimit.on_store_error, OnStoreError::local);
  EXPECT_FALSE(bootstrap.ratelimit.redis.has_value());
  EXPECT_EQ(bootstrap.shutdown.max_drain, seconds{25});
}

TEST(Bootstrap, TakesEveryPart) {
  const Bootstrap bootstrap = good(R"(
proxy:
  addr: "[::1]:8080"
  workers: 4
  request_body_limit_bytes: 1000
  header_timeout_ms: 1500
  real_ip:
    trusted_proxies: [10.0.0.0/8, "::1"]
    recursive: false
    header: X-Real-IP
    ipv6_prefix: 56
  request_id:
    accept_headers: [X-Trace-Id]
decision: {http_addr: "", grpc_addr: ""}
admin: {enabled: false, addr: ":3001"}
observability:
  service_name: edge
  log_level: warn
  access_log: false
  metrics:
    prometheus: {addr: ":9100", path: /m}
    otlp: {enabled: false, endpoint: "http://collector:4318"}
  tracing:
    otlp: {enabled: false, sample_ratio: 0.25}
ratelimit:
  backend: memory
  memory: {max_buckets: 500}
  concurrency_ttl_secs: 3
  on_store_error: deny
  replicas: 3
  key_prefix: edge
  media_part_tokens: 500
  redis: {url: "redis://ignored:6379"}
resources_file: /etc/stint/r.yaml
cache: {backend: memory}
upstream:
  connect_timeout_ms: 250
  stream_timeout_ms: 1000
  tls: {ca_file: ca.pem, verify: false}
shutdown: {min_drain_secs: 0, max_drain_secs: 1}
)");
  EXPECT_EQ(bootstrap.proxy.addr, "[::1]:8080");
  EXPECT_EQ(bootstrap.proxy.workers, 4);
  EXPECT_EQ(bootstrap.proxy.request_body_limit_bytes, 1000);
  EXPECT_EQ(bootstrap.proxy.header_timeout, milliseconds{1500});
  EXPECT_THAT(bootstrap.proxy.real_ip.trusted_proxies, ElementsAre("10.0.0.0/8", "::1"));
  EXPECT_FALSE(bootstrap.proxy.real_ip.recursive);
  EXPECT_EQ(bootstrap.proxy.real_ip.header, "x-real-ip");
  EXPECT_EQ(bootstrap.proxy.real_ip.ipv6_prefix, 56);
  EXPECT_THAT(bootstrap.proxy.request_id_accept_headers, ElementsAre("x-trace-id"));
  EXPECT_EQ(bootstrap.observability.service_name, "edge");
  EXPECT_EQ(bootstrap.observability.log_level, LogLevel::warn);
  EXPECT_FALSE(bootstrap.observability.access_log);
  EXPECT_TRUE(bootstrap.observability.prometheus.enabled);  // its address is given
  EXPECT_EQ(bootstrap.observability.prometheus.addr, ":9100");
  EXPECT_EQ(bootstrap.observability.prometheus.path, "/m");
  EXPECT_DOUBLE_EQ(bootstrap.observability.tracing_otlp.sample_ratio, 0.25);
  EXPECT_EQ(bootstrap.ratelimit.max_buckets, 500U);
  EXPECT_EQ(bootstrap.ratelimit.concurrency_ttl, seconds{3});
  EXPECT_EQ(bootstrap.ratelimit.on_store_error, OnStoreError::deny);
  EXPECT_EQ(bootstrap.ratelimit.replicas, 3);
  EXPECT_EQ(bootstrap.ratelimit.key_prefix, "edge");
  EXPECT_EQ(bootstrap.ratelimit.media_part_tokens, 500);
  EXPECT_FALSE(bootstrap.ratelimit.redis.has_value());  // memory beside a redis block
  EXPECT_EQ(bootstrap.resources_file, "/etc/stint/r.yaml");
  EXPECT_EQ(bootstrap.cache, CacheBackend::memory);
  EXPECT_EQ(bootstrap.upstream.connect_timeout, milliseconds{250});
  EXPECT_EQ(bootstrap.upstream.stream_timeout, milliseconds{1000});
  EXPECT_EQ(bootstrap.upstream.tls.ca_file, "ca.pem");
  EXPECT_FALSE(bootstrap.upstream.tls.verify);
  EXPECT_EQ(bootstrap.shutdown.min_drain, seconds{0});
  EXPECT_EQ(bootstrap.shutdown.max_drain, seconds{1});
}

TEST(Bootstrap, FindsResourcesFromTheFolderOfItsFile) {
  const auto path = [](const std::string& file, const std::string& text,
                       const Environment& environment = {}) {
    return parse_bootstrap(file, text, environment).value.value_or(Bootstrap{}).resources_file;
  };
  EXPECT_EQ(path("/etc/stint/stint.yaml", "resources_file: r.yaml\n"), "/etc/stint/r.yaml");
  EXPECT_EQ(path("deploy/stint.yaml", "resources_file: ../r.yaml\n"), "r.yaml");
  EXPECT_EQ(path("deploy/stint.yaml", "resources_file: /r.yaml\n"), "/r.yaml");
  EXPECT_EQ(path("deploy/stint.yaml", "{}\n", {{"STINT_RESOURCES_FILE", "r.yaml"}}), "r.yaml");
}

TEST(Bootstrap, RunsOneLoopPerCoreUnlessToldOtherwise) {
  EXPECT_EQ(event_loops({}, 8), 8);
  EXPECT_EQ(event_loops({}, 0), 1);
  EXPECT_EQ(event_loops({.workers = 3}, 8), 3);
  EXPECT_EQ(event_loops({.thread_per_core = false}, 8), 1);
  EXPECT_EQ(event_loops({.workers = 3, .thread_per_core = false}, 8), 3);
}

TEST(Bootstrap, MayComeFromTheEnvironmentAlone) {
  const auto loaded =
      load_bootstrap(std::nullopt, {{"STINT_RESOURCES_FILE", "/r.yaml"},
                                    {"STINT_PROXY__ADDR", "127.0.0.1:1"},
                                    {"STINT_PROXY__WORKERS", "2"},
                                    {"STINT_PROXY__REAL_IP__TRUSTED_PROXIES", "10.0.0.0/8, ::1"},
                                    {"STINT_PROXY__REQUEST_ID__ACCEPT_HEADERS", ""},
                                    {"STINT_OBSERVABILITY__ACCESS_LOG", "false"},
                                    {"STINT_OBSERVABILITY__SERVICE_NAME", "10"},
                                    {"PATH", "/bin"}});
  EXPECT_THAT(texts_of(loaded.faults), IsEmpty());
  EXPECT_THAT(texts_of(loaded.warnings), IsEmpty());
  ASSERT_TRUE(loaded.value);
  EXPECT_EQ(loaded.value->resources_file, "/r.yaml");
  EXPECT_EQ(loaded.value->proxy.addr, "127.0.0.1:1");
  EXPECT_EQ(loaded.value->proxy.workers, 2);
  EXPECT_THAT(loaded.value->proxy.real_ip.trusted_proxies, ElementsAre("10.0.0.0/8", "::1"));
  EXPECT_THAT(loaded.value->proxy.request_id_accept_headers, IsEmpty());
  EXPECT_FALSE(loaded.value->observability.access_log);
  EXPECT_EQ(loaded.value->observability.service_name, "10");  // a variable has no type of its own

  EXPECT_THAT(texts_of(load_bootstrap(std::nullopt, {}).faults),
              ElementsAre("environment: resources_file: is missing: name a file of resources, or "
                          "give etcd"));
}

TEST(Bootstrap, TakesTextAloneFromTheEnvironment) {
  EXPECT_THAT(
      faults_of("resources_file: r\n", {{"STINT_OBSERVABILITY__SERVICE_NAME", "a\xFFz"},
                                        {"STINT_PROXY__ADDR", ":1\x01"},
                                        {"STINT_RATELIMIT__BACKEND", "redis"},
                                        {"REDIS_URL", "redis://:\x02@h"}}),
      ElementsAre("environment variable STINT_OBSERVABILITY__SERVICE_NAME: "
                  "observability.service_name: is no text in UTF-8, or has a control "
                  "character",
                  "environment variable STINT_PROXY__ADDR: proxy.addr: is no text in UTF-8, "
                  "or has a control character",
                  "environment variable REDIS_URL: ratelimit.redis.url: is no text in "
                  "UTF-8, or has a control character"));
}

TEST(Bootstrap, WantsTheTwoListenersApart) {
  const auto faults = [](const std::string& proxy, const std::string& metrics) {
    return faults_of("resources_file: r\nproxy: {addr: \"" + proxy +
                         "\"}\nobservability: {metrics: {prometheus: {addr: \"" + metrics +
                         "\"}}}\n",
                     {});
  };
  EXPECT_THAT(faults("127.0.0.1:3000", "127.0.0.1:3000"),
              ElementsAre("stint.yaml:3:46: observability.metrics.prometheus.addr: is where "
                          "proxy.addr (127.0.0.1:3000) listens; give it another port"));
  for (const auto& [one, other] :
       std::vector<std::pair<const char*, const char*>>{{":3000", "127.0.0.1:3000"},
                                                        {"0.0.0.0:3000", "127.0.0.1:3000"},
                                                        {"[::1]:3000", "[::]:3000"},
                                                        {"localhost:3000", "127.0.0.1:3000"}}) {
    EXPECT_EQ(faults(one, other).size(), 1U) << one << " " << other;
    EXPECT_EQ(faults(other, one).size(), 1U) << one << " " << other;
  }
  for (const auto& [one, other] :
       std::vector<std::pair<const char*, const char*>>{{":3000", ":3001"},
                                                        {"127.0.0.1:0", "127.0.0.1:0"},
                                                        {"127.0.0.1:3000", "127.0.0.2:3000"},
                                                        {"0.0.0.0:3000", "[::1]:3000"}}) {
    EXPECT_THAT(faults(one, other), IsEmpty()) << one << " " << other;
  }
  // Without metrics there is one listener; their default address is taken where they are on.
  EXPECT_THAT(faults_of("resources_file: r\nproxy: {addr: \"127.0.0.1:9464\"}\n", {}), IsEmpty());
  EXPECT_EQ(faults_of("resources_file: r\nproxy: {addr: \"127.0.0.1:9464\"}\n"
                      "observability: {metrics: {prometheus: {enabled: true}}}\n",
                      {})
                .size(),
            1U);
}

TEST(Bootstrap, IsOverriddenByTheEnvironment) {
  const Bootstrap bootstrap =
      good("resources_file: r.yaml\nproxy: {addr: \":1\", workers: 2}\n",
           {{"STINT_PROXY__ADDR", ":3"}, {"STINT_SHUTDOWN__MIN_DRAIN_SECS", "0"}});
  EXPECT_EQ(bootstrap.proxy.addr, ":3");
  EXPECT_EQ(bootstrap.proxy.workers, 2);
  EXPECT_EQ(bootstrap.shutdown.min_drain, seconds{0});
}

TEST(Bootstrap, NamesTheVariableAtFault) {
  EXPECT_THAT(faults_of("resources_file: r\nproxy: {workers: 1}\n",
                        {{"STINT_PROXY__WORKERS", "many"},
                         {"STINT_PROXY__REAL_IP__TRUSTED_PROXIES", "::1,x"}}),
              ElementsAre("environment variable STINT_PROXY__WORKERS: proxy.workers: 'many' must "
                          "be a whole number",
                          "environment variable STINT_PROXY__REAL_IP__TRUSTED_PROXIES: "
                          "proxy.real_ip.trusted_proxies[1]: must be an address or a network, such "
                          "as 10.1.2.3, 10.0.0.0/8 or fd00::/8"));
  // The file's own fault is not hidden by a variable that would go below it.
  EXPECT_THAT(faults_of("resources_file: r\nproxy: 5\n", {{"STINT_PROXY__WORKERS", "1"}}),
              ElementsAre("stint.yaml:2:8: proxy: must be a map of keys"));
}

TEST(Bootstrap, WarnsOfVariablesThatMeanNothing) {
  const auto loaded = parse_bootstrap("stint.yaml", "resources_file: r.yaml\n",
                                      {{"STINT_PROXY__ADR", ":1"},
                                       {"STINT_RATELIMIT__REDIS__SHARDS", "a=redis://h"},
                                       {"STINT_PROXY__REAL_IP", "x"},
                                       {"STINT_proxy__addr", ":1"},
                                       {"STINT_X__Y", ""},
                                       {"STINT_PORT", "tcp://10.0.0.1:80"},
                                       {"STINT_PORT_80_TCP_ADDR", "10.0.0.1"},
                                       {"STINT_PROXY", "x"},
                                       {"STINT", "x"}});
  EXPECT_TRUE(loaded.value);
  EXPECT_THAT(
      texts_of(loaded.warnings),
      testing::UnorderedElementsAre(
          "environment variable STINT_PROXY__ADR: names no key; did you mean STINT_PROXY__ADDR?",
          "environment variable STINT_PROXY__REAL_IP: proxy.real_ip: takes more than a variable "
          "can hold",
          "environment variable STINT_RATELIMIT__REDIS__SHARDS: ratelimit.redis.shards: takes more "
          "than a variable can hold",
          "environment variable STINT_X__Y: names no key",
          "environment variable STINT_proxy__addr: names no key; did you mean "
          "STINT_PROXY__ADDR?"));
}

TEST(Bootstrap, SubstitutesVariablesInItsValues) {
  const Bootstrap bootstrap = good(
      "resources_file: ${DIR}/r-${KIND:-test}.yaml\nproxy:\n  workers: ${N}\n"
      "observability: {service_name: \"a$$b$c ${N}\"}  # ${NOT_LOOKED_AT}\n",
      {{"DIR", "/etc"}, {"N", "3"}});
  EXPECT_EQ(bootstrap.resources_file, "/etc/r-test.yaml");
  EXPECT_EQ(bootstrap.proxy.workers, 3);
  EXPECT_EQ(bootstrap.observability.service_name, "a$b$c 3");
}

std::string redis_text(const std::string& block) {
  return "resources_file: r\nratelimit: {backend: redis" + block + "}\n";
}
std::vector<std::string> redis(const std::string& block, const Environment& environment) {
  return faults_of(redis_text(block), environment);
}
std::string redis_url(const std::string& block, const Environment& environment) {
  auto loaded = parse_bootstrap("stint.yaml", redis_text(block), environment);
  return loaded.value && loaded.value->ratelimit.redis ? loaded.value->ratelimit.redis->url
                                                       : std::string("none");
}

TEST(BootstrapRedis, TakesItsAddressFromTheEnvironment) {
  EXPECT_EQ(redis_url("", {{"REDIS_URL", "redis://h"}}), "redis://h");
  EXPECT_EQ(redis_url("", {{"REDIS_URLS", "redis://i"}, {"REDIS_URL", "redis://h"}}), "redis://i");
  const auto ring = parse_bootstrap("stint.yaml", redis_text(""),
                                    {{"REDIS_URLS", "a=redis://h,b=redis://i"},
                                     {"RATE_LIMIT_CONSISTENT_HASH_VNODES", "200"},
                                     {"REDIS_URLS_PREVIOUS", "a=redis://h"}});
  ASSERT_TRUE(ring.value && ring.value->ratelimit.redis);
  EXPECT_EQ(ring.value->ratelimit.redis->mode, RedisMode::ring);
  EXPECT_EQ(ring.value->ratelimit.redis->shards,
            (std::vector<Shard>{{"a", "redis://h"}, {"b", "redis://i"}}));
  EXPECT_EQ(ring.value->ratelimit.redis->previous, (std::vector<Shard>{{"a", "redis://h"}}));
  EXPECT_EQ(ring.value->ratelimit.redis->virtual_nodes, 200);
  EXPECT_EQ(redis_url("", {{"STINT_RATELIMIT__REDIS__URL", "redis://h"}}), "redis://h");
  EXPECT_THAT(redis("", {{"REDIS_URLS", "h:6379"}}),
              ElementsAre("environment variable REDIS_URLS: ratelimit.redis.url: must be a URL "
                          "such as redis://host:6379/0 or rediss://user:password@host"));
  EXPECT_THAT(redis("", {{"REDIS_URLS", "a=redis://h,a=redis://i"}}),
              ElementsAre("environment variable REDIS_URLS: ratelimit.redis.urls[1]: is the shard "
                          "'a' as is urls[0]; give each a name of its own"));
  EXPECT_THAT(redis("", {{"REDIS_URLS", "redis://h,redis://i"},
                         {"RATE_LIMIT_CONSISTENT_HASH_VNODES", "0"}}),
              ElementsAre("environment variable RATE_LIMIT_CONSISTENT_HASH_VNODES: "
                          "ratelimit.redis.virtual_nodes: must be from 1 to 10000"));
}

TEST(BootstrapRedis, PrefersTheAddressOfTheFile) {
  // Neither of these is looked at.
  EXPECT_EQ(redis_url(", redis: {url: \"redis://h\"}",
                      {{"REDIS_URLS", "bad,bad"}, {"RATE_LIMIT_CONSISTENT_HASH_VNODES", "bad"}}),
            "redis://h");
  EXPECT_THAT(faults_of("resources_file: r\n", {{"REDIS_URL", "bad"}}), IsEmpty());
  // Virtual nodes mean nothing to one server.
  EXPECT_EQ(redis_url("", {{"REDIS_URL", "redis://h"}, {"RATE_LIMIT_CONSISTENT_HASH_VNODES", "9"}}),
            "redis://h");
}

Redis good_redis(const std::string& block, const Environment& environment = {}) {
  auto loaded = parse_bootstrap("stint.yaml", redis_text(block), environment);
  EXPECT_TRUE(loaded.value) << block;
  return loaded.value ? loaded.value->ratelimit.redis.value_or(Redis()) : Redis();
}

// "user:password@host:port", with tls and the database behind it.
std::string text_of(const RedisUrl& server) {
  return server.username + ":" + server.password + "@" + server.host + ":" +
         std::to_string(server.port) + (server.tls ? " tls" : "") +
         (server.database ? " " + std::to_string(*server.database) : "");
}

TEST(BootstrapRedis, SentinelsHaveAUserAndTlsOfTheirOwn) {
  const Redis redis = good_redis(
      ", redis: {sentinels: [\"a:1\", \"[::1]:2\"], master_name: m, username: u, password: p, "
      "database: 3, sentinel_username: su, sentinel_password: sp, "
      "tls: {enabled: true, ca_file: ca, verify: false}, sentinel_tls: {enabled: false}}");
  EXPECT_EQ(redis.mode, RedisMode::sentinel);
  EXPECT_EQ(redis.master_name, "m");
  const RedisNodes nodes = sentinels_of(redis);
  ASSERT_EQ(nodes.asked.size(), 2U);
  EXPECT_EQ(text_of(nodes.asked[0]), "su:sp@a:1");
  EXPECT_EQ(text_of(nodes.asked[1]), "su:sp@::1:2");
  EXPECT_EQ(text_of(nodes.data), "u:p@:6379 tls 3");
}

TEST(BootstrapRedis, WhatSentinelTlsDoesNotSayIsThatOfTls) {
  const std::string sentinels =
      ", redis: {sentinels: [\"a:1\"], master_name: m, "
      "tls: {enabled: true, ca_file: ca, verify: false}";
  Redis redis = good_redis(sentinels + "}");
  EXPECT_TRUE(sentinels_of(redis).asked[0].tls);
  EXPECT_EQ(redis.sentinel_tls, redis.tls);
  redis = good_redis(sentinels + ", sentinel_tls: {ca_file: other}}");
  EXPECT_TRUE(redis.sentinel_tls_enabled);
  EXPECT_EQ(redis.sentinel_tls.ca_file, "other");
  EXPECT_FALSE(redis.sentinel_tls.verify);
}

TEST(BootstrapRedis, NodesOfAClusterHaveOneWayToLogIn) {
  const auto nodes = [](const std::string& block) { return nodes_of(good_redis(block)); };
  RedisNodes all = nodes(", redis: {nodes: [\"a:1\", \"rediss://u:p@b:2\"]}");
  ASSERT_EQ(all.asked.size(), 2U);
  EXPECT_EQ(text_of(all.asked[0]), "u:p@a:1 tls");
  EXPECT_EQ(text_of(all.asked[1]), "u:p@b:2 tls");
  EXPECT_EQ(text_of(all.data), "u:p@:6379 tls 0");
  all = nodes(", redis: {nodes: [\"redis://b\"], username: u, password: p, database: 0}");
  EXPECT_EQ(text_of(all.asked[0]), "u:p@b:6379");
  all = nodes(", redis: {nodes: [\"a:1\"], tls: {enabled: true}}");
  EXPECT_EQ(text_of(all.asked[0]), ":@a:1 tls");
}

TEST(BootstrapRedis, SentinelsAndNodesComeFromTheEnvironmentToo) {
  const Redis found = good_redis("", {{"STINT_RATELIMIT__REDIS__SENTINELS", "a:1,b:2"},
                                      {"STINT_RATELIMIT__REDIS__MASTER_NAME", "m"},
                                      {"STINT_RATELIMIT__REDIS__SENTINEL_PASSWORD", "sp"},
                                      {"STINT_RATELIMIT__REDIS__SENTINEL_TLS__ENABLED", "true"}});
  EXPECT_EQ(found.mode, RedisMode::sentinel);
  EXPECT_THAT(found.sentinels, ElementsAre("a:1", "b:2"));
  EXPECT_EQ(found.sentinel_password, "sp");
  EXPECT_TRUE(found.sentinel_tls_enabled);
  EXPECT_THAT(good_redis("", {{"STINT_RATELIMIT__REDIS__NODES", "a:1,redis://b"}}).nodes,
              ElementsAre("a:1", "redis://b"));
  EXPECT_THAT(redis("", {{"STINT_RATELIMIT__REDIS__NODES", "a:1,redis://b/2"}}),
              ElementsAre("environment variable STINT_RATELIMIT__REDIS__NODES: "
                          "ratelimit.redis.nodes[1]: must have database 0: a Redis Cluster has no "
                          "other"));
}

TEST(BootstrapRedis, IsReadWhole) {
  const auto loaded = parse_bootstrap(
      "stint.yaml",
      redis_text(", redis: {url: \"rediss://h/3\", username: u, password: p, database: 2, "
                 "timeout_ms: 7, required: true, tls: {verify: false}}"),
      {});
  ASSERT_TRUE(loaded.value);
  const Redis& read = *loaded.value->ratelimit.redis;
  EXPECT_EQ(read.mode, RedisMode::single);
  EXPECT_EQ(read.url, "rediss://h/3");
  EXPECT_EQ(read.username, "u");
  EXPECT_EQ(read.password, "p");
  EXPECT_EQ(read.database, 2);
  EXPECT_EQ(read.timeout, std::chrono::milliseconds{7});
  EXPECT_TRUE(read.required);
  EXPECT_FALSE(read.tls.verify);
}

TEST(BootstrapSettings, HideSecrets) {
  const Bootstrap bootstrap = good(
      "resources_file: r\nadmin: {admin_keys: [hush]}\nratelimit: {redis: {password: hush, "
      "url: \"redis://:hush@h\"}}\n");
  for (const Setting& setting : bootstrap.settings) {
    if (setting.value.find("hush") != std::string::npos) {
      EXPECT_TRUE(setting.secret) << setting.key;
    }
  }
}

TEST(BootstrapSettings, TellWhichChangesNeedARestart) {
  const Bootstrap before = good("resources_file: r\nproxy: {workers: 0}\n");
  const Bootstrap same = good("resources_file: r\n");  // the default was written out before
  EXPECT_THAT(restart_keys(before, same), IsEmpty());
  const Bootstrap after = good(
      "resources_file: r\nproxy: {workers: 2, real_ip: {trusted_proxies: [10.0.0.1]}}\n"
      "observability: {log_level: debug}\nratelimit: {redis: {timeout_ms: 9}}\n");
  EXPECT_THAT(restart_keys(before, after),
              ElementsAre("proxy.workers", "proxy.real_ip.trusted_proxies"));
  EXPECT_THAT(restart_keys(after, before),
              ElementsAre("proxy.workers", "proxy.real_ip.trusted_proxies"));
}

}  // namespace
}  // namespace stint::config
