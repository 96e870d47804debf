// A Redis store as one event loop sees it: its connections, and what waits for them.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/event_loop.h"
#include "redis/target.h"
#include "store/redis/change.h"
#include "store/redis/lane.h"
#include "store/redis/redis_store.h"
#include "store/redis/server_clock.h"
#include "store/redis/shared.h"

namespace stint::store {

// Thread rule: the thread of its event loop; the constructor and `start` also before it runs.
class Port {
 public:
  // Both must outlive it.
  Port(net::EventLoop& loop, Shared& shared, const RedisStore::MakeTopology& make);
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  [[nodiscard]] net::EventLoop& loop() noexcept { return loop_; }
  void start();
  [[nodiscard]] net::Task<void> stop();

  // See RateStore.
  void ask(AdmissionRecord& record, bool look, Done done);
  void settle(AdmissionRecord& record, Settled done);
  void renew(std::span<AdmissionRecord* const> records, Done done);
  void reset(std::string_view pattern, std::uint64_t cursor, ResetPage& page, Done done);
  void list(std::string_view pattern, std::uint64_t cursor, std::size_t page_size, BucketPage& page,
            Done done);

 private:
  // A server, by the name of its target.
  struct Site {
    std::string name;
    ServerClock clock;
    bool degraded = true;    // until it is connected
    bool looked_at = false;  // its settings were
    int looking = 0;         // questions about them that are under way
  };
  struct Admission;
  struct Carried;

  [[nodiscard]] redis::ServerOptions prepare(std::string_view name);
  [[nodiscard]] redis::Probe announcement(Site& site);
  [[nodiscard]] Site& site(std::string_view name);
  void on_event(Site& site, const redis::ServerEvent& event);
  void set_degraded(Site& site, bool degraded, const std::string& why);
  void announced(Site& site, const redis::CallResult& result);
  // Warns about settings under which counters would be lost, and servers that are too old.
  void look_at_settings(Site& site, redis::Target& target);

  [[nodiscard]] Lane& lane(std::string_view bucket_key);
  [[nodiscard]] LaneHooks lane_hooks(Site& site);

  void decided(Admission& admission);
  void answer_locally(Admission& admission, std::span<const std::size_t> undecided,
                      const std::string& why);
  static void leave_undecided(AdmissionRecord& record, std::span<const std::size_t> undecided,
                              const std::string& why);
  void give_back_charged(Admission& admission);
  static void settle_carried(Change& change, bool maybe_charged);

  // Sends a change whose answer nobody waits for; kept for later if it cannot be sent.
  void send(Change change);
  void keep(Change change);
  void send_kept();
  // Tells the servers what was counted here while they were away.
  void carry_back();
  void carry(SpentBucket spent);

  net::EventLoop& loop_;
  Shared& shared_;
  std::map<std::string, std::unique_ptr<Site>, std::less<>> sites_;
  std::unique_ptr<redis::Topology> topology_;
  struct LaneOf {
    redis::Topology::Route route;
    std::unique_ptr<Lane> lane;
  };
  std::vector<LaneOf> lanes_;  // few
  std::deque<Change> kept_;
  std::size_t sending_kept_ = 0;
};

}  // namespace stint::store
