#include "store/redis/port.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "store/redis/sweep.h"

namespace stint::store {
namespace {

// For how long a replica announces itself at a time, and how often (three times in it).
constexpr Duration kAnnouncedFor = std::chrono::seconds{15};
constexpr Duration kAnnounceEvery = std::chrono::seconds{5};
// Settlements that wait for a server that is away. Beyond it what was charged stands.
constexpr std::size_t kMostKept = 100'000;
constexpr std::size_t kKeptAtOnce = 1024;
constexpr std::size_t kCarriedAtOnce = 64;
// Of one command of a listing or a reset, which nobody's request waits for.
constexpr Duration kSweepTimeout = std::chrono::seconds{2};

Error unavailable(const std::string& why) {
  return Error{ErrorCode::unavailable, "", why.empty() ? "the store cannot be reached" : why};
}

// "6.0.16": below 6.2. What cannot be read is not.
bool too_old(std::string_view version) {
  unsigned major = 0;
  unsigned minor = 0;
  const char* const end = version.data() + version.size();
  const auto [dot, fault] = std::from_chars(version.data(), end, major);
  if (fault != std::errc{} || dot == end || *dot != '.') return false;
  if (std::from_chars(dot + 1, end, minor).ec != std::errc{}) return false;
  return major < 6 || (major == 6 && minor < 2);
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
    Lane* lane = nullptr;
    Decided decided;
  };
  AdmissionRecord* record = nullptr;
  bool look = false;
  Done done;
  boost::container::small_vector<Part, 1> parts;
  std::size_t pending = 0;
};

Port::Port(net::EventLoop& loop, Shared& shared, const RedisStore::MakeTopology& make)
    : loop_(loop), shared_(shared) {
  topology_ = make(loop, [this](std::string_view name) { return prepare(name); });
}

Port::~Port() = default;

Port::Site& Port::site(std::string_view name) {
  auto found = sites_.find(name);
  if (found == sites_.end()) {
    auto made = std::make_unique<Site>();
    made->name = name;
    found = sites_.emplace(std::string(name), std::move(made)).first;
  }
  return *found->second;
}

redis::ServerOptions Port::prepare(std::string_view name) {
  Site& where = site(name);
  shared_.add_target(name);
  redis::ServerOptions options;
  options.name = name;
  options.client_name = "stint";
  options.scripts = {&shared_.scripts.decide, &shared_.scripts.announce, &shared_.scripts.look};
  options.probe = announcement(where);
  options.probe_every = kAnnounceEvery;
  options.entropy = &shared_.entropy;
  options.on_event = [this, &where](const redis::ServerEvent& event) { on_event(where, event); };
  options.on_time = [this, &where](TimePoint store, Duration sent, Duration received) {
    where.clock.learn(store, sent, received);
    shared_.learn(where.clock.offset());
  };
  return options;
}

redis::Probe Port::announcement(Site& where) {
  redis::Probe probe;
  probe.script = &shared_.scripts.announce;
  probe.make = [this] {
    redis::Probe::Call call;
    call.keys = {shared_.replicas_key};
    call.args = {shared_.replica, std::to_string(kAnnouncedFor.count())};
    return call;
  };
  probe.on_reply = [this, &where](const redis::CallResult& result) { announced(where, result); };
  return probe;
}

void Port::announced(Site& where, const redis::CallResult& result) {
  if (!result) return;
  const std::int64_t replicas = (*result)[1].integer();
  if (replicas > 0) shared_.set_replicas(replicas);
  // The server counts as available only after this callback.
  loop_.post([this, &where] {
    for (redis::Target* target : topology_->targets()) {
      if (target->name() != where.name || !target->available()) continue;
      set_degraded(where, false, "");
      look_at_settings(where, *target);
      carry_back();
      send_kept();
    }
  });
}

void Port::look_at_settings(Site& where, redis::Target& target) {
  if (where.looked_at) return;
  where.looked_at = true;
  where.looking = 2;
  const Duration deadline = loop_.now() + kSweepTimeout;
  // Whoever may not ask is not warned: both commands are often forbidden to users.
  const std::array<std::string_view, 3> policy = {"CONFIG", "GET", "maxmemory-policy"};
  target.command(policy, deadline, [this, &where](const redis::CallResult& result) {
    --where.looking;
    if (!result || result->size() < 2 || (*result)[1].text() == "noeviction") return;
    shared_.warn("eviction " + where.name,
                 "redis " + where.name + " may evict counters: its maxmemory-policy is " +
                     std::string((*result)[1].text()) + ", and should be noeviction");
  });
  const std::array<std::string_view, 2> info = {"INFO", "server"};
  target.command(info, deadline, [this, &where](const redis::CallResult& result) {
    --where.looking;
    if (!result) return;
    constexpr std::string_view kField = "redis_version:";
    std::string_view text = result->text();
    const std::size_t at = text.find(kField);
    if (at == std::string_view::npos) return;
    text.remove_prefix(at + kField.size());
    const std::string version(text.substr(0, text.find_first_of("\r\n")));
    if (!too_old(version)) return;
    shared_.warn("version " + where.name,
                 "redis " + where.name + " is version " + version + "; 6.2 or later is needed");
  });
}

void Port::on_event(Site& where, const redis::ServerEvent& event) {
  using Kind = redis::ServerEvent::Kind;
  switch (event.kind) {
    case Kind::connected:
    case Kind::breaker_closed:
      return;
    case Kind::configuration:
      // Such faults repeat: what is not about those two questions is told a moment later.
      if (where.looking > 0) return;
      return shared_.warn("configuration " + where.name + event.text,
                          "redis " + where.name + " must be mended: " + event.text);
    case Kind::connect_failed:
    case Kind::lost:
    case Kind::breaker_opened:
      if (where.degraded) return shared_.still_degraded(where.name, event.text);
      return set_degraded(where, true, event.text);
  }
}

void Port::set_degraded(Site& where, bool degraded, const std::string& why) {
  if (where.degraded == degraded) return;
  where.degraded = degraded;
  shared_.set_degraded(where.name, degraded, why);
}

LaneHooks Port::lane_hooks(Site& where) {
  const RedisStoreHooks& hooks = shared_.options.hooks;
  LaneHooks made;
  if (hooks.on_latency) {
    made.on_latency = [&hooks, &where](Duration span) { hooks.on_latency(where.name, span); };
  }
  if (hooks.on_unknown_charges) {
    made.on_unknown_charges = [&hooks, &where](std::size_t count) {
      hooks.on_unknown_charges(where.name, count);
    };
  }
  made.on_fault = [this, &where](std::string_view text) {
    shared_.warn("fault " + where.name, "redis " + where.name + ": " + std::string(text));
  };
  made.on_learned = [this, &where] { shared_.learn(where.clock.offset()); };
  return made;
}

Lane& Port::lane(std::string_view bucket_key) {
  const redis::Topology::Route route = topology_->route(bucket_key);
  for (const LaneOf& known : lanes_) {
    if (known.route == route) return *known.lane;
  }
  Site& where = site(route.target->name());
  auto made = std::make_unique<Lane>(loop_, *route.target, where.clock, shared_.scripts,
                                     shared_.keys_begin, shared_.entropy,
                                     LaneOptions{.calls_in_flight = shared_.options.calls_in_flight,
                                                 .timeout = shared_.options.timeout},
                                     lane_hooks(where));
  return *lanes_.emplace_back(LaneOf{route, std::move(made)}).lane;
}

void Port::start() { topology_->start(); }

net::Task<void> Port::stop() { co_await topology_->stop(); }

void Port::ask(AdmissionRecord& record, bool look, Done done) {
  if (record.buckets.empty()) {
    record.outcome = Outcome::admitted;
    record.now = shared_.now();
    return done();
  }
  auto admission = std::make_shared<Admission>();
  admission->record = &record;
  admission->look = look;
  admission->done = std::move(done);
  for (std::size_t i = 0; i < record.buckets.size(); ++i) {
    Lane& of = lane(record.buckets[i].key);
    auto part = std::ranges::find(admission->parts, &of, &Admission::Part::lane);
    if (part == admission->parts.end()) {
      part = admission->parts.insert(part, Admission::Part{{}, &of, {}});
    }
    part->buckets.push_back(static_cast<std::uint16_t>(i));
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
  const bool cancelled = record.cancelled != nullptr && record.cancelled->load();
  for (const Admission::Part& part : admission.parts) {
    const bool known = part.decided.fate != Answer::Fate::undecided;
    refused = refused || part.decided.fate == Answer::Fate::refused;
    if (shared_.options.hooks.on_decided && !admission.look) {
      shared_.options.hooks.on_decided(part.lane->target().name(), outcome_of(part.decided.fate));
    }
    for (const std::size_t i : part.buckets) {
      record.buckets[i].maybe_charged = !known && !part.decided.uncharged;
      if (!known) {
        undecided.push_back(i);
      } else if (!admission.look) {
        shared_.heard.note(record.buckets[i], record.slots_of(record.buckets[i]), record.now);
      }
    }
    if (!known && why.empty()) {
      why = part.decided.why;
      if (cancelled) continue;
      shared_.warn("outage " + std::string(part.lane->target().name()),
                   "counting by the outage rule: " + why);
    }
  }
  if (!undecided.empty() && cancelled) {
    leave_undecided(record, undecided, why);
  } else if (!undecided.empty()) {
    answer_locally(admission, undecided, why);
  } else {
    record.outcome = refused ? Outcome::refused : Outcome::admitted;
  }
  if (record.outcome != Outcome::admitted && !admission.look) give_back_charged(admission);
  Done done = std::move(admission.done);
  done();
}

void Port::answer_locally(Admission& admission, std::span<const std::size_t> undecided,
                          const std::string& why) {
  AdmissionRecord& record = *admission.record;
  const TimePoint now = shared_.now();
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
    lane(bucket.key).change(std::move(*change), [this, join](Changed changed) {
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
      lane(bucket.key).change(std::move(*change), [join](const Changed& changed) {
        join->arrived(changed.kind, changed.why);
      });
    }
  }
  join->arrived(Changed::Kind::done, "");
}

void Port::send(Change change) {
  Lane& of = lane(change.key);
  of.change(std::move(change), [this](Changed changed) {
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
  for (std::size_t i = 0; i < count; ++i) {
    Change change = std::move(kept_.front());
    kept_.pop_front();
    Lane& of = lane(change.key);
    const bool last = i + 1 == count;
    of.change(std::move(change), [this, &of](Changed changed) {
      if (changed.kind == Changed::Kind::not_run) keep(std::move(changed.change));
      if (--sending_kept_ == 0 && !kept_.empty() && of.target().available()) {
        loop_.post([this] { send_kept(); });
      }
    });
    if (last) break;
  }
}

// One bucket on its way back, in as many changes as it takes.
struct Port::Carried {
  SpentBucket spent;
  std::size_t pending = 1;
  bool any_sent = false;
  std::vector<Change> unsent;  // certainly not carried out
};

void Port::carry_back() {
  const auto reachable = [this](std::string_view key) { return lane(key).target().available(); };
  std::uint64_t cursor = 0;
  do {
    LocalCounters::Taken taken =
        shared_.local.take_spent(shared_.now(), kCarriedAtOnce, cursor, reachable);
    for (SpentBucket& spent : taken.buckets) carry(std::move(spent));
    cursor = taken.next;
  } while (cursor != 0);
}

void Port::carry(SpentBucket spent) {
  auto carried = std::make_shared<Carried>();
  carried->spent = std::move(spent);
  const SpentBucket& bucket = carried->spent;
  Lane& of = lane(bucket.key);

  Change base;
  base.key = bucket.key;
  if (bucket.text != bucket.key) base.text = bucket.text;
  base.limits = bucket.limits;
  // Nothing of it was sent: it is counted here again. Else only the rest waits.
  const auto arrived = [this, carried] {
    if (--carried->pending > 0) return;
    if (!carried->any_sent) {
      return shared_.local.restore(std::move(carried->spent), shared_.now());
    }
    for (Change& change : carried->unsent) keep(std::move(change));
  };
  const auto send_one = [&](Change change) {
    ++carried->pending;
    of.change(std::move(change), [this, carried, arrived](Changed changed) {
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

// A cursor of the store: 8 bits of target, 8 of SweepCursor::skip, 48 of SweepCursor::scan.
namespace {

constexpr std::uint64_t kScanBits = (std::uint64_t{1} << 48) - 1;

SweepCursor sweep_cursor(std::uint64_t cursor) {
  return {cursor & kScanBits, static_cast<std::uint8_t>(cursor >> 48 & 0xFF)};
}

std::uint64_t store_cursor(std::size_t target, std::size_t targets, const SweptPage& page) {
  if (page.more) {
    return std::uint64_t{target} << 56 | std::uint64_t{page.next.skip} << 48 |
           (page.next.scan & kScanBits);
  }
  return target + 1 < targets ? std::uint64_t{target + 1} << 56 : 0;
}

}  // namespace

void Port::list(std::string_view pattern, std::uint64_t cursor, std::size_t page_size,
                BucketPage& page, Done done) {
  page = {};
  const auto targets = topology_->targets();
  const std::size_t target = cursor >> 56;
  if (target >= targets.size()) return done();
  SweepRequest request{shared_.keys_begin, std::string(pattern), sweep_cursor(cursor), page_size,
                       loop_.now() + kSweepTimeout};
  sweep(*targets[target], shared_.scripts, std::move(request),
        [this, target, count = targets.size(), &page,
         done = std::move(done)](SweptPage swept) mutable {
          if (!swept.error.empty())
            shared_.warn("list", "a listing of Redis failed: " + swept.error);
          for (SweptBucket& bucket : swept.buckets) page.buckets.push_back(std::move(bucket.info));
          page.next = store_cursor(target, count, swept);
          done();
        });
}

void Port::reset(std::string_view pattern, std::uint64_t cursor, ResetPage& page, Done done) {
  constexpr std::size_t kAtOnce = 256;
  page = {};
  const auto targets = topology_->targets();
  const std::size_t target = cursor >> 56;
  if (target >= targets.size()) return done();
  redis::Target& of = *targets[target];
  SweepRequest request{shared_.keys_begin, std::string(pattern), sweep_cursor(cursor), kAtOnce,
                       loop_.now() + kSweepTimeout};
  sweep(of, shared_.scripts, std::move(request),
        [this, target, count = targets.size(), &of, &page,
         done = std::move(done)](SweptPage swept) mutable {
          if (!swept.error.empty())
            shared_.warn("reset", "a reset in Redis failed: " + swept.error);
          page.next = store_cursor(target, count, swept);
          remove_buckets(of, shared_.keys_begin, swept.buckets, loop_.now() + kSweepTimeout,
                         [&page, done = std::move(done)](std::size_t removed) mutable {
                           page.removed = removed;
                           done();
                         });
        });
}

}  // namespace stint::store
