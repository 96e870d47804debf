// The bootstrap configuration: what a process needs to know before it serves (`stint.yaml`).
// docs/configuration.md describes every key for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/fault.h"
#include "stint/outage.h"
#include "stint/time.h"

namespace stint::config {

// Addresses are "127.0.0.1:8080", "[::1]:0", ":8080" (all addresses) and are checked to have that
// form. An empty address means: no such listener.

// Who we are to those who connect to us. Both files or none; PEM.
struct ServerTls {
  std::string cert_file{};
  std::string key_file{};
};

// How we verify those we connect to, and who we are to them. PEM files.
struct ClientTls {
  std::string ca_file{};    // empty: the system's certificates
  std::string cert_file{};  // client certificate; with key_file
  std::string key_file{};
  bool verify = true;  // chain and host name; off only for tests
  friend bool operator==(const ClientTls&, const ClientTls&) = default;
};

// Where the address of a client is read from. Forwarding headers count only when the peer of the
// connection is trusted.
struct RealIp {
  // Addresses and networks ("10.0.0.0/8", "::1"). Empty: nobody is trusted, the peer is the client.
  std::vector<std::string> trusted_proxies{};
  // True: walk from the right over trusted hops to the first that is not. False: the rightmost.
  bool recursive = true;
  // Lower case. A list of addresses as in X-Forwarded-For, several lines joined in order.
  std::string header = "x-forwarded-for";
  // IPv6 clients are told apart by so many leading bits. 1 to 128.
  int ipv6_prefix = 64;
};

struct Proxy {
  std::string addr = "0.0.0.0:3000";
  // Event loops. 0: as `thread_per_core` says. At most 1,024.
  int workers = 0;
  // With `workers` 0: true, one event loop for each core that the process may use; false, one.
  bool thread_per_core = true;
  // The most bytes of a request's body; more is 413. 1 or more.
  std::int64_t request_body_limit_bytes = std::int64_t{10} * 1024 * 1024;
  // Of a request's first line (more: 414) and of all header lines (more: 431).
  std::int64_t request_line_limit_bytes = std::int64_t{8} * 1024;
  std::int64_t header_limit_bytes = std::int64_t{32} * 1024;
  int header_limit_count = 100;
  // From the first byte of a head to its last, for the whole body (both 408), and between two
  // requests of a connection (closed).
  Duration header_timeout = std::chrono::seconds{10};
  Duration body_timeout = std::chrono::seconds{60};
  Duration idle_timeout = std::chrono::seconds{60};
  // Without a client taking a byte of its answer (closed).
  Duration write_timeout = std::chrono::seconds{30};
  std::optional<ServerTls> tls{};  // not available yet
  RealIp real_ip{};
  // Lower case. Headers whose value is taken as the id of a request, the first that is there.
  // Empty: every request gets a new id.
  std::vector<std::string> request_id_accept_headers{"x-request-id"};
};

// How many event loops the proxy runs on a machine with so many usable cores (1 or more).
[[nodiscard]] int event_loops(const Proxy& proxy, int cores) noexcept;

// Not available yet.
struct DecisionService {
  std::string http_addr{};
  std::string grpc_addr{};
};

struct Admin {
  bool enabled = false;
  std::string addr = "127.0.0.1:3001";
  std::vector<std::string> admin_keys{};  // needed unless addr is loopback
  std::optional<ServerTls> tls{};         // not available yet
};

enum class LogLevel : std::uint8_t { trace, debug, info, warn, error, off };
[[nodiscard]] std::string_view to_string(LogLevel level) noexcept;

struct Observability {
  std::string service_name = "stint";
  LogLevel log_level = LogLevel::info;
  bool access_log = true;  // one line for each request
  struct Prometheus {
    bool enabled = false;  // default: true where `addr` is given
    std::string path = "/metrics";
    std::string addr = "127.0.0.1:9464";
  } prometheus{};
  struct Otlp {  // not available yet
    bool enabled = false;
    std::string endpoint{};
    double sample_ratio = 1.0;  // of traces; 0 to 1
  };
  Otlp metrics_otlp{};
  Otlp tracing_otlp{};
};

enum class Backend : std::uint8_t { memory, redis };
enum class RedisMode : std::uint8_t { single, sentinel, cluster, ring };
[[nodiscard]] std::string_view to_string(OnStoreError rule) noexcept;

struct Shard {
  std::string name{};   // empty: known by its address
  std::string url{};    // redis:// or rediss://
  double weight = 1.0;  // 0.01 to 100
  friend bool operator==(const Shard&, const Shard&) = default;
};

// Which members are used depends on `mode`.
struct Redis {
  RedisMode mode = RedisMode::single;    // default: told by which address key is given
  std::string url{};                     // single
  std::vector<std::string> nodes{};      // cluster: host:port or URLs to start from
  std::vector<std::string> sentinels{};  // sentinel: host:port
  std::string master_name{};             // sentinel
  std::string sentinel_username{};       // sentinel: how to log in at the Sentinels
  std::string sentinel_password{};
  std::vector<Shard> shards{};         // ring; `urls` (also "name=url") is a shorter way
  int virtual_nodes = 150;             // ring; 1 to 10,000
  std::vector<Shard> previous{};       // ring: the shards before a change
  std::optional<Duration> handover{};  // absent: the longest window, at most 1 h
  std::string username{};
  std::string password{};
  int database = 0;
  ClientTls tls{};
  bool tls_enabled = false;  // sentinel, cluster; the URLs of the others say it
  // Of connections to Sentinels; as `tls` where not given.
  ClientTls sentinel_tls{};
  bool sentinel_tls_enabled = false;
  Duration timeout = std::chrono::milliseconds{50};  // of one call to a server
  bool required = false;  // not to start without it; else the outage rule decides until it is there
  friend bool operator==(const Redis&, const Redis&) = default;
};

struct RateLimit {
  Backend backend = Backend::memory;
  std::size_t max_buckets = 1'000'000;
  Duration concurrency_ttl = std::chrono::seconds{30};  // 3 s to 1 h
  // What holds for policies that do not say. Without effect while counters are in memory.
  OnStoreError on_store_error = OnStoreError::local;
  int replicas = 1;  // assumed while the number is unknown; 1 or more
  std::string key_prefix = "stint";
  // What an image, audio or file part of a request is taken for.
  std::int64_t media_part_tokens = 1000;
  std::optional<Redis> redis{};  // with backend redis
};

// Not available yet.
struct Etcd {
  std::vector<std::string> endpoints{};
  std::string prefix = "/stint";
  std::string user{};
  std::string password_env{};  // the variable that holds the password
  Duration dial_timeout = std::chrono::seconds{5};
  Duration request_timeout = std::chrono::seconds{5};
  ClientTls tls{};
};

enum class CacheBackend : std::uint8_t { none, memory };

struct Upstream {
  Duration connect_timeout = std::chrono::seconds{5};
  // From the request to the head of its answer, and between two pieces of a plain answer.
  Duration timeout = std::chrono::seconds{600};
  // Between two pieces of a streamed answer; a stream as a whole has no limit.
  Duration stream_timeout = std::chrono::seconds{300};
  Duration idle_timeout = std::chrono::seconds{60};  // of a kept connection
  int max_idle_connections = 64;                     // kept, per event loop and origin
  ClientTls tls{};                                   // of https upstreams
};

struct Shutdown {
  // After SIGTERM: still accepting, while /readyz says 503.
  Duration min_drain = std::chrono::seconds{5};
  // After SIGTERM: what still runs is ended. Not below min_drain.
  Duration max_drain = std::chrono::seconds{25};
};

// One key as it is in force: from the file, the environment, or its default.
struct Setting {
  std::string key{};    // "proxy.addr"
  std::string value{};  // for people
  bool secret = false;  // `value` is not to be shown
  // Where it was given, as in Fault; a default has no place.
  std::string file{};
  int line = 0;
  int column = 0;

