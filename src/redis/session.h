// One connection to a Redis server, without its socket, its timers and its clock: told what
// happened, it answers calls and says what to do next.
//
//   open, then again and again:  has_output -> begin_write, end_write
//                                received, tick (at next_tick), lost
//                                state, to see what came of it
//
// RESP has no names for calls: the n-th reply is that of the n-th command. So each command keeps
// its place in line until its reply is there, also one that nobody waits for any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "redis/call.h"
#include "redis/reply.h"
#include "redis/script.h"
#include "stint/time.h"

namespace stint::redis {

struct SessionOptions {
  std::string username{};  // with or without, a password logs in
  std::string password{};
  std::string client_name{};  // empty: none
  std::uint32_t database = 0;
  // Ask for its clock at the login. A Sentinel has no such command: PING takes its place.
  bool ask_time = true;
  bool must_be_master = false;           // the login fails if ROLE says otherwise
  std::vector<const Script*> scripts{};  // loaded by the handshake; must outlive the session
  ReplyReader::Limits limits{};
  // Of every call, when it is answered, before its `done`; may be empty.
  std::function<void(const CallResult&)> on_result{};
  // What somebody must mend, as the server said it; may be empty.
  std::function<void(const std::string& text)> on_configuration{};
};

// Every call is answered exactly once. `now` and deadlines are steady time, and `now` never steps
// back. Callbacks may make calls and tell it that the connection is lost; they must not destroy
// the session, open it, nor throw.
// Thread rule: one thread.
class Session {
 public:
  enum class State : std::uint8_t {
    closed,       // no connection, and no reason why not to open one
    handshaking,  // calls are not taken yet
    ready,
    broken,  // the connection is of no use any more: close it. `fault` says why
  };

  explicit Session(SessionOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // A connection is there; until `deadline` the handshake must be done. Not while a write is under
  // way, nor while it is handshaking or ready.
  void open(Duration now, Duration deadline);
  // The connection is gone, or will not be used any more. All calls are answered with `reason`.
  void lost(Reason reason, const std::string& text);

  [[nodiscard]] State state() const noexcept { return state_; }
  // Of `broken`, and of `closed` after `lost`.
  [[nodiscard]] const CallError& fault() const noexcept { return fault_; }

  // `yes`: ASKING goes in front, so that a node of a Cluster takes a call about a slot that it is
  // being given.
  enum class Asking : bool { no, yes };
  // Answered at once if not `ready`, or when the deadline has passed.
  void call(const Script& script, std::span<const std::string_view> keys,
            std::span<const std::string_view> args, Duration now, Duration deadline, CallDone done,
            Asking asking = Asking::no);
  void command(std::span<const std::string_view> words, Duration now, Duration deadline,
               CallDone done);
  // Calls that wait for their answer.
  [[nodiscard]] std::size_t pending() const noexcept { return pending_; }

  [[nodiscard]] bool has_output() const noexcept;
  // All there is to send, which counts as sent from now on. Valid until end_write, whatever else
  // happens; until then no other write begins.
  [[nodiscard]] std::string_view begin_write(Duration now);
  void end_write();

  void received(std::string_view bytes, Duration now);

  // When `tick` has something to do; nothing while no time-out is under way. May be too early.
  [[nodiscard]] std::optional<Duration> next_tick() const noexcept;
  // Answers calls whose deadline has passed. Breaks a connection that seems to be dead: one on
  // which a call has timed out, and nothing has arrived for kPatience times its time-out.
  void tick(Duration now);
  static constexpr int kPatience = 4;

  // Of the last handshake: the server's clock, read between two instants.
  struct ServerTime {
    TimePoint store_time{};
    Duration sent_at{};
    Duration received_at{};
  };
  [[nodiscard]] const std::optional<ServerTime>& server_time() const noexcept { return time_; }

  // How often one call is sent again after NOSCRIPT. More than once only if somebody flushes the
  // scripts at just that moment.
  static constexpr unsigned kMostRepairs = 8;

 private:
  // The bytes of one write. Kept until all of its commands are answered: they may have to be sent
  // again.
  struct Batch {
    std::string bytes{};
    std::size_t commands = 0;           // that are not answered yet
    std::optional<Duration> sent_at{};  // nothing: it is being filled
    bool writing = false;
  };
  using Batches = std::list<Batch>;
  enum class Role : std::uint8_t { call, auth, set_name, select, time, load, ping, role };
  // A command in line for its reply.
  struct Entry {
    Role role = Role::call;
    bool answered = false;  // a call: nobody waits any more
    bool asking = false;    // a call: its bytes begin with ASKING, which has a reply of its own
    bool asked = false;     // and that reply is there
    std::uint8_t repairs = 0;
    const Script* script = nullptr;  // of a script call, and of `load`
    Batches::iterator batch{};
    std::size_t offset = 0;  // of its bytes in the batch
    std::size_t size = 0;
    Duration queued_at{};
    Duration deadline{};
    CallDone done{};
  };

  [[nodiscard]] bool alive() const noexcept {
    return state_ == State::handshaking || state_ == State::ready;
  }
  void end(State state, CallError why);

  [[nodiscard]] bool refuse(Duration now, Duration deadline, CallDone& done);
  [[nodiscard]] Batches::iterator filling();
  template <class Append>
  void enqueue(Entry entry, Append append);
  void enqueue_words(Role role, std::initializer_list<std::string_view> words);
  void enqueue_load(const Script& script);
  void enqueue_handshake();
  void leave(Batches::iterator batch);
  void answer_late(Duration now);
  void drop_unsent(Duration now, std::vector<CallDone>& dropped);

  void on_reply(Entry entry, Reply reply, Duration now);
  void on_handshake_reply(const Entry& entry, const Reply& reply, Duration sent_at, Duration now);
  void on_load_reply(const Entry& entry, const Reply& reply);
  void on_call_reply(Entry entry, Reply reply, Duration now);
  [[nodiscard]] bool repair(Entry& entry, CallError& error, Duration now);
  void answer(CallDone done, CallResult result);
  void report(const CallError& error) const;

  SessionOptions options_;
  State state_ = State::closed;
  CallError fault_{};
  std::unique_ptr<ReplyReader> reader_;
  Batches batches_;
  std::deque<Entry> line_;  // in the order of their bytes, which is that of their replies
  std::string spare_;       // memory of a batch that is done
  std::size_t pending_ = 0;
  std::optional<ServerTime> time_;
  const Script* load_failed_ = nullptr;  // of the last SCRIPT LOAD, if it was refused
  CallError load_failure_{};
  Duration handshake_until_{};
  Duration earliest_ = Duration::max();  // no deadline in line is before it
  Duration last_received_{};
  Duration give_up_at_ = Duration::max();
};

}  // namespace stint::redis
