// Group commit: what waits for one target, in as few calls as carry it.
#pragma once

#include <boost/container/deque.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/deadline.h"
#include "net/event_loop.h"
#include "redis/target.h"
#include "store/redis/change.h"
#include "store/redis/plan.h"
#include "store/redis/redis_store.h"
#include "store/redis/replay.h"
#include "store/redis/scripts.h"
#include "store/redis/server_clock.h"

namespace stint::store {

class Lane;

// What came of an admission, or of that part of it which the lane's target decides.
struct Decided {
  Answer::Fate fate = Answer::Fate::undecided;
  // Undecided: whether it is certain that nothing was charged, and why.
  bool uncharged = false;
  std::string why{};
  TimePoint now{};  // decided: the server's time of it
};

struct Changed {
  enum class Kind : std::uint8_t {
    done,
    not_run,  // certainly nothing was changed; here it is again
    unknown,  // may have been carried out
  };
  Kind kind = Kind::unknown;
  Change change{};  // of `not_run`
  std::string why{};
};

// What a lane has to tell about. All may be empty.
struct LaneHooks {
  const RedisTargetHooks* target = nullptr;          // never null; outlives the lane
  std::function<void(std::string_view)> on_fault{};  // what an operator should know
  std::function<void()> on_learned{};                // the clock has learned
  // Where a call about the bucket goes on after this error; null: nowhere. See Topology.
  std::function<Lane*(std::string_view bucket_key, const redis::CallError&)> redirected{};
};

struct LaneOptions {
  std::size_t calls_in_flight = 4;  // more admissions wait, and go together. 1 or more
  Duration timeout = std::chrono::milliseconds{50};  // from queueing to the answer
};

// Admissions and changes are sent at once while fewer than `calls_in_flight` calls are under way;
// beyond that they queue, and the next call takes what has queued, as far as a Plan takes it. An
// admission that has expired or is cancelled is dropped before it is sent.
// What certainly did not run goes on while it has time left: a call that came too late by a clock
// we had wrong, and those that a Cluster refuses while it moves their slot.
// Thread rule: the thread of its event loop.
class Lane {
 public:
  using DecidedDone = std::move_only_function<void(Decided)>;
  using ChangedDone = std::move_only_function<void(Changed)>;

  // How often an admission or a change is sent elsewhere.
  static constexpr unsigned kMostHops = 5;
  // Until what is refused with TRYAGAIN is sent again.
  static constexpr Duration kTryAgainAfter = std::chrono::milliseconds{5};

  // All must outlive it. `births`: what births of buckets were made of last, on this loop; not to
  // be guessed.
  Lane(net::EventLoop& loop, redis::Target& target, ServerClock& clock, const Scripts& scripts,
       std::string_view keys_begin, std::uint64_t& births, LaneOptions options, LaneHooks hooks);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // `done` is called exactly once, maybe before it returns, and at the latest soon after the
  // timeout. The record must lie still until then.
  void ask(AdmissionRecord& record, Plan::Buckets buckets, bool look, DecidedDone done);
  void change(Change change, ChangedDone done);

  [[nodiscard]] redis::Target& target() noexcept { return target_; }
  // Those that it was given.
  [[nodiscard]] const RedisTargetHooks& target_hooks() const noexcept { return *hooks_.target; }
  [[nodiscard]] const ServerClock& clock() const noexcept { return clock_; }
  // Whether nobody waits for an answer.
  [[nodiscard]] bool idle() const noexcept {
    return in_flight_ == 0 && asks_.empty() && changes_.empty();
  }

 private:
  struct Ask {
    AdmissionRecord* record = nullptr;
    Plan::Buckets buckets{};
    Duration deadline{0};
    DecidedDone done{};
    bool look = false;
    bool again = false;  // sent once before, and came too late by a clock we had wrong
    std::uint8_t hops = 0;
  };
  struct Doing {
    Change change{};
    Duration deadline{0};
    ChangedDone done{};
    bool again = false;
    std::uint8_t hops = 0;
  };
  struct Batch;
  // Allocates nothing as long as it is empty, as most are.
  template <class T>
  using Queue = boost::container::deque<T>;

  void pump();
  // Of both queues, as far as they stand in front.
  void drop_expired(Duration now);
  [[nodiscard]] std::string why_unsent() const;
  // Whether something was taken from the queues.
  bool send_next();
  [[nodiscard]] std::unique_ptr<Batch> take_batch();
  void send(std::unique_ptr<Batch> batch);
  void answered(Batch& batch, redis::CallResult result, Duration sent);
  void decided(Batch& batch, const Answer& answer);
  void came_too_late(Batch& batch);
  // Whether the error is one after which the batch goes on; it was taken then.
  [[nodiscard]] bool go_on(Batch& batch, const redis::CallError& error);
  void pause();
  [[nodiscard]] bool paused() const noexcept { return pause_ && pause_->armed(); }
  // Puts what has time left, and may go on, in front of the queues of `to`; the rest is answered.
  template <class MayGoOn>
  void send_again(Batch& batch, Lane& to, const std::string& why, MayGoOn may_go_on);
  void fail(Batch& batch, bool uncharged, const std::string& why);
  void fail_queued(const std::string& why);
  [[nodiscard]] std::int64_t new_birth() noexcept;

  net::EventLoop& loop_;
  redis::Target& target_;
  ServerClock& clock_;
  const Scripts& scripts_;
  const std::string_view keys_begin_;
  const LaneOptions options_;
  const LaneHooks hooks_;
  std::uint64_t& births_;
  Queue<Ask> asks_;
  Queue<Doing> changes_;
  std::size_t in_flight_ = 0;
  bool pumping_ = false;
  std::optional<net::Deadline> pause_;  // armed: nothing is sent meanwhile
  std::string refusal_;                 // why; empty: the last call was taken
};

}  // namespace stint::store
