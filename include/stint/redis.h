// A limiter whose counters lie in a Redis server, shared by all processes that use it.
// Link stint::redis beside stint::stint (docs/library.md).
#pragma once

#include <string>
#include <vector>

#include "stint/error.h"
#include "stint/limiter.h"
#include "stint/policy.h"
#include "stint/time.h"

namespace stint {

struct RedisOptions {
  // redis://[user:password@]host[:port][/database], rediss:// for TLS.
  std::string url{};
  // Of the Sentinels that watch the master, all of them; with their ports, as `url`, and with how
  // to log in there. The host of `url` is then the name of the master, and the rest of it says how
  // to log in at the master: "redis://user:password@mymaster/0". Empty: there are none.
  std::vector<std::string> sentinels{};
  // Instead of `url`: some nodes of a Redis Cluster, as URLs, to ask for the others. How to log in
  // is said by the first, for all. Empty: it is none.
  std::vector<std::string> cluster_nodes{};
  // What all keys begin with. Processes share counters if server, prefix and policies are the same.
  std::string key_prefix = "stint";
  // How long an admission waits for the server at most, from the call on. 1 ms or more.
  Duration timeout = std::chrono::milliseconds{50};
  // How long the making of the limiter waits for the first connection. 0: not at all. Whether it is
  // there or not, the limiter is made.
  Duration connect_wait{0};
  // How many processes share the server, assumed while it was never reached. 1 or more.
  std::int64_t replicas = 1;
  // Of every rediss://: whom to trust (empty: the system's certificates), and a client certificate
  // with its key. PEM files. `tls_verify` off takes any certificate: for tests only.
  std::string tls_ca_file{};
  std::string tls_cert_file{};
  std::string tls_key_file{};
  bool tls_verify = true;
};

// Starts one thread, which the limiter ends with. It connects in the background: while the server
// is away each policy's `on_store_error` decides, and so it does until the first connection is
// there. The synchronous calls of the limiter wait for the server, at most `timeout`; those with a
// callback do not, and call it on the limiter's thread, which must not be blocked.
// `options.max_buckets` bounds what is kept for an outage. `options.clock` must be null: the time
// is the server's.
// Errors: invalid_argument; the field names an option or a policy's part.
[[nodiscard]] Result<Limiter> create_redis_limiter(const std::vector<Policy>& policies,
                                                   const RedisOptions& redis,
                                                   LimiterOptions options = {});

}  // namespace stint
