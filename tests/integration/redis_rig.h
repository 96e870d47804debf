// A Redis store for tests: on a real server, with event loops of its own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/event_loop.h"
#include "redis/deployment.h"
#include "store/redis/redis_store.h"
#include "tests/integration/redis_testing.h"

namespace stint::redis_testing {

// Scripts whose time is what the key `time_key` says, and whose keys live for an hour, whatever
// that time is.
[[nodiscard]] std::string prelude_with_time_of(const std::string& time_key);
// The same for a Cluster, where the time has to be in the slot of what a script is about: what the
// key `time_key` says with the hash tag of the script's first key behind it.
[[nodiscard]] std::string prelude_with_time_beside(const std::string& time_key);

// Thread rule: the thread that made it.
class StoreRig {
 public:
  struct Options {
    std::string url{};  // redis:// or rediss://; or
    std::optional<redis::Deployment> deployment{};
    std::size_t loops = 1;
    store::RedisStoreOptions store{};
    net::TlsClientContext::Options tls{};
    Duration connect_timeout = std::chrono::seconds{1};
  };
  explicit StoreRig(Options options);
  ~StoreRig();
  StoreRig(const StoreRig&) = delete;
  StoreRig& operator=(const StoreRig&) = delete;

  [[nodiscard]] store::RedisStore& store() noexcept { return *store_; }
  // Other servers from soon on: see RedisStore::replace.
  void replace(const Options& options);
  // Until every loop has servers that take calls (or one of them has not); false after 10 s.
  [[nodiscard]] bool wait_until_degraded(bool degraded) const;

 private:
  [[nodiscard]] static redis::Deployment deployment_of(const Options& options);

  struct Loop {
    net::EventLoop loop;
    std::thread thread;
  };
  std::vector<std::unique_ptr<Loop>> loops_;
  std::unique_ptr<store::RedisStore> store_;
};

// A prefix for keys that no other test of the program has.
[[nodiscard]] std::string fresh_prefix();

}  // namespace stint::redis_testing
