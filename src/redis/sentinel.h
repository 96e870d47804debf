// The topology of a master that Sentinels watch: when they make another server the master, all keys
// are there.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/event_loop.h"
#include "net/task.h"
#include "redis/server.h"
#include "redis/target.h"
#include "redis/url.h"
#include "stint/time.h"

namespace stint::redis {

struct SentinelOptions {
  std::vector<ServerAddress> sentinels{};  // at least one; each with how to log in there
  std::shared_ptr<const net::TlsClientContext> sentinel_tls{};  // needed if one of them has tls
  std::string master_name{};                                    // as the Sentinels know it
  // Of the master: all but host and port of its address. Its name stays when the master moves.
  ServerOptions master{};
  Duration answer_timeout = std::chrono::milliseconds{250};  // of a Sentinel, for one question
  // A Sentinel without a connection for so long is told of (`configuration`), now and again.
  Duration missing_after = std::chrono::seconds{10};
};

// One target: calls go to the server that is the master now, and fail at once while there is none.
// A server that is named by a Sentinel is used only if it says itself that it is a master.
// Sentinels are asked twice a second, and more often while the master cannot be used.
// Thread rule: as Topology.
class Sentinel final : public Topology {
 public:
  // Throws std::invalid_argument: no Sentinel, or a TLS context is missing.
  Sentinel(net::EventLoop& loop, SentinelOptions options);
  ~Sentinel() override;

  [[nodiscard]] Route route(std::string_view routing_key) override;
  [[nodiscard]] std::span<Target* const> targets() override;
  void start() override;
  [[nodiscard]] net::Task<void> stop() override;

  // "host:port" of the master as it was named last; empty: none was.
  [[nodiscard]] std::string master() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stint::redis
