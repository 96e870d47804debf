#include "redis/session.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>

#include "redis/command.h"

namespace stint::redis {
namespace {

// A batch that grew beyond it does not leave its memory to the next.
constexpr std::size_t kSpareBytes = std::size_t{64} * 1024;

CallError error_of(Fate fate, Reason reason, std::string text) {
  CallError error;
  error.fate = fate;
  error.reason = reason;
  error.text = std::move(text);
  return error;
}

}  // namespace

Session::Session(SessionOptions options) : options_(std::move(options)) {
  fault_.text = "not connected yet";
}

Session::~Session() { lost(Reason::stopped, "the session ended"); }

void Session::open(Duration now, Duration deadline) {
  reader_ = std::make_unique<ReplyReader>(options_.limits);
  state_ = State::handshaking;
  fault_ = error_of(Fate::not_run, Reason::unavailable, "not logged in yet");
  time_.reset();
  load_failed_ = nullptr;
  handshake_until_ = deadline;
  earliest_ = Duration::max();
  give_up_at_ = Duration::max();
  last_received_ = now;
  enqueue_handshake();
}

void Session::lost(Reason reason, const std::string& text) {
  if (alive()) {
    end(State::closed, error_of(Fate::not_run, reason, text));
  } else {
    state_ = State::closed;  // why it broke is worth more than that it was closed for it
  }
}

// First everything is put in order, then the calls are answered: their owners may come back at
// once.
void Session::end(State state, CallError why) {
  state_ = state;
  std::vector<std::pair<CallDone, Fate>> left;
  for (Entry& entry : line_) {
    if (entry.role != Role::call || entry.answered) continue;
    const Fate fate = entry.batch->sent_at ? Fate::unknown : Fate::not_run;
    left.emplace_back(std::move(entry.done), fate);
  }
  line_.clear();
  std::erase_if(batches_, [](const Batch& batch) { return !batch.writing; });
  for (Batch& batch : batches_) batch.commands = 0;
  fault_ = std::move(why);
  const CallError error = fault_;
  for (auto& [done, fate] : left) {
    CallError its = error;
    its.fate = fate;
    its.code.clear();
    answer(std::move(done), std::unexpected(std::move(its)));
  }
}

bool Session::refuse(Duration now, Duration deadline, CallDone& done) {
  if (state_ == State::ready && now < deadline) return false;
  const bool ready = state_ == State::ready;
  CallError error = error_of(Fate::not_run, ready ? Reason::timed_out : Reason::unavailable,
                             ready ? "no time left" : fault_.text);
  if (fault_.reason == Reason::stopped && !ready) error.reason = Reason::stopped;
  done(std::unexpected(std::move(error)));
  return true;
}

void Session::call(const Script& script, std::span<const std::string_view> keys,
                   std::span<const std::string_view> args, Duration now, Duration deadline,
                   CallDone done, Asking asking) {
  if (refuse(now, deadline, done)) return;
  Entry entry;
  entry.script = &script;
  entry.asking = asking == Asking::yes;
  entry.queued_at = now;
  entry.deadline = deadline;
  entry.done = std::move(done);
  enqueue(std::move(entry), [&](std::string& out) {
    constexpr std::string_view kAsking = "ASKING";
    if (asking == Asking::yes) append_command(out, {&kAsking, 1});
    append_evalsha(out, script.sha1(), keys, args);
  });
}

void Session::command(std::span<const std::string_view> words, Duration now, Duration deadline,
                      CallDone done) {
  if (refuse(now, deadline, done)) return;
  Entry entry;
  entry.queued_at = now;
  entry.deadline = deadline;
  entry.done = std::move(done);
  enqueue(std::move(entry), [&](std::string& out) { append_command(out, words); });
}

// The batch that is not sent yet is always the last.
Session::Batches::iterator Session::filling() {
  if (batches_.empty() || batches_.back().sent_at) {
    batches_.emplace_back();
    batches_.back().bytes = std::exchange(spare_, std::string());
  }
  return std::prev(batches_.end());
}

template <class Append>
void Session::enqueue(Entry entry, Append append) {
  const Batches::iterator batch = filling();
  entry.batch = batch;
  entry.offset = batch->bytes.size();
  append(batch->bytes);
  entry.size = batch->bytes.size() - entry.offset;
  ++batch->commands;
  if (entry.role == Role::call) {
    ++pending_;
    earliest_ = std::min(earliest_, entry.deadline);
  }
  line_.push_back(std::move(entry));
}

void Session::enqueue_words(Role role, std::initializer_list<std::string_view> words) {
  Entry entry;
  entry.role = role;
  const std::span<const std::string_view> all(words.begin(), words.size());
  enqueue(std::move(entry), [&](std::string& out) { append_command(out, all); });
}

void Session::enqueue_load(const Script& script) {
  enqueue_words(Role::load, {"SCRIPT", "LOAD", script.body()});
  line_.back().script = &script;
}

// Nobody waits for a reply in between: if the login is refused, so is what follows it.
void Session::enqueue_handshake() {
  if (!options_.username.empty()) {
    enqueue_words(Role::auth, {"AUTH", options_.username, options_.password});
  } else if (!options_.password.empty()) {
    enqueue_words(Role::auth, {"AUTH", options_.password});
  }
  if (!options_.client_name.empty()) {
    enqueue_words(Role::set_name, {"CLIENT", "SETNAME", options_.client_name});
  }
  if (options_.database != 0) {
    const std::string number = std::to_string(options_.database);
    enqueue_words(Role::select, {"SELECT", number});
  }
  options_.ask_time ? enqueue_words(Role::time, {"TIME"}) : enqueue_words(Role::ping, {"PING"});
  if (options_.must_be_master) enqueue_words(Role::role, {"ROLE"});
  for (const Script* script : options_.scripts) enqueue_load(*script);
}

void Session::leave(Batches::iterator batch) {
  --batch->commands;
  if (batch->commands > 0 || batch->writing || !batch->sent_at) return;
  if (batch->bytes.capacity() <= kSpareBytes) {
    spare_ = std::move(batch->bytes);
    spare_.clear();
  }
  batches_.erase(batch);
}

bool Session::has_output() const noexcept {
  return !batches_.empty() && !batches_.back().sent_at && !batches_.back().bytes.empty();
}

std::string_view Session::begin_write(Duration now) {
  if (!has_output()) return {};
  Batch& batch = batches_.back();
  batch.sent_at = now;
  batch.writing = true;
  return batch.bytes;
}

void Session::end_write() {
  const auto newest_first = std::views::reverse(batches_);  // it is one of the last
  const auto written = std::ranges::find(newest_first, true, &Batch::writing);
  if (written == newest_first.end()) return;
  written->writing = false;
  // Answered before the write was seen to end, or lost meanwhile.
  if (written->commands == 0) batches_.erase(std::next(written).base());
}

std::optional<Duration> Session::next_tick() const noexcept {
  if (state_ == State::handshaking) return handshake_until_;
  if (state_ != State::ready) return std::nullopt;
  const Duration next = std::min(earliest_, give_up_at_);
  return next == Duration::max() ? std::nullopt : std::optional(next);
}

void Session::tick(Duration now) {
  if (state_ == State::handshaking && now >= handshake_until_) {
    end(State::broken, error_of(Fate::not_run, Reason::timed_out, "the login took too long"));
    return;
  }
  if (state_ != State::ready) return;
  const bool give_up = now >= give_up_at_;
  if (now >= earliest_) answer_late(now);
  if (give_up && state_ == State::ready) {
    end(State::broken, error_of(Fate::not_run, Reason::lost, "nothing came for too long"));
  }
}

// Answers the calls whose deadline has passed.
void Session::answer_late(Duration now) {
  earliest_ = Duration::max();
  std::vector<CallDone> unanswered;
  for (Entry& entry : line_) {
    if (entry.role != Role::call || entry.answered) continue;
    if (entry.deadline > now) {
      earliest_ = std::min(earliest_, entry.deadline);
    } else if (entry.batch->sent_at) {
      // Its reply may still come: it keeps its place.
      entry.answered = true;
      unanswered.push_back(std::move(entry.done));
      const Duration quiet_since = std::max(*entry.batch->sent_at, last_received_);
      const Duration timeout = entry.deadline - entry.queued_at;
      // Not before replies could be read that came while it was this side that stood still.
      const Duration give_up_at = std::max(quiet_since + timeout * kPatience, now + timeout);
      give_up_at_ = std::min(give_up_at_, give_up_at);
    }
  }
  std::vector<CallDone> dropped;
  drop_unsent(now, dropped);
  for (CallDone& done : unanswered) {
    answer(std::move(done),
           std::unexpected(error_of(Fate::unknown, Reason::timed_out, "no reply in time")));
  }
  for (CallDone& done : dropped) {
    answer(std::move(done),
           std::unexpected(error_of(Fate::not_run, Reason::timed_out, "not sent in time")));
  }
}

// Takes calls that are too late out of what is yet to be sent, so that they never run.
void Session::drop_unsent(Duration now, std::vector<CallDone>& dropped) {
  if (!has_output()) return;
  const Batches::iterator batch = filling();
  const auto too_late = [&](const Entry& entry) {
    return entry.batch == batch && entry.role == Role::call && entry.deadline <= now;
  };
  if (std::ranges::none_of(line_, too_late)) return;
  const std::string all = std::move(batch->bytes);
  batch->bytes.clear();
  for (Entry& entry : line_) {
    if (entry.batch != batch) continue;
    if (too_late(entry)) {
      dropped.push_back(std::move(entry.done));
      --batch->commands;
    } else {
      const std::size_t offset = std::exchange(entry.offset, batch->bytes.size());
      batch->bytes.append(all, offset, entry.size);
    }
  }
  std::erase_if(line_, too_late);
}

}  // namespace stint::redis
