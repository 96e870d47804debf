// One master of a Cluster as one event loop sees it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/deadline.h"
#include "net/event_loop.h"
#include "redis/server.h"
#include "redis/slots.h"
#include "redis/target.h"

namespace stint::redis {

// Two targets: for calls about its own slots, and (`asking`) about those that it is being given.
// Until its first connection is there or has failed, for a second at most, calls wait for it: a
// slot that was moved to a node nobody knew is no outage.
// Thread rule: the thread of its event loop.
class ClusterNode final : public Target {
 public:
  // Without a server: it is not used, and answers that it is unavailable.
  ClusterNode(net::EventLoop& loop, NodePlace place, std::string name);
  ~ClusterNode() override;

  // Uses it from now on, and starts it. What on_event and the probe tell must be passed on to
  // `told` and `probed`.
  void begin(std::unique_ptr<Server> server);
  // Uses it no more.
  [[nodiscard]] std::unique_ptr<Server> end();
  [[nodiscard]] Server* server() const noexcept { return server_.get(); }

  void told(const ServerEvent& event);
  void probed();

  [[nodiscard]] const NodePlace& place() const noexcept { return place_; }
  [[nodiscard]] Target& asking() noexcept { return asking_; }

  void call(const Script& script, std::span<const std::string_view> keys,
            std::span<const std::string_view> args, Duration deadline, CallDone done) override;
  void command(std::span<const std::string_view> words, Duration deadline, CallDone done) override;
  [[nodiscard]] bool available() const noexcept override;
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }

 private:
  class Asking final : public Target {
   public:
    explicit Asking(ClusterNode& node) : node_(node) {}
    void call(const Script& script, std::span<const std::string_view> keys,
              std::span<const std::string_view> args, Duration deadline, CallDone done) override {
      node_.take(script, keys, args, deadline, std::move(done), true);
    }
    void command(std::span<const std::string_view> words, Duration deadline,
                 CallDone done) override {
      node_.command(words, deadline, std::move(done));
    }
    [[nodiscard]] bool available() const noexcept override { return node_.available(); }
    [[nodiscard]] std::string_view name() const noexcept override { return node_.name(); }

   private:
    ClusterNode& node_;
  };
  // A call that waits for the first connection.
  struct Held {
    const Script* script = nullptr;
    std::vector<std::string> keys{};
    std::vector<std::string> args{};
    Duration deadline{};
    CallDone done{};
    bool asking = false;
  };

  void take(const Script& script, std::span<const std::string_view> keys,
            std::span<const std::string_view> args, Duration deadline, CallDone done, bool asking);
  void send(const Script& script, std::span<const std::string_view> keys,
            std::span<const std::string_view> args, Duration deadline, CallDone done, bool asking);
  // Whether calls may wait for the first connection.
  [[nodiscard]] bool young() const noexcept;
  void release();
  void on_timer();

  net::EventLoop& loop_;
  const NodePlace place_;
  const std::string name_;
  Asking asking_{*this};
  std::unique_ptr<Server> server_{};
  Duration young_until_{};
  std::vector<Held> held_{};
  net::Deadline timer_;
};

}  // namespace stint::redis
