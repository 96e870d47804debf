// Broken bootstrap files: what is said first about each, to the letter.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "config/bootstrap.h"

namespace stint::config {
namespace {

struct Broken {
  const char* name;
  const char* text;
  const char* fault;
};

std::ostream& operator<<(std::ostream& out, const Broken& broken) { return out << broken.text; }

class BrokenBootstrap : public testing::TestWithParam<Broken> {};

TEST_P(BrokenBootstrap, IsRefusedWithItsPlaceAndReason) {
  const auto loaded = parse_bootstrap("stint.yaml", GetParam().text, {});
  EXPECT_FALSE(loaded.value.has_value());
  ASSERT_FALSE(loaded.faults.empty());
  EXPECT_EQ(to_string(loaded.faults[0]), GetParam().fault);
}

constexpr Broken kNotYaml[] = {
    {"Empty", "", "stint.yaml:1:1: is empty"},
    {"OnlyComments", "# proxy:\n#   addr: :80\n", "stint.yaml:1:1: is empty"},
    {"OnlyNull", "---\n", "stint.yaml:1:1: is empty"},
    {"NotAMap", "resources.yaml\n", "stint.yaml:1:1: must be a map of keys"},
    {"List", "- resources_file: r.yaml\n", "stint.yaml:1:1: must be a map of keys"},
    {"WrongIndent", "proxy:\n  addr: :80\n workers: 2\n",
     "stint.yaml:3:2: proxy: is no YAML: end of map not found; is the indentation right?"},
    {"WrongIndentDeeper", "proxy:\n  addr: :80\n    workers: 2\n",
     "stint.yaml:3:5: proxy.addr: goes on from the line above; is the indentation right? If so, "
     "use "
     "'|'"},
    {"Tab", "proxy:\n\taddr: :80\n",
     "stint.yaml:2:6: proxy: is no YAML: illegal map value; indent by spaces, not by tabs"},
    {"NoSpaceAfterColon", "resources_file:r.yaml\n", "stint.yaml:1:1: must be a map of keys"},
    {"OpenQuote", "resources_file: \"r.yaml\n",
     "stint.yaml:1:17: resources_file: has a quote that is not closed on its line"},
    {"OpenQuoteAtTheEnd", "resources_file: 'r.yaml",
     "stint.yaml:1:24: resources_file: is no YAML: illegal EOF in scalar; is a quote not closed?"},
    {"OpenBrace", "proxy: {addr: ':80'\n",
     "stint.yaml:2:1: proxy.addr: is no YAML: end of map flow not found"},
    {"Anchor", "resources_file: r\nproxy: &p\n  workers: 1\n",
     "stint.yaml:2:8: proxy: the anchor &p is not allowed: write the value out"},
    {"Alias", "resources_file: *r\n",
     "stint.yaml:1:17: resources_file: an alias is not allowed: write the value out; a text that "
     "begins "
     "with * needs quotes"},
    {"MergeKey", "resources_file: r\nproxy:\n  <<: {addr: ':80'}\n",
     "stint.yaml:3:3: proxy.<<: a merge key is not allowed: write the values out"},
    {"Tag", "resources_file: !!str r.yaml\n",
     "stint.yaml:1:17: resources_file: a tag is not allowed: a text in quotes is text, others tell "
     "their type"},
    {"BareTag", "resources_file: ! r.yaml\n",
     "stint.yaml:1:17: resources_file: a tag is not allowed: a text in quotes is text, others tell "
     "their type"},
    {"SecondDocument", "resources_file: r.yaml\n---\nproxy: {}\n",
     "stint.yaml:2:1: a second document is not allowed in a file"},
    {"RestOutside", "  resources_file: r.yaml\nproxy: {}\n",
     "stint.yaml:2:1: stands outside of what began before; is the indentation right?"},
    {"KeyThatIsAList", "? [a, b]\n: c\n", "stint.yaml:1:3: a key must be a text on one line"},
    {"Latin1", "resources_file: caf\xE9.yaml\n",
     "stint.yaml:1:20: is no text in UTF-8, or has a control character"},
    {"ControlCharacter", "resources_file: r.yaml\x04\nbad: 1\n",
     "stint.yaml:1:23: is no text in UTF-8, or has a control character"},
};
INSTANTIATE_TEST_SUITE_P(NotYaml, BrokenBootstrap, testing::ValuesIn(kNotYaml),
                         [](const auto& test) { return test.param.name; });

constexpr Broken kKeys[] = {
    {"UnknownNear", "resources_file: r.yaml\nproxy:\n  adr: :80\n",
     "stint.yaml:3:3: proxy.adr: unknown key; did you mean addr?"},
    {"UnknownSwapped", "resuorces_file: r.yaml\n",
     "stint.yaml:1:1: resources_file: is missing: name a file of resources, or give etcd"},
    {"UnknownFar", "resources_file: r.yaml\ncache:\n  size: 5\n",
     "stint.yaml:3:3: cache.size: unknown key; known are backend"},
    {"UnknownColumnInCharacters", "resources_file: r.yaml\nproxy: {addr: \"\xC3\xA9:1\", x: 1}\n",
     "stint.yaml:2:15: proxy.addr: must be an address and a port, such as 127.0.0.1:8080, "
     "[::1]:8080 or :8080"},
    {"RepeatedAtTop", "resources_file: a\nproxy: {}\nresources_file: b\n",
     "stint.yaml:3:1: resources_file: stands there twice, first in line 1"},
    {"RepeatedInFlow", "resources_file: r\nproxy: {workers: 1, workers: 2}\n",
     "stint.yaml:2:21: proxy.workers: stands there twice, first in line 2"},
    {"NoValue", "resources_file: r\nproxy:\n  addr:\n",
     "stint.yaml:3:3: proxy.addr: has no value: it must be a text"},
    {"BlockWithoutKeys", "resources_file: r\nproxy:\n",
     "stint.yaml:2:1: proxy: has no value: it must be a map of keys"},
    {"ScalarForMap", "resources_file: r\nproxy: 80\n",
     "stint.yaml:2:8: proxy: must be a map of keys"},
    {"MapForScalar", "resources_file: {path: r}\n",
     "stint.yaml:1:17: resources_file: must be a text, not a map"},
    {"ScalarForList", "resources_file: r\nproxy: {real_ip: {trusted_proxies: 10.0.0.0/8}}\n",
     "stint.yaml:2:36: proxy.real_ip.trusted_proxies: must be a list: [a, b], or a line '- a' for "
     "each"},
};
INSTANTIATE_TEST_SUITE_P(Keys, BrokenBootstrap, testing::ValuesIn(kKeys),
                         [](const auto& test) { return test.param.name; });

constexpr Broken kTypes[] = {
    {"NumberInQuotes", "resources_file: r\nproxy:\n  workers: \"2\"\n",
     "stint.yaml:3:12: proxy.workers: '2' must be a whole number: in quotes it is text; remove "
     "them"},
    {"LeadingZero", "resources_file: r\nproxy:\n  workers: 010\n",
     "stint.yaml:3:12: proxy.workers: '010' must be a whole number: without a leading zero, which "
     "some take for octal"},
    {"Exponent", "resources_file: r\nproxy: {workers: 1e3}\n",
     "stint.yaml:2:18: proxy.workers: '1e3' must be a whole number: without an exponent"},
    {"Hexadecimal", "resources_file: r\nproxy: {workers: 0x10}\n",
     "stint.yaml:2:18: proxy.workers: '0x10' must be a whole number: decimal, not hexadecimal"},
    {"Octal", "resources_file: r\nproxy: {workers: 0o10}\n",
     "stint.yaml:2:18: proxy.workers: '0o10' must be a whole number: decimal, not octal"},
    {"Separators", "resources_file: r\nproxy: {request_body_limit_bytes: 1_000}\n",
     "stint.yaml:2:35: proxy.request_body_limit_bytes: '1_000' must be a whole number: without "
     "separators"},
    {"PlusSign", "resources_file: r\nproxy: {workers: +5}\n",
     "stint.yaml:2:18: proxy.workers: '+5' must be a whole number: without a plus sign"},
    {"UnitOnNumber", "resources_file: r\nproxy: {workers: 10k}\n",
     "stint.yaml:2:18: proxy.workers: '10k' must be a whole number: in full, without a unit"},
    {"Fraction", "resources_file: r\nproxy: {workers: 1.5}\n",
     "stint.yaml:2:18: proxy.workers: '1.5' must be a whole number"},
    {"TooLargeForAnyNumber", "resources_file: r\nproxy: {workers: 99999999999999999999}\n",
     "stint.yaml:2:18: proxy.workers: '99999999999999999999' must be a smaller number"},
    {"OutOfRange", "resources_file: r\nproxy: {workers: -1}\n",
     "stint.yaml:2:18: proxy.workers: must be from 0 to 1024"},
    {"BooleanNo", "resources_file: r\nobservability:\n  access_log: no\n",
     "stint.yaml:3:15: observability.access_log: 'no' must be true or false"},
    {"BooleanYes", "resources_file: r\nobservability: {access_log: yes}\n",
     "stint.yaml:2:29: observability.access_log: 'yes' must be true or false"},
    {"BooleanInQuotes", "resources_file: r\nobservability: {access_log: 'true'}\n",
     "stint.yaml:2:29: observability.access_log: 'true' must be true or false: in quotes it is "
     "text; remove them"},
    {"BooleanNumber", "resources_file: r\nobservability: {access_log: 1}\n",
     "stint.yaml:2:29: observability.access_log: '1' must be true or false"},
    {"TextNumber", "resources_file: 10\n",
     "stint.yaml:1:17: resources_file: '10' must be a text: put the number in quotes"},
    {"TextNorway", "resources_file: r\nobservability: {service_name: no}\n",
     "stint.yaml:2:31: observability.service_name: 'no' must be a text: put the word in quotes, "
     "which some take for true or false"},
    {"Decimal", "resources_file: r\nobservability: {tracing: {otlp: {sample_ratio: .5}}}\n",
     "stint.yaml:2:48: observability.tracing.otlp.sample_ratio: '.5' must be a decimal number such "
     "as 20 or 0.5"},
    {"DecimalOutOfRange",
     "resources_file: r\nobservability: {tracing: {otlp: {sample_ratio: 1.5}}}\n",
     "stint.yaml:2:48: observability.tracing.otlp.sample_ratio: must be from 0 to 1"},
    {"Choice", "resources_file: r\nobservability: {log_level: verbose}\n",
     "stint.yaml:2:28: observability.log_level: 'verbose' is none of trace, debug, info, warn, "
     "error, off"},
    {"Network", "resources_file: r\nproxy: {real_ip: {trusted_proxies: [10.0.0.0/8, 10/8]}}\n",
     "stint.yaml:2:49: proxy.real_ip.trusted_proxies[1]: must be an address or a network, such as "
     "10.1.2.3, 10.0.0.0/8 or fd00::/8"},
    {"NetworkLength", "resources_file: r\nproxy: {real_ip: {trusted_proxies: [10.0.0.0/33]}}\n",
     "stint.yaml:2:37: proxy.real_ip.trusted_proxies[0]: must be an address or a network, such as "
     "10.1.2.3, 10.0.0.0/8 or fd00::/8"},
    {"NetworkWithHost", "resources_file: r\nproxy: {real_ip: {trusted_proxies: [10.1.0.0/8]}}\n",
     "stint.yaml:2:37: proxy.real_ip.trusted_proxies[0]: has bits of a host beyond the length of "
     "its network: is 10.0.0.0/8 meant, or 10.1.2.3?"},
    {"Address", "resources_file: r\nproxy: {addr: \"0.0.0.0\"}\n",
     "stint.yaml:2:15: proxy.addr: must be an address and a port, such as 127.0.0.1:8080, "
     "[::1]:8080 or :8080"},
    {"Port", "resources_file: r\nproxy: {addr: \"0.0.0.0:65536\"}\n",
     "stint.yaml:2:15: proxy.addr: must be an address and a port, such as 127.0.0.1:8080, "
     "[::1]:8080 or :8080"},
    {"HeaderName", "resources_file: r\nproxy: {real_ip: {header: \"X Real\"}}\n",
     "stint.yaml:2:27: proxy.real_ip.header: 'X Real' is no name of a header"},
    {"TtlZero", "resources_file: r\nratelimit:\n  concurrency_ttl_secs: 0\n",
     "stint.yaml:3:25: ratelimit.concurrency_ttl_secs: must be from 3 to 3600"},
    {"TtlTooLong", "resources_file: r\nratelimit: {concurrency_ttl_secs: 3601}\n",
     "stint.yaml:2:35: ratelimit.concurrency_ttl_secs: must be from 3 to 3600"},
    {"DrainBackwards", "resources_file: r\nshutdown: {min_drain_secs: 30, max_drain_secs: 10}\n",
     "stint.yaml:2:48: shutdown.max_drain_secs: max_drain_secs (10) must not be below "
     "min_drain_secs (30)"},
    {"UnsetVariable", "resources_file: ${NOWHERE}/r.yaml\n",
     "stint.yaml:1:17: resources_file: the variable NOWHERE is not set; ${NOWHERE:-x} would give "
     "it a default"},
};
INSTANTIATE_TEST_SUITE_P(Types, BrokenBootstrap, testing::ValuesIn(kTypes),
                         [](const auto& test) { return test.param.name; });

constexpr Broken kRefusals[] = {
    {"NoResources", "proxy: {}\n",
     "stint.yaml:1:1: resources_file: is missing: name a file of resources, or give etcd"},
    {"BothResources", "resources_file: r\netcd: {endpoints: [\"http://e:2379\"]}\n",
     "stint.yaml:2:7: etcd: stands beside resources_file; keep one source of resources"},
    {"RedisWithoutAddress", "resources_file: r\nratelimit: {backend: redis}\n",
     "stint.yaml:2:12: ratelimit.redis: has no address: give url, sentinels, nodes or shards, or "
     "set REDIS_URLS or REDIS_URL in the environment"},
    {"SingleWithoutUrl", "resources_file: r\nratelimit: {backend: redis, redis: {mode: single}}\n",
     "stint.yaml:2:43: ratelimit.redis.mode: single needs url"},
    {"ClusterWithoutNodes",
     "resources_file: r\nratelimit: {backend: redis, redis: {mode: cluster}}\n",
     "stint.yaml:2:43: ratelimit.redis.mode: cluster needs nodes"},
    {"SentinelWithoutMaster",
     "resources_file: r\nratelimit: {backend: redis, redis: {mode: sentinel, sentinels: "
     "[\"a:26379\"]}}\n",
     "stint.yaml:2:43: ratelimit.redis.mode: sentinel needs master_name"},
    {"SentinelKeyOfAnotherMode",
     "resources_file: r\nratelimit: {backend: redis, redis: {url: \"redis://a\", "
     "sentinel_password: p}}\n",
     "stint.yaml:2:74: ratelimit.redis.sentinel_password: belongs to mode sentinel, and this is "
     "single"},
    {"TlsBesideAUrl",
     "resources_file: r\nratelimit: {backend: redis, redis: {url: \"redis://a\", tls: {enabled: "
     "true}}}\n",
     "stint.yaml:2:70: ratelimit.redis.tls.enabled: belongs to the modes sentinel and cluster; a "
     "URL says it by rediss://"},
    {"SentinelTlsWithoutKey",
     "resources_file: r\nratelimit: {backend: redis, redis: {sentinels: [\"a:1\"], master_name: m, "
     "sentinel_tls: {cert_file: c}}}\n",
     "stint.yaml:2:99: ratelimit.redis.sentinel_tls.cert_file: needs its key_file"},
    {"ClusterWithADatabase",
     "resources_file: r\nratelimit: {backend: redis, redis: {nodes: [\"a:1\"], database: 2}}\n",
     "stint.yaml:2:63: ratelimit.redis.database: must be 0: a Redis Cluster has no other"},
    {"ClusterNodeWithADatabase",
     "resources_file: r\nratelimit: {backend: redis, redis: {nodes: [\"a:1\", "
     "\"redis://b/2\"]}}\n",
     "stint.yaml:2:52: ratelimit.redis.nodes[1]: must have database 0: a Redis Cluster has no "
     "other"},
    {"ClusterNodesWithAndWithoutTls",
     "resources_file: r\nratelimit: {backend: redis, redis: {nodes: [\"redis://a\", "
     "\"rediss://b\"]}}\n",
     "stint.yaml:2:45: ratelimit.redis.nodes[0]: is redis://, and others are reached by TLS: write "
     "rediss:// for all of them"},
    {"ClusterNodesWithTwoPasswords",
     "resources_file: r\nratelimit: {backend: redis, redis: {nodes: [\"redis://:s3cret@a\", "
     "\"redis://:0ther@b\"]}}\n",
     "stint.yaml:2:66: ratelimit.redis.nodes[1]: has another user or password than those before "
     "it: one holds for all nodes"},
    {"RingWithoutShards", "resources_file: r\nratelimit: {backend: redis, redis: {mode: ring}}\n",
     "stint.yaml:2:43: ratelimit.redis.mode: ring needs shards or urls"},
    {"KeyOfAnotherMode",
     "resources_file: r\nratelimit: {backend: redis, redis: {url: \"redis://a\", nodes: "
     "[\"b:1\"]}}\n",
     "stint.yaml:2:62: ratelimit.redis.nodes: belongs to mode cluster, and this is single"},
    {"MalformedUrl",
     "resources_file: r\nratelimit: {backend: redis, redis: {url: \"host:6379\"}}\n",
     "stint.yaml:2:42: ratelimit.redis.url: must be a URL such as redis://host:6379/0 or "
     "rediss://user:password@host"},
    {"MalformedUrlHidesPassword",
     "resources_file: r\nratelimit: {backend: redis, redis: {url: \"redis://:s3cret@:x\"}}\n",
     "stint.yaml:2:42: ratelimit.redis.url: must be a URL such as redis://host:6379/0 or "
     "rediss://user:password@host"},
    {"SameShardName",
     "resources_file: r\nratelimit:\n  backend: redis\n  redis:\n    shards:\n"
     "      - {name: a, url: \"redis://h1\"}\n      - {name: a, url: \"redis://h2\"}\n",
     "stint.yaml:7:9: ratelimit.redis.shards[1]: is the shard 'a' as is shards[0]; give each a "
     "name of its own"},
    {"SameShardAddress",
     "resources_file: r\nratelimit: {backend: redis, redis: {urls: [\"redis://h\", "
     "\"redis://h:6379/0\"]}}\n",
     "stint.yaml:2:57: ratelimit.redis.urls[1]: is the shard 'h:6379/0' as is urls[0]; give each a "
     "name of its own"},
    {"SameShardAddressByTheDatabaseOfAll",
     "resources_file: r\nratelimit: {backend: redis, redis: {urls: [\"redis://h/3\", "
     "\"redis://h\"], database: 3}}\n",
     "stint.yaml:2:59: ratelimit.redis.urls[1]: is the shard 'h:6379/3' as is urls[0]; give each a "
     "name of its own"},
    {"ShardNamedLikeAnAddress",
     "resources_file: r\nratelimit: {backend: redis, redis: {urls: [\"h:6379/0=redis://i\", "
     "\"redis://h\"]}}\n",
     "stint.yaml:2:66: ratelimit.redis.urls[1]: is the shard 'h:6379/0' as is urls[0]; give each a "
     "name of its own"},
    {"SamePreviousShard",
     "resources_file: r\nratelimit: {backend: redis, redis: {urls: [\"redis://h\"], previous: "
     "{urls: "
     "[\"a=redis://h\", \"a=redis://i\"]}}}\n",
     "stint.yaml:2:91: ratelimit.redis.previous.urls[1]: is the shard 'a' as is urls[0]; give each "
     "a "
     "name of its own"},
    {"OneServerUnderTwoNames",
     "resources_file: r\nratelimit: {backend: redis, redis: {urls: [\"a=redis://h\", "
     "\"b=redis://h:6379/0\"]}}\n",
     "stint.yaml:2:59: ratelimit.redis.urls[1]: is the server h:6379/0 as is urls[0]; give each "
     "shard a server of its own"},
    {"SentinelNamedTwice",
     "resources_file: r\nratelimit: {backend: redis, redis: {sentinels: [\"a:1\", \"b:1\", "
     "\"a:1\"], master_name: m}}\n",
     "stint.yaml:2:63: ratelimit.redis.sentinels[2]: is the same as sentinels[0]; name each once"},
    {"NodeNamedTwice",
     "resources_file: r\nratelimit: {backend: redis, redis: {nodes: [\"a:6379\", "
     "\"redis://a\"]}}\n",
     "stint.yaml:2:55: ratelimit.redis.nodes[1]: is the same as nodes[0]; name each once"},
    {"ShardWithoutName",
     "resources_file: r\nratelimit: {backend: redis, redis: {shards: [{name: \"\", url: "
     "\"redis://h\"}]}}\n",
     "stint.yaml:2:53: ratelimit.redis.shards[0].name: must have 1 to 255 bytes"},
    {"RingTooLarge",
     "resources_file: r\nratelimit:\n  backend: redis\n  redis:\n    virtual_nodes: 10000\n"
     "    shards:\n      - {name: a, url: \"redis://h1\", weight: 100}\n"
     "      - {name: b, url: \"redis://h2\", weight: 5.5}\n",
     "stint.yaml:5:20: ratelimit.redis.virtual_nodes: makes 16880000 points with the weights of "
     "these shards, and 16777216 are the most; give fewer, or less weight"},
    {"ShardsTwice",
     "resources_file: r\nratelimit: {backend: redis, redis: {shards: [{url: \"redis://h\"}], urls: "
     "[\"redis://i\"]}}\n",
     "stint.yaml:2:73: ratelimit.redis.urls: says the same as shards; keep one of them"},
    {"KeyWithoutCertificate", "resources_file: r\nupstream: {tls: {key_file: k.pem}}\n",
     "stint.yaml:2:28: upstream.tls.key_file: needs its cert_file"},
    {"AdminOffLoopback", "resources_file: r\nadmin: {enabled: true, addr: \"0.0.0.0:3001\"}\n",
     "stint.yaml:2:8: admin.admin_keys: is missing: addr '0.0.0.0:3001' can be reached from other "
     "machines"},
    {"AdminOffLoopbackByName", "resources_file: r\nadmin: {enabled: true, addr: \":3001\"}\n",
     "stint.yaml:2:8: admin.admin_keys: is missing: addr ':3001' can be reached from other "
     "machines"},
    {"EmptyAdminKey", "resources_file: r\nadmin: {enabled: true, admin_keys: [\"\"]}\n",
     "stint.yaml:2:36: admin.admin_keys: must be keys of visible ASCII characters, without blanks"},
    {"AdminKeyThatNobodyCanBring",
     "resources_file: r\nadmin: {enabled: true, admin_keys: [good, \"not good\"]}\n",
     "stint.yaml:2:36: admin.admin_keys: must be keys of visible ASCII characters, without blanks"},
    {"AdminWhereTheProxyListens",
     "resources_file: r\nproxy: {addr: \":3001\"}\nadmin: {enabled: true, addr: "
     "\"127.0.0.1:3001\"}\n",
     "stint.yaml:3:30: admin.addr: is where proxy.addr (:3001) listens; give it another port"},
    {"AdminWhereMetricsAre",
     "resources_file: r\nadmin: {enabled: true, addr: \"127.0.0.1:9464\"}\nobservability: "
     "{metrics: "
     "{prometheus: {enabled: true}}}\n",
     "stint.yaml:2:30: admin.addr: is where observability.metrics.prometheus.addr (127.0.0.1:9464) "
     "listens; give it another port"},
    {"EtcdWithoutEndpoints", "etcd: {prefix: /x}\n", "stint.yaml:1:7: etcd.endpoints: is missing"},
};
INSTANTIATE_TEST_SUITE_P(Refusals, BrokenBootstrap, testing::ValuesIn(kRefusals),
                         [](const auto& test) { return test.param.name; });

constexpr Broken kNotYet[] = {
    {"Tls", "resources_file: r\nproxy: {tls: {cert_file: c, key_file: k}}\n",
     "stint.yaml:2:14: proxy.tls: not available yet"},
    {"DecisionHttp", "resources_file: r\ndecision: {http_addr: \":8081\"}\n",
     "stint.yaml:2:23: decision.http_addr: not available yet"},
    {"DecisionGrpc", "resources_file: r\ndecision: {grpc_addr: \":8081\"}\n",
     "stint.yaml:2:23: decision.grpc_addr: not available yet"},
    {"AdminTls", "resources_file: r\nadmin: {enabled: true, tls: {cert_file: c, key_file: k}}\n",
     "stint.yaml:2:29: admin.tls: not available yet"},
    {"MetricsOtlp", "resources_file: r\nobservability: {metrics: {otlp: {enabled: true}}}\n",
     "stint.yaml:2:43: observability.metrics.otlp.enabled: not available yet"},
    {"TracingOtlp", "resources_file: r\nobservability: {tracing: {otlp: {enabled: true}}}\n",
     "stint.yaml:2:43: observability.tracing.otlp.enabled: not available yet"},
    {"Etcd", "etcd: {endpoints: [\"http://e:2379\"]}\n", "stint.yaml:1:7: etcd: not available yet"},
    {"Cache", "resources_file: r\ncache: {backend: redis}\n",
     "stint.yaml:2:18: cache.backend: not available yet"},
};
INSTANTIATE_TEST_SUITE_P(NotYet, BrokenBootstrap, testing::ValuesIn(kNotYet),
                         [](const auto& test) { return test.param.name; });

TEST(BrokenBootstrapFile, IsToldEveryFaultInItsOrder) {
  const auto loaded = parse_bootstrap("f.yaml",
                                      "proxy:\n"
                                      "  adr: :80\n"
                                      "  workers: two\n"
                                      "  workers: 3\n"
                                      "  addr: &a 1\n"
                                      "decision: {http_addr: \":1\"}\n"
                                      "upstreams: {}\n",
                                      {});
  std::vector<std::string> texts;
  texts.reserve(loaded.faults.size());
  for (const Fault& fault : loaded.faults) texts.push_back(to_string(fault));
  EXPECT_THAT(texts,
              testing::ElementsAre(
                  "f.yaml:1:1: resources_file: is missing: name a file of resources, or give etcd",
                  "f.yaml:2:3: proxy.adr: unknown key; did you mean addr?",
                  "f.yaml:3:12: proxy.workers: 'two' must be a whole number",
                  "f.yaml:4:3: proxy.workers: stands there twice, first in line 3",
                  "f.yaml:5:9: proxy.addr: the anchor &a is not allowed: write the value out",
                  "f.yaml:5:9: proxy.addr: '1' must be a text: put the number in quotes",
                  "f.yaml:6:23: decision.http_addr: not available yet",
                  "f.yaml:7:1: upstreams: unknown key; did you mean upstream?"));
}

TEST(BrokenBootstrapFile, ThatCannotBeReadSaysWhy) {
  const auto missing = load_bootstrap("/nowhere/stint.yaml", {});
  ASSERT_EQ(missing.faults.size(), 1U);
  EXPECT_EQ(to_string(missing.faults[0]),
            "/nowhere/stint.yaml: cannot be read: No such file or directory");
  const auto folder = load_bootstrap("/", {});
  ASSERT_EQ(folder.faults.size(), 1U);
  EXPECT_EQ(to_string(folder.faults[0]), "/: cannot be read: Is a directory");
}

}  // namespace
}  // namespace stint::config
