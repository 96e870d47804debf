// Real Redis servers for tests, and a gate in front of them that breaks connections.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "redis/reply.h"
#include "stint/time.h"
#include "tests/integration/own_port.h"

namespace stint::redis_testing {

// Whether it comes true, which is asked again and again, within the time.
[[nodiscard]] bool eventually(const std::function<bool()>& what,
                              Duration within = std::chrono::seconds{10},
                              Duration every = std::chrono::milliseconds{1});
void let_pass(Duration span);

// "role:master" in a reply to INFO: what stands behind a field; empty if it is not there.
[[nodiscard]] std::string info_field(const redis::Reply& info, std::string_view field);

// A redis-server of our own: on 127.0.0.1, without persistence, in a folder that is removed at the
// end, as is the server, even if the test is killed.
// Thread rule: the thread that made it, which must live as long (the kernel ends the server with
// it); `port` and `url` any thread.
class RedisServer {
 public:
  struct Options {
    std::string password{};             // of the user default (requirepass); empty: none
    std::vector<std::string> users{};   // "alice on >secret ~* +@all"
    std::vector<std::string> config{};  // lines of redis.conf: "maxmemory 1mb"
    bool sentinel = false;              // instead of a server with data
    bool cluster = false;               // as a node of a Cluster, which has met nobody
    // TLS on a port of its own, beside the plain one, if cert_file is given. With ca_file clients
    // must show a certificate of it.
    std::string ca_file{};
    std::string cert_file{};
    std::string key_file{};
  };
  // Returns when the server answers PING. Throws std::runtime_error, with its log, if it does not.
  RedisServer();
  explicit RedisServer(Options options);
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_.number(); }
  [[nodiscard]] std::uint16_t tls_port() const noexcept { return tls_port_.number(); }
  // By which the nodes of a Cluster speak with one another.
  [[nodiscard]] std::uint16_t bus_port() const noexcept { return bus_port_.number(); }
  // "redis://127.0.0.1:port", with the password if there is one.
  [[nodiscard]] std::string url() const;

  // Sends a command over a connection of its own, as the user default, and waits for the reply,
  // which may be an error. Throws std::runtime_error if none comes within 10 s.
  redis::Reply command(std::initializer_list<std::string_view> words);
  redis::Reply command(const std::vector<std::string_view>& words);

  // False after `stop` and `kill`, and while it is paused.
  [[nodiscard]] bool answers() const noexcept { return pid_ > 0 && !paused_; }
  void stop();     // SIGTERM: an orderly end, as of a rolling update
  void kill();     // SIGKILL: a crash; connections are reset, data is gone
  void restart();  // on the same ports; ends it first if it runs. Data and scripts are gone
  // SIGSTOP: the kernel still accepts connections and takes bytes, but nobody answers, as with a
  // machine that swaps or a hypervisor that froze it. Returns when it stands still.
  void pause();
  void resume();  // SIGCONT: it now runs what it was sent meanwhile

 private:
  struct Log;
  void start();
  [[nodiscard]] bool start_once();
  void end(int signal);

  Options options_;
  std::string folder_;
  OwnPort port_;
  OwnPort tls_port_;
  OwnPort bus_port_;
  pid_t pid_ = -1;
  bool paused_ = false;
  std::unique_ptr<Log> log_;
  bool ports_fixed_ = false;
};

// A TCP proxy on 127.0.0.1 with faults that can be switched. A function that switches one returns
// when it is in force. Bytes that were taken before are not affected.
// Thread rule: any thread.
class Gate {
 public:
  explicit Gate(std::uint16_t to_port);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept;
  // Connections that it has accepted.
  [[nodiscard]] std::size_t accepted();
  // Bytes of requests that were passed on to the server.
  [[nodiscard]] std::size_t requested();

  // Ends every fault.
  void pass();
  // New connections are refused, those that are there go on: a listener that is gone, a full
  // backlog, a firewall rule that rejects.
  void refuse();
  // Accepts, but passes nothing on, either way: a process that hangs, a router that drops packets,
  // a load balancer without a backend.
  void stall();
  // Requests arrive and are done, their replies are swallowed: a connection cut at the worst
  // moment, an asymmetric route.
  void drop_replies();
  // Replies arrive so much later: a far region, a saturated link.
  void delay(Duration span);
  // After so many more bytes of replies the connection is closed, in the middle of one: a crash or
  // a proxy's restart while it writes. The next connections are good.
  void cut_after(std::size_t bytes);
  // Bytes of replies are changed: broken memory, a middlebox, the wrong service behind the address.
  void corrupt();
  // Closes all connections at once: CLIENT KILL, a failover, an idle time-out of a load balancer.
  void close_all();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stint::redis_testing
