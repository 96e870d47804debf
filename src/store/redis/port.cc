#include "store/redis/port.h"

#include <algorithm>
#include <utility>

namespace stint::store {
namespace {

// Settlements that wait for a server that is away. Beyond it what was charged stands.
constexpr std::size_t kMostKept = 100'000;
// Of those, and of buckets that are carried back, so many at a time: no more than a call or two
// takes, or the last of them would wait for longer than a call may.
constexpr std::size_t kKeptAtOnce = 64;
constexpr std::size_t kCarriedAtOnce = 64;
// How long new servers have to connect before they are used as they are, and the answers of the
// old ones to arrive.
constexpr Duration kConnectPatience = std::chrono::seconds{1};
constexpr Duration kLastAnswers = std::chrono::seconds{2};
constexpr Duration kConnectLook = std::chrono::milliseconds{5};

Error unavailable(const std::string& why) {
  return Error{ErrorCode::unavailable, "", why.empty() ? "the store cannot be reached" : why};
}

Outcome outcome_of(Answer::Fate fate) noexcept {
  switch (fate) {
    case Answer::Fate::admitted:
      return Outcome::admitted;
    case Answer::Fate::refused:
      return Outcome::refused;
    case Answer::Fate::undecided:
      return Outcome::undecided;
  }
  std::unreachable();
}

// Counts answers of several calls down to one.
class Join {
 public:
  explicit Join(Settled done) : done_(std::move(done)) {}
  void expect() noexcept { ++pending_; }
  void arrived(Changed::Kind kind, const std::string& why) {
    if (kind != Changed::Kind::done && result_) result_ = std::unexpected(unavailable(why));
    if (--pending_ == 0) done_(std::move(result_));
  }

