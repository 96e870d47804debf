// One Redis server as one event loop sees it: a connection that is kept up, and calls over it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/entropy.h"
#include "net/connect.h"
#include "net/event_loop.h"
#include "net/task.h"
#include "redis/call.h"
#include "redis/script.h"
#include "redis/target.h"
#include "redis/url.h"
#include "stint/time.h"

namespace stint::redis {

// A call that shows whether the server does its work. It should write, so that a full disk or a
// server that became a replica shows too.
struct Probe {
  struct Call {
    std::vector<std::string> keys;
    std::vector<std::string> args;
  };
  const Script* script = nullptr;                     // null: PING
  std::function<Call()> make{};                       // at each probe; empty: no keys, no args
  std::function<void(const CallResult&)> on_reply{};  // may be empty
};

struct ServerEvent {
  enum class Kind : std::uint8_t {
    connected,       // logged in; it is available after its first probe
    connect_failed,  // no connection, or the login failed; text: why
    lost,            // a connection ended that was logged in; text: why
    breaker_opened,  // text: the failure that did it
    breaker_closed,
    configuration,  // somebody must mend something; text: what the server said
    // Told by topologies of their targets, not by servers:
    found,  // keys have a place again that had none
    gone,   // it is no target any more
  };
  Kind kind{};
  std::string text{};
};
[[nodiscard]] const char* to_string(ServerEvent::Kind kind) noexcept;

struct ServerOptions {
  ServerAddress address{};
  std::string name{};         // of the target; empty: to_string(address)
  std::string client_name{};  // shows in CLIENT LIST; empty: none. Blanks become '-'
  std::shared_ptr<const net::TlsClientContext> tls{};  // needed if address.tls
  std::vector<const Script*> scripts{};                // loaded at every connect; must outlive us
  bool ask_time = true;                                // see SessionOptions
  bool must_be_master = false;                         // see SessionOptions
  // It is a node of a Cluster, which has the keys of some slots only; else one that sends a probe
  // elsewhere is not usable.
  bool in_cluster = false;
  // Calls of one turn of the loop are written together at its end, and not each at once: for
  // several servers, where the answer of one makes calls to the others.
  bool gather_writes = false;
  Probe probe{};
  Duration probe_every = std::chrono::seconds{5};  // while all is well; above zero
  Duration probe_timeout = std::chrono::milliseconds{250};
  Duration connect_timeout = std::chrono::seconds{1};  // look-up, TCP, TLS; again for the login
  unsigned breaker_failures = 3;                     // in a row, which open the breaker; at least 1
  base::Entropy* entropy = &base::system_entropy();  // of the jitter; must outlive the server
  // Called on the loop's thread. They may make calls, but not destroy the server.
  std::function<void(const ServerEvent&)> on_event{};
  // The server's clock read between two instants of steady time: at every connect.
  std::function<void(TimePoint store_time, Duration sent_at, Duration received_at)> on_time{};
};

// A server that answers READONLY or MASTERDOWN is a replica, and may be the wrong one by now: the
// connection is ended as soon as nothing is pending, its name looked up and a new one made.
// Thread rule: the loop's thread; the constructor and `start` also before it runs.
class Server final : public Target {
 public:
  Server(net::EventLoop& loop, ServerOptions options);
  // `stop` must have ended, if `start` was called.
  ~Server() override;

  // Connects, and again whenever the connection ends, with a jittered pause. Once.
  void start();
  // Answers every pending call (`stopped`) and closes. Later calls are answered at once.
  [[nodiscard]] net::Task<void> stop();

  void call(const Script& script, std::span<const std::string_view> keys,
            std::span<const std::string_view> args, Duration deadline, CallDone done) override;
  // The same as `call`, with ASKING in front (see Session).
  void call_asking(const Script& script, std::span<const std::string_view> keys,
                   std::span<const std::string_view> args, Duration deadline, CallDone done);
  void command(std::span<const std::string_view> words, Duration deadline, CallDone done) override;
  // Logged in, probed since, and the breaker closed.
  [[nodiscard]] bool available() const noexcept override;
  [[nodiscard]] std::string_view name() const noexcept override;
  [[nodiscard]] const ServerAddress& address() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stint::redis
