// A Redis store for tests: on a real server, with event loops of its own.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "net/event_loop.h"
#include "store/redis/redis_store.h"
#include "tests/integration/redis_testing.h"

namespace stint::redis_testing {

// Scripts whose time is what the key `time_key` says, and whose keys live for an hour, whatever
// that time is.
[[nodiscard]] std::string prelude_with_time_of(const std::string& time_key);

// Thread rule: the thread that made it.
class StoreRig {
 public:
  struct Options {
    std::string url{};                    // redis:// or rediss://
    std::vector<std::string> urls{};      // instead: a ring of these
    std::vector<std::string> previous{};  // that was a ring of these, for an hour from now on
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
  // Until no loop has a server that takes no calls (or some loop has one); false after 10 s.
  [[nodiscard]] bool wait_until_degraded(bool degraded) const;

 private:
  [[nodiscard]] static store::RedisStore::MakeTopology topology(const Options& options);

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