 private:
  Settled done_;
  Result<void> result_;
  std::size_t pending_ = 1;  // whoever hands out the calls is one itself
};

}  // namespace

// An admission on its way, asked in one part for each target.
struct Port::Admission {
  struct Part {
    Plan::Buckets buckets;
    Lane* lane = nullptr;  // until it was asked: lanes may go when the loop goes on
    redis::Target* target = nullptr;
    const RedisTargetHooks* hooks = nullptr;
    const ServerClock* clock = nullptr;
    Decided decided;
  };
  AdmissionRecord* record = nullptr;
  bool look = false;
  Done done;
  boost::container::small_vector<Part, 1> parts;
  std::size_t pending = 0;
};

Port::Port(net::EventLoop& loop, Shared& shared, const RedisStore::MakeTopology& make)
    : loop_(loop), shared_(shared), retiring_(loop) {
  servers_ = make_servers(make, shared.options.timeout);
  servers_->enter();
}

Port::~Port() = default;

std::shared_ptr<Servers> Port::make_servers(const RedisStore::MakeTopology& make,
                                            Duration timeout) {
  return std::make_shared<Servers>(loop_, shared_, make, timeout, [this] {
    carry_back();
    send_kept();
  });
}

void Port::start() { servers_->start(); }

net::Task<void> Port::stop() {
  stopped_ = true;
  co_await retiring_.join();
  const std::shared_ptr<Servers> last = servers_;
  co_await last->stop();
}

void Port::replace(const RedisStore::MakeTopology& make, Duration timeout) {
  if (stopped_) return;
  retiring_.start(change_over(make_servers(make, timeout), ++replacement_));
}

// Goes on with the old servers until the new ones are connected, or cannot be for a while.
net::Task<void> Port::change_over(std::shared_ptr<Servers> next, std::uint64_t number) {
  next->start();
  const Duration patience = loop_.now() + kConnectPatience;
  while (!next->all_available() && loop_.now() < patience && !stopped_) {
    co_await loop_.wait_for(kConnectLook);
  }
  // Whoever was told of later servers in the meantime goes on with those.
  if (number > present_ && !stopped_) {
    present_ = number;
    next.swap(servers_);
    servers_->enter();
    next->leave();
    carry_back();
    send_kept();
  }
  const Duration leave = loop_.now() + kLastAnswers;
  while (!next->idle() && loop_.now() < leave && !stopped_) {
    co_await loop_.wait_for(kConnectLook);
  }
  co_await next->stop();
}

void Port::ask(AdmissionRecord& record, bool look, Done done) {
  if (record.buckets.empty()) {
    record.outcome = Outcome::admitted;
    record.now = shared_.now();
    return done();
  }
  std::shared_ptr<Join> join;
  for (const BucketSlot& bucket : record.buckets) {
    if (!servers_->mover().needed(bucket.key)) continue;
    if (join == nullptr) {
      join = std::make_shared<Join>(
          [this, &record, look, done = std::move(done)](const Result<void>&) mutable {
            ask_where_it_is(record, look, std::move(done));
          });
    }
    join->expect();
    servers_->mover().bring(bucket.key, [join] { join->arrived(Changed::Kind::done, ""); });
  }
  if (join == nullptr) return ask_where_it_is(record, look, std::move(done));
  join->arrived(Changed::Kind::done, "");
}

void Port::ask_where_it_is(AdmissionRecord& record, bool look, Done done) {
  auto admission = std::make_shared<Admission>();
  admission->record = &record;
  admission->look = look;
  admission->done = std::move(done);
  for (std::size_t i = 0; i < record.buckets.size(); ++i) {
    Lane& of = servers_->lane(record.buckets[i].key);
    auto part = std::ranges::find(admission->parts, &of, &Admission::Part::lane);
    if (part == admission->parts.end()) {
      part = admission->parts.insert(
          part, Admission::Part{{}, &of, &of.target(), &of.target_hooks(), &of.clock(), {}});
    }
    part->buckets.push_back(static_cast<std::uint16_t>(i));
    if (part->hooks->on_bucket && !look) part->hooks->on_bucket(record.buckets[i].key);
  }
  admission->pending = admission->parts.size();
  for (std::size_t i = 0; i < admission->parts.size(); ++i) {
    Admission::Part& part = admission->parts[i];
    part.lane->ask(record, part.buckets, look, [this, admission, i](Decided answer) {
      admission->parts[i].decided = std::move(answer);
      if (--admission->pending == 0) decided(*admission);
    });
  }
}

void Port::decided(Admission& admission) {
  AdmissionRecord& record = *admission.record;
  boost::container::small_vector<std::size_t, 4> undecided;
  std::string why;
  bool refused = false;
  const Duration now = loop_.now();
  const bool cancelled = record.cancelled != nullptr && record.cancelled->load();
  for (const Admission::Part& part : admission.parts) {
    const bool known = part.decided.fate != Answer::Fate::undecided;
    refused = refused || part.decided.fate == Answer::Fate::refused;
    if (part.hooks->on_decided && !admission.look) {
      part.hooks->on_decided(outcome_of(part.decided.fate));
    }
    for (const std::size_t i : part.buckets) {
      record.buckets[i].maybe_charged = !known && !part.decided.uncharged;
      if (!known) {
        undecided.push_back(i);
      } else if (!admission.look) {
        shared_.heard.note(record.buckets[i], record.slots_of(record.buckets[i]), part.decided.now,
                           now);
      }
    }
    if (!known && why.empty()) {
      why = part.decided.why;
      if (cancelled) continue;
      shared_.warn("outage " + std::string(part.target->name()),
                   "counting by the outage rule: " + why + shared_.why_away(part.target->name()));
    }
  }
  if (!undecided.empty() && cancelled) {
    leave_undecided(record, undecided, why);
  } else if (!undecided.empty()) {
    answer_locally(admission, undecided, why);
  } else {
    record.outcome = refused ? Outcome::refused : Outcome::admitted;
  }
  if (admission.look) {
    forget_charges(record);
  } else if (record.outcome != Outcome::admitted) {
    give_back_charged(admission);
  }
  Done done = std::move(admission.done);
  done();
}

void Port::answer_locally(Admission& admission, std::span<const std::size_t> undecided,
                          const std::string& why) {
  AdmissionRecord& record = *admission.record;
  // By the clock of the server that does not answer: those of others may be somewhere else.
  const auto silent = std::ranges::find(admission.parts, Answer::Fate::undecided,
                                        [](const auto& part) { return part.decided.fate; });
  const TimePoint now = silent->clock->known() ? silent->clock->at(loop_.now()) : shared_.now();
  const std::int64_t replicas = shared_.replicas();
  if (admission.look) {
    shared_.local.peek(record, undecided, now, replicas, shared_.heard);
  } else {
    shared_.local.decide(record, undecided, now, replicas, shared_.heard);
  }
  if (record.outcome == Outcome::undecided) record.error = unavailable(why);
}

// Nobody waits for the answer, so that nobody would settle what was counted here.
void Port::leave_undecided(AdmissionRecord& record, std::span<const std::size_t> undecided,
                           const std::string& why) {
  record.outcome = Outcome::undecided;
  record.error = unavailable(why);
  for (const std::size_t i : undecided) {
    record.buckets[i].charged = false;
    record.buckets[i].local = 0;
  }
}

// Some of the targets admitted and charged, and others did not. Where it is not known whether a
// target charged, nothing is given back.
void Port::give_back_charged(Admission& admission) {
  AdmissionRecord& record = *admission.record;
  for (const Admission::Part& part : admission.parts) {
    if (part.decided.fate != Answer::Fate::admitted) continue;
    for (const std::size_t i : part.buckets) {
      BucketSlot& bucket = record.buckets[i];
      if (!bucket.charged) continue;
      for (LimitSlot& slot : record.slots_of(bucket)) slot.actual = 0;
      if (auto change = settlement(record, bucket)) send(std::move(*change));
      const auto slots = record.slots_of(bucket);
      for (std::size_t k = 0; k < slots.size(); ++k) {
        const std::int64_t most = (*bucket.limits)[k].capacity;
        slots[k].remaining = std::min(slots[k].remaining + slots[k].charged.amount, most);
        slots[k].charged = {};
      }
      bucket.charged = false;
    }
  }
}

// What was only looked at shows what it would be: with what was asked for if all of it was
// admitted, and without if one target refused.
void Port::forget_charges(AdmissionRecord& record) {
  for (BucketSlot& bucket : record.buckets) {
    if (bucket.local != 0) continue;
    const auto slots = record.slots_of(bucket);
    for (std::size_t k = 0; k < slots.size(); ++k) {
      if (record.outcome != Outcome::admitted) {
        const std::int64_t most = (*bucket.limits)[k].capacity;
        slots[k].remaining = std::min(slots[k].remaining + slots[k].charged.amount, most);
      }
      slots[k].charged = {};
    }
  }
}

// What was charged here was carried to the store by now, to whatever bucket is there; of what may
// have been charged there all along nothing is given back.
void Port::settle_carried(Change& change, bool maybe_charged) {
  change.birth = 0;
  const auto dropped = std::ranges::remove_if(change.steps, [&](const Change::Step& step) {
    if (step.action != Action::give_back) return false;
    return maybe_charged || step.limit.algorithm == Algorithm::token_bucket;
  });
  change.steps.erase(dropped.begin(), dropped.end());
}

void Port::settle(AdmissionRecord& record, Settled done) {
  auto join = std::make_shared<Join>(std::move(done));
  for (std::size_t i = 0; i < record.buckets.size(); ++i) {
    BucketSlot& bucket = record.buckets[i];
    if (!bucket.charged) continue;
    if (bucket.local != 0 && shared_.local.settle(record, i, shared_.now())) continue;
    auto change = settlement(record, bucket);
    if (!change) continue;
    if (bucket.local != 0) {
      settle_carried(*change, bucket.maybe_charged);
      if (change->steps.empty()) continue;
    }
    join->expect();
    this->change(std::move(*change), [this, join](Changed changed) {
      if (changed.kind == Changed::Kind::not_run) keep(std::move(changed.change));
      join->arrived(changed.kind, changed.why);
    });
  }
  join->arrived(Changed::Kind::done, "");
}

void Port::renew(std::span<AdmissionRecord* const> records, Done done) {
  auto join =
      std::make_shared<Join>([done = std::move(done)](const Result<void>&) mutable { done(); });
  for (AdmissionRecord* record : records) {
    for (std::size_t i = 0; i < record->buckets.size(); ++i) {
      const BucketSlot& bucket = record->buckets[i];
      auto change = renewal(*record, bucket);
      if (!change) continue;
      if (bucket.local != 0 && shared_.local.renew(*record, i, shared_.now())) continue;
      join->expect();
      this->change(std::move(*change),
                   [join](const Changed& changed) { join->arrived(changed.kind, changed.why); });
    }
  }
  join->arrived(Changed::Kind::done, "");
}

void Port::change(Change change, Lane::ChangedDone done) {
  Mover& mover = servers_->mover();
  if (!mover.needed(change.key)) {
    Lane& of = servers_->lane(change.key);
    return of.change(std::move(change), std::move(done));
  }
  const std::string key = change.key;
  mover.bring(key, [this, change = std::move(change), done = std::move(done)]() mutable {
    Lane& of = servers_->lane(change.key);
    of.change(std::move(change), std::move(done));
  });
}

void Port::send(Change what) {
  change(std::move(what), [this](Changed changed) {
    if (changed.kind == Changed::Kind::not_run) keep(std::move(changed.change));
  });
}

void Port::keep(Change change) {
  if (kept_.size() >= kMostKept) {
    shared_.warn("kept", "too many settlements wait for Redis: what was charged stands");
    return;
  }
  kept_.push_back(std::move(change));
}

void Port::send_kept() {
  if (sending_kept_ > 0) return;
  const std::size_t count = std::min(kept_.size(), kKeptAtOnce);
  sending_kept_ = count;
  kept_arrived_ = false;
  for (std::size_t i = 0; i < count; ++i) {
    Change next = std::move(kept_.front());
    kept_.pop_front();
    change(std::move(next), [this](Changed changed) {
      if (changed.kind == Changed::Kind::not_run) {
        keep(std::move(changed.change));
      } else {
        kept_arrived_ = true;
      }
      if (--sending_kept_ == 0 && !kept_.empty() && kept_arrived_) {
        loop_.post([this] { send_kept(); });
      }
    });
  }
}

// One bucket on its way back, in as many changes as it takes.
struct Port::Carried {
  SpentBucket spent;
  std::size_t pending = 1;
  bool any_sent = false;
  std::vector<Change> unsent;  // certainly not carried out
  std::move_only_function<void()> done;
};

void Port::carry_back() {
  if (carrying_) return;
  carrying_ = true;
  carry_page(0);
}

// The next page when all of this one was answered.
void Port::carry_page(std::uint64_t cursor) {
  const auto reachable = [this](std::string_view key) {
    return servers_->topology().route(key).target->available();
  };
  LocalCounters::Taken taken =
      shared_.local.take_spent(shared_.now(), kCarriedAtOnce, cursor, reachable);
  auto join = std::make_shared<Join>([this, next = taken.next](const Result<void>&) {
    if (next == 0) {
      carrying_ = false;
      return;
    }
    loop_.post([this, next] { carry_page(next); });
  });
  for (SpentBucket& spent : taken.buckets) {
    join->expect();
    carry(std::move(spent), [join] { join->arrived(Changed::Kind::done, ""); });
  }
  join->arrived(Changed::Kind::done, "");
}

void Port::carry(SpentBucket spent, std::move_only_function<void()> done) {
  auto carried = std::make_shared<Carried>();
  carried->spent = std::move(spent);
  carried->done = std::move(done);
  const SpentBucket& bucket = carried->spent;

  Change base;
  base.key = bucket.key;
  if (bucket.text != bucket.key) base.text = bucket.text;
  base.limits = bucket.limits;
  // Nothing of it was sent: it is counted here again. Else only the rest waits.
  const auto arrived = [this, carried] {
    if (--carried->pending > 0) return;
    if (!carried->any_sent) {
      shared_.local.restore(std::move(carried->spent), shared_.now());
    } else {
      for (Change& change : carried->unsent) keep(std::move(change));
      shared_.local.told();
    }
    carried->done();
  };
  const auto send_one = [&](Change one) {
    ++carried->pending;
    change(std::move(one), [this, carried, arrived](Changed changed) {
      if (changed.kind == Changed::Kind::not_run) {
        carried->unsent.push_back(std::move(changed.change));
      } else {
        carried->any_sent = true;
      }
      if (changed.kind == Changed::Kind::unknown) {
        shared_.warn("carry", "what was counted during an outage may not have reached Redis: " +
                                  changed.why);
      }
      arrived();
    });
  };

  Change counters = base;
  std::vector<Change> by_id;
  for (std::size_t i = 0; i < bucket.spent.size(); ++i) {
    const SpentLimit& limit = bucket.spent[i];
    const limit::LimitName& name = (*bucket.limits)[i].name;
    const std::int64_t window = limit.window.time_since_epoch().count();
    const Action take =
        name.algorithm == Algorithm::token_bucket ? Action::take : Action::take_in_window;
    if (limit.amount > 0) counters.steps.push_back({take, name, limit.amount, window});
    if (limit.previous > 0) {
      counters.steps.push_back({take, name, limit.previous, window - name.window.count()});
    }
    for (const SpentEntry& entry : limit.log) {
      Change put = base;
      put.id = entry.id;
      put.steps.push_back({Action::put, name, entry.cost, entry.at.time_since_epoch().count()});
      by_id.push_back(std::move(put));
    }
    for (const SpentLease& lease : limit.leases) {
      Change put = base;
      put.id = lease.id;
      put.steps.push_back({Action::put, name, 1, lease.expiry.time_since_epoch().count()});
      by_id.push_back(std::move(put));
    }
  }
  if (!counters.steps.empty()) send_one(std::move(counters));
  for (Change& change : by_id) send_one(std::move(change));
  arrived();
}

}  // namespace stint::store
