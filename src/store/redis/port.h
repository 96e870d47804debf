// A Redis store as one event loop sees it: its connections, and what waits for them.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/event_loop.h"
#include "store/redis/change.h"
#include "store/redis/redis_store.h"
#include "store/redis/servers.h"
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
  // Other servers from soon on: see RedisStore::replace. After `start`.
  void replace(const RedisStore::MakeTopology& make, Duration timeout);

  // See RedisStore.
  [[nodiscard]] std::string target_of(std::string_view bucket_key) {
    return std::string(servers_->topology().route(bucket_key).target->name());
  }

  // See RateStore.
  void ask(AdmissionRecord& record, bool look, Done done);
  void settle(AdmissionRecord& record, Settled done);
  void renew(std::span<AdmissionRecord* const> records, Done done);
  void reset(std::string_view pattern, std::uint64_t cursor, ResetPage& page, Done done);
  void list(std::string_view pattern, std::uint64_t cursor, std::size_t page_size, BucketPage& page,
            Done done);

 private:
  struct Admission;
  struct Carried;

  [[nodiscard]] std::shared_ptr<Servers> make_servers(const RedisStore::MakeTopology& make,
                                                      Duration timeout);
  [[nodiscard]] net::Task<void> change_over(std::shared_ptr<Servers> next, std::uint64_t number);

  // When its buckets are where they belong.
  void ask_where_it_is(AdmissionRecord& record, bool look, Done done);
  void decided(Admission& admission);
  void answer_locally(Admission& admission, std::span<const std::size_t> undecided,
                      const std::string& why);
  static void leave_undecided(AdmissionRecord& record, std::span<const std::size_t> undecided,
                              const std::string& why);
  void give_back_charged(Admission& admission);
  static void forget_charges(AdmissionRecord& record);
  static void settle_carried(Change& change, bool maybe_charged);

  // By the bucket's lane, when the bucket is where it belongs.
  void change(Change change, Lane::ChangedDone done);
  // Sends a change whose answer nobody waits for; kept for later if it cannot be sent.
  void send(Change change);
  void keep(Change change);
  void send_kept();
  // Tells the servers what was counted here while they were away.
  void carry_back();
  void carry_page(std::uint64_t cursor);
  void carry(SpentBucket spent, std::move_only_function<void()> done);

  net::EventLoop& loop_;
  Shared& shared_;
  std::shared_ptr<Servers> servers_;
  bool stopped_ = false;
  std::uint64_t replacement_ = 0;  // the last that was begun
  std::uint64_t present_ = 0;      // the one whose servers are in use
  net::TaskGroup retiring_;
  std::deque<Change> kept_;
  std::size_t sending_kept_ = 0;
  bool carrying_ = false;
  bool kept_arrived_ = false;  // some of those that are being sent
};

}  // namespace stint::store