  friend bool operator==(const Setting&, const Setting&) = default;
};

struct Bootstrap {
  Proxy proxy{};
  DecisionService decision{};
  Admin admin{};
  Observability observability{};
  RateLimit ratelimit{};
  // The file of resources. A relative path of the bootstrap file is relative to its folder, one of
  // the environment to the working directory; here it is ready to be opened.
  std::string resources_file{};
  std::optional<Etcd> etcd{};  // or this
  CacheBackend cache = CacheBackend::none;
  Upstream upstream{};
  Shutdown shutdown{};

  std::vector<Setting> settings{};  // all of the above, in the order of the documentation
};

// Reads the file, if there is one, and overrides it from the environment: STINT_ and the path of a
// key with `__`, upper case; lists are separated by commas. REDIS_URLS, REDIS_URLS_PREVIOUS,
// REDIS_URL and RATE_LIMIT_CONSISTENT_HASH_VNODES count with backend redis where nothing else
// gives the address. `resources_file`, if not null, is set also where there are faults.
[[nodiscard]] Loaded<Bootstrap> load_bootstrap(const std::optional<std::string>& file,
                                               const Environment& environment,
                                               std::string* resources_file = nullptr);

// As above for a text that was read already; `file` names it in faults.
[[nodiscard]] Loaded<Bootstrap> parse_bootstrap(const std::string& file, std::string_view text,
                                                const Environment& environment);

// The keys whose value differs and that a running process cannot take over: all but those of
// ratelimit.redis and observability.log_level.
[[nodiscard]] std::vector<std::string> restart_keys(const Bootstrap& before,
                                                    const Bootstrap& after);

// Every key that is known, in the order of the documentation; "[]" stands for list elements.
[[nodiscard]] std::vector<std::string> known_bootstrap_keys();

}  // namespace stint::config
