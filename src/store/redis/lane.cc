#include "store/redis/lane.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace stint::store {
namespace {

constexpr std::uint64_t kBirthBits = (std::uint64_t{1} << 52) - 1;

template <class Queue>
void put_in_front(Queue& queue, Queue& entries) {
  for (; !entries.empty(); entries.pop_back()) queue.push_front(std::move(entries.back()));
}

}  // namespace

struct Lane::Batch {
  explicit Batch(std::string_view keys_begin) : plan(keys_begin) {}
  Plan plan;
  std::vector<Ask> asks;
  Queue<Doing> changes;  // the plan points into it
  Duration deadline = Duration::max();
};

Lane::Lane(net::EventLoop& loop, redis::Target& target, ServerClock& clock, const Scripts& scripts,
           std::string_view keys_begin, std::uint64_t& births, LaneOptions options, LaneHooks hooks)
    : loop_(loop),
      target_(target),
      clock_(clock),
      scripts_(scripts),
      keys_begin_(keys_begin),
      options_(options),
      hooks_(std::move(hooks)),
      births_(births) {}

Lane::~Lane() = default;

void Lane::ask(AdmissionRecord& record, Plan::Buckets buckets, bool look, DecidedDone done) {
  Ask ask;
  ask.record = &record;
  ask.buckets = std::move(buckets);
  ask.deadline = loop_.now() + options_.timeout;
  ask.done = std::move(done);
  ask.look = look;
  asks_.push_back(std::move(ask));
  pump();
}

void Lane::change(Change change, ChangedDone done) {
  Doing doing;
  doing.change = std::move(change);
  doing.deadline = loop_.now() + options_.timeout;
  doing.done = std::move(done);
  changes_.push_back(std::move(doing));
  pump();
}

void Lane::pump() {
  // Answers may come before a call returns, and those who get them may ask again.
  if (pumping_) return;
  pumping_ = true;
  while (!paused() && in_flight_ < options_.calls_in_flight && send_next()) {
  }
  pumping_ = false;
}

bool Lane::send_next() {
  if (!target_.available()) {
    if (asks_.empty() && changes_.empty()) return false;
    fail_queued(std::string(target_.name()) + " cannot be reached");
    return true;
  }
  std::unique_ptr<Batch> batch = take_batch();
  // Those who were told that theirs was dropped may have come back.
  if (batch->plan.empty()) return !asks_.empty() || !changes_.empty();
  send(std::move(batch));
  return true;
}

void Lane::drop_expired(Duration now) {
  const auto gone = [&](const Ask& ask) {
    return ask.deadline <= now ||
           (ask.record->cancelled != nullptr && ask.record->cancelled->load());
  };
  while (!asks_.empty() && gone(asks_.front())) {
    Ask ask = std::move(asks_.front());
    asks_.pop_front();
    ask.done({Answer::Fate::undecided, true, why_unsent()});
  }
  while (!changes_.empty() && changes_.front().deadline <= now) {
    Doing doing = std::move(changes_.front());
    changes_.pop_front();
    doing.done({Changed::Kind::not_run, std::move(doing.change), why_unsent()});
  }
}

std::string Lane::why_unsent() const {
  if (refusal_.empty()) return "waited too long to be sent";
  return std::string(target_.name()) + ": " + refusal_;
}

std::unique_ptr<Lane::Batch> Lane::take_batch() {
  auto batch = std::make_unique<Batch>(keys_begin_);
  const Duration now = loop_.now();
  drop_expired(now);
  while (!changes_.empty()) {
    batch->changes.push_back(std::move(changes_.front()));
    if (!batch->plan.add(batch->changes.back().change)) {
      changes_.front() = std::move(batch->changes.back());
      batch->changes.pop_back();
      break;
    }
    changes_.pop_front();
    batch->deadline = std::min(batch->deadline, batch->changes.back().deadline);
  }
  while (!asks_.empty()) {
    Ask& ask = asks_.front();
    if (!batch->plan.add(*ask.record, ask.buckets, ask.look)) break;
    batch->deadline = std::min(batch->deadline, ask.deadline);
    batch->asks.push_back(std::move(ask));
    asks_.pop_front();
    drop_expired(now);
  }
  return batch;
}

void Lane::send(std::unique_ptr<Batch> batch) {
  const Duration sent = loop_.now();
  batch->plan.finish(clock_.at(batch->deadline), new_birth());
  ++in_flight_;
  const std::array args = {batch->plan.text()};
  const Batch& sending = *batch;
  const std::span<const std::string_view> keys = sending.plan.keys();
  const Duration deadline = sending.deadline;
  target_.call(scripts_.decide, keys, args, deadline,
               [this, batch = std::move(batch), sent](redis::CallResult result) {
                 --in_flight_;
                 answered(*batch, std::move(result), sent);
                 pump();
               });
}

void Lane::answered(Batch& batch, redis::CallResult result, Duration sent) {
  if (!result) {
    if (go_on(batch, result.error())) return;
    const bool uncharged = result.error().fate == redis::Fate::not_run;
    return fail(batch, uncharged, std::string(target_.name()) + ": " + result.error().text);
  }
  refusal_.clear();
  const Duration received = loop_.now();
  if (hooks_.target->on_latency) hooks_.target->on_latency(received - sent);
  const Answer answer = replay(batch.plan, *result);
  if (answer.kind != Answer::Kind::unusable) {
    clock_.learn(answer.now, sent, received);
    if (hooks_.on_learned) hooks_.on_learned();
  }
  if (answer.disagreements > 0 && hooks_.on_fault) {
    hooks_.on_fault("the steps of the script and those of the program disagree");
  }
  switch (answer.kind) {
    case Answer::Kind::decided:
      return decided(batch, answer);
    case Answer::Kind::late:
      return came_too_late(batch);
    case Answer::Kind::unusable:
      if (hooks_.on_fault) hooks_.on_fault(answer.why);
      return fail(batch, false, answer.why);
  }
}

