// What replies do to a session.
#include <algorithm>
#include <chrono>
#include <utility>

#include "redis/session.h"

namespace stint::redis {
namespace {

const char* command_of(std::uint8_t role) noexcept {
  constexpr const char* kNames[] = {"call", "AUTH",        "CLIENT SETNAME", "SELECT",
                                    "TIME", "SCRIPT LOAD", "PING",           "ROLE"};
  return kNames[role];
}

CallError protocol_error(std::string text) {
  CallError error;
  error.fate = Fate::unknown;
  error.reason = Reason::protocol;
  error.text = std::move(text);
  return error;
}

// The reply to TIME: seconds and microseconds, both as text.
std::optional<TimePoint> time_of(const Reply& reply) {
  const auto seconds = reply[0].number();
  const auto micros = reply[1].number();
  constexpr std::int64_t kMostSeconds = 100'000'000'000;  // so that no sum overflows
  const bool good = reply.size() == 2 && seconds && micros && *seconds >= 0 &&
                    *seconds < kMostSeconds && *micros >= 0 && *micros < 1'000'000;
  if (!good) return std::nullopt;
  return TimePoint(std::chrono::seconds(*seconds) + Duration(*micros));
}

}  // namespace

void Session::received(std::string_view bytes, Duration now) {
  if (!alive()) return;
  last_received_ = now;
  give_up_at_ = Duration::max();
  reader_->feed(bytes);
  while (alive()) {
    auto reply = reader_->next();
    if (!reply) {
      end(State::broken, protocol_error(std::move(reply.error())));
      return;
    }
    if (!*reply) return;
    if (line_.empty() || !line_.front().batch->sent_at) {
      end(State::broken, protocol_error("a reply that nobody asked for"));
      return;
    }
    if (line_.front().asking && !line_.front().asked) {
      line_.front().asked = true;  // if it was refused, so is what follows
      continue;
    }
    Entry entry = std::move(line_.front());
    line_.pop_front();
    on_reply(std::move(entry), std::move(**reply), now);
  }
}

void Session::on_reply(Entry entry, Reply reply, Duration now) {
  if (entry.role == Role::call) {
    on_call_reply(std::move(entry), std::move(reply), now);
    return;
  }
  const Duration sent_at = *entry.batch->sent_at;
  leave(entry.batch);
  if (state_ == State::handshaking) {
    on_handshake_reply(entry, reply, sent_at, now);
  } else {
    on_load_reply(entry, reply);
  }
}

void Session::on_handshake_reply(const Entry& entry, const Reply& reply, Duration sent_at,
                                 Duration now) {
  if (reply.is(Value::Kind::error)) {
    CallError error = classify(reply.text());
    error.text = std::string(command_of(std::to_underlying(entry.role))) + ": " + error.text;
    // A name is only for those who look: one may do without.
    const bool fatal = entry.role != Role::set_name;
    const CallError told = error;
    if (fatal) end(State::broken, std::move(error));
    report(told);
    if (fatal) return;
  } else if (entry.role == Role::time) {
    const auto store_time = time_of(reply);
    if (!store_time) {
      end(State::broken, protocol_error("TIME: an answer that is no time"));
      return;
    }
    time_ = ServerTime{*store_time, sent_at, now};
  } else if (entry.role == Role::role && reply[0].text() != "master") {
    CallError error;
    error.reason = Reason::rejected;
    error.text = "ROLE: it is no master, but a " + std::string(reply[0].text());
    end(State::broken, std::move(error));
    return;
  }
  if (alive() && line_.empty()) state_ = State::ready;
}

void Session::on_load_reply(const Entry& entry, const Reply& reply) {
  load_failed_ = nullptr;
  if (!reply.is(Value::Kind::error)) return;
  CallError error = classify(reply.text());
  error.text = "SCRIPT LOAD of " + entry.script->name() + ": " + error.text;
  load_failed_ = entry.script;
  load_failure_ = std::move(error);
}

void Session::on_call_reply(Entry entry, Reply reply, Duration now) {
  const bool failed = reply.is(Value::Kind::error);
  if (entry.answered || !failed) {
    leave(entry.batch);
    if (!entry.answered) answer(std::move(entry.done), std::move(reply));
    return;
  }
  CallError error = classify(reply.text());
  if (error.code == "NOSCRIPT" && entry.script != nullptr) {
    if (repair(entry, error, now)) return;
    error.fate = Fate::not_run;
  }
  leave(entry.batch);
  answer(std::move(entry.done), std::unexpected(std::move(error)));
}

// The server does not know the script (it was restarted, or its scripts were flushed), so nothing
// has run. Teaches it and sends the call again, behind what is in line already; false if that was
// tried often enough.
bool Session::repair(Entry& entry, CallError& error, Duration now) {
  const Script* const script = entry.script;
  if (entry.repairs > 0 && load_failed_ == script) {
    error = load_failure_;
    return false;
  }
  if (entry.repairs >= kMostRepairs || now >= entry.deadline) return false;
  ++entry.repairs;
  // Calls that were in line together all come here; one load is enough for those behind it.
  const auto teaches = [script](const Entry& other) {
    return other.role == Role::load && other.script == script;
  };
  if (std::ranges::none_of(line_, teaches)) enqueue_load(*script);

  const Batches::iterator to = filling();
  const std::size_t offset = to->bytes.size();
  to->bytes.append(entry.batch->bytes, entry.offset, entry.size);
  ++to->commands;
  leave(entry.batch);
  entry.batch = to;
  entry.offset = offset;
  entry.asked = false;
  line_.push_back(std::move(entry));
  return true;
}

void Session::answer(CallDone done, CallResult result) {
  --pending_;
  if (pending_ == 0) earliest_ = Duration::max();
  if (!result) report(result.error());
  if (options_.on_result) options_.on_result(result);
  done(std::move(result));
}

void Session::report(const CallError& error) const {
  if (error.reason == Reason::configuration && options_.on_configuration) {
    options_.on_configuration(error.text);
  }
}

}  // namespace stint::redis