void Lane::decided(Batch& batch, const Answer& answer) {
  if (answer.fault && hooks_.on_fault) {
    hooks_.on_fault("a bucket's key cannot be read: " + answer.why);
  }
  for (std::size_t i = 0; i < batch.changes.size(); ++i) {
    Doing& doing = batch.changes[i];
    switch (answer.changes[i]) {
      case Answer::Change::done:
        doing.done({Changed::Kind::done, {}, {}});
        break;
      case Answer::Change::unreadable:
        doing.done({Changed::Kind::unknown, {}, "the bucket's key cannot be read"});
        break;
      case Answer::Change::moved:
        doing.done(
            {Changed::Kind::not_run, std::move(doing.change), "another server has the bucket now"});
        break;
    }
  }
  for (std::size_t i = 0; i < batch.asks.size(); ++i) {
    Decided decided{answer.admissions[i], true, {}, answer.now};
    if (decided.fate == Answer::Fate::undecided) decided.why = answer.why;
    batch.asks[i].done(std::move(decided));
  }
}

// The server's time was later than we took it for, or the call was long on its way: nothing has
// run. What has time left is sent once more, by the time that is known now.
void Lane::came_too_late(Batch& batch) {
  send_again(batch, *this, "the call came too late",
             [](auto& entry) { return !std::exchange(entry.again, true); });
}

bool Lane::go_on(Batch& batch, const redis::CallError& error) {
  // Some of the bucket's keys are on their way, which may take as long as the whole slot.
  if (error.code == "TRYAGAIN") {
    refusal_ = error.text;
    pause();
    // What would come too late is certain now, and would not be if it was sent.
    const Duration last = loop_.now() + 2 * kTryAgainAfter;
    send_again(batch, *this, error.text,
               [last](const auto& entry) { return entry.deadline > last; });
    return true;
  }
  if ((error.code != "MOVED" && error.code != "ASK") || !hooks_.redirected) return false;
  const std::string_view key =
      batch.asks.empty() ? std::string_view(batch.changes.front().change.key)
                         : batch.asks.front().record->buckets[batch.asks.front().buckets[0]].key;
  Lane* const to = hooks_.redirected(key, error);
  if (to == nullptr) return false;
  send_again(batch, *to, error.text, [](auto& entry) { return ++entry.hops <= kMostHops; });
  to->pump();
  return true;
}

void Lane::pause() {
  if (!pause_) pause_.emplace(loop_.deadlines(), [this] { pump(); });
  pause_->arm(loop_.now() + kTryAgainAfter);
}

template <class MayGoOn>
void Lane::send_again(Batch& batch, Lane& to, const std::string& error, MayGoOn may_go_on) {
  const Duration now = loop_.now();
  Queue<Doing> changes;
  Queue<Ask> asks;
  Queue<Doing> changes_over;
  std::vector<Ask> asks_over;
  for (Doing& doing : batch.changes) {
    const bool more = doing.deadline > now && may_go_on(doing);
    (more ? changes : changes_over).push_back(std::move(doing));
  }
  for (Ask& ask : batch.asks) {
    const bool more = ask.deadline > now && may_go_on(ask);
    more ? asks.push_back(std::move(ask)) : asks_over.push_back(std::move(ask));
  }
  put_in_front(to.changes_, changes);
  put_in_front(to.asks_, asks);
  // Last, for those who are told may come back at once.
  const std::string why = std::string(target_.name()) + ": " + error;
  for (Doing& doing : changes_over) {
    doing.done({Changed::Kind::not_run, std::move(doing.change), why});
  }
  for (Ask& ask : asks_over) ask.done({Answer::Fate::undecided, true, why});
}

void Lane::fail(Batch& batch, bool uncharged, const std::string& why) {
  const auto charging = static_cast<std::size_t>(
      std::ranges::count_if(batch.asks, [](const Ask& ask) { return !ask.look; }));
  const auto& on_unknown = hooks_.target->on_unknown_charges;
  if (!uncharged && charging > 0 && on_unknown) on_unknown(charging);
  for (Doing& doing : batch.changes) {
    if (uncharged) {
      doing.done({Changed::Kind::not_run, std::move(doing.change), why});
    } else {
      doing.done({Changed::Kind::unknown, {}, why});
    }
  }
  for (Ask& ask : batch.asks) ask.done({Answer::Fate::undecided, uncharged, why});
}

void Lane::fail_queued(const std::string& why) {
  Batch batch(keys_begin_);
  batch.changes.swap(changes_);
  for (Ask& ask : asks_) batch.asks.push_back(std::move(ask));
  asks_.clear();
  fail(batch, true, why);
}

std::int64_t Lane::new_birth() noexcept {
  births_ += Plan::kMaxBuckets + 1;
  // Odd multiples keep the numbers apart by more than a plan uses; not 0, which is "any".
  return static_cast<std::int64_t>((births_ & kBirthBits) | 1U);
}

}  // namespace stint::store
