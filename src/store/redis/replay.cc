#include "store/redis/replay.h"

#include <optional>
#include <utility>
#include <variant>

#include "limit/fixed_window.h"
#include "limit/lease_set.h"
#include "limit/sliding_log.h"
#include "limit/sliding_window.h"
#include "limit/token_bucket.h"
#include "store/redis/bytes.h"
#include "store/redis/layout.h"

namespace stint::store {
namespace {

using limit::Charge;
using limit::Check;
using limit::Reading;
using limit::Spec;

constexpr std::uint16_t kUndecided = 65535;

TimePoint instant(std::int64_t microseconds) { return TimePoint{Duration{microseconds}}; }

// Leases of which only the number is known.
struct Slots {
  std::int64_t live = 0;
};
// A log of which only the oldest entries are known; those behind them are one entry here.
struct Log {
  limit::SlidingLog log;
  std::int64_t used = 0;
  TimePoint last{};
};
using State =
    std::variant<limit::FixedWindow, limit::SlidingWindow, limit::TokenBucket, Log, Slots>;

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

struct Bucket {
  limit::LimitSetPtr limits;
  std::uint64_t birth = 0;
  std::vector<State> states;
  std::string bad;  // not empty: why it cannot be read
};

State fresh_state(const Spec& spec) {
  switch (spec.name.algorithm) {
    case Algorithm::fixed_window:
      return limit::FixedWindow{};
    case Algorithm::sliding_window:
      return limit::SlidingWindow{};
    case Algorithm::token_bucket:
      return limit::TokenBucket::fresh(spec);
    case Algorithm::sliding_log:
      return Log{};
    case Algorithm::concurrency:
      return Slots{};
  }
  std::unreachable();
}

State read_state(const Spec& spec, ByteReader& bytes) {
  State state = fresh_state(spec);
  std::visit(Overloaded{[&](limit::FixedWindow& fixed) {
                          fixed.start = instant(bytes.number());
                          fixed.used = bytes.number();
                        },
                        [&](limit::SlidingWindow& sliding) {
                          sliding.start = instant(bytes.number());
                          sliding.current = bytes.number();
                          sliding.previous = bytes.number();
                        },
                        [&](limit::TokenBucket& tokens) {
                          tokens.last = instant(bytes.number());
                          tokens.level = bytes.number();
                          tokens.rest = bytes.number() & limit::TokenBucket::kRestBits;
                          tokens.fills = static_cast<std::uint64_t>(bytes.number()) &
                                         limit::TokenBucket::kFillsBits;
                        },
                        [&](Log& log) {
                          log.used = bytes.number();
                          log.last = instant(bytes.number());
                        },
                        [&](Slots& slots) { slots.live = bytes.number(); }},
             state);
  return state;
}

// Only of windows and tokens: of the others the script says itself how they stand.
void advance(State& state, const Spec& spec, TimePoint now) {
  std::visit(Overloaded{[](Slots&) {}, [](Log&) {}, [&](auto& steps) { steps.advance(spec, now); }},
             state);
}

void read_entries(Log& log, ByteReader& bytes) {
  const base::Id nobody{};
  std::int64_t rest = log.used;
  const std::size_t count = bytes.u16();
  for (std::size_t i = 0; i < count && bytes.good(); ++i) {
    const TimePoint at = instant(bytes.number());
    const std::int64_t cost = bytes.number();
    rest -= cost;
    (void)log.log.charge(cost, nobody, at);
  }
  if (rest > 0) (void)log.log.charge(rest, nobody, log.last);
}

// What the key held, or did not: it goes on from there as everywhere.
std::optional<Bucket> read_stored(const Plan& plan, const Plan::AskedBucket& asked,
                                  const redis::Value& value, TimePoint now) {
  Bucket bucket;
  bucket.limits = asked.limits;
  const auto& specs = asked.limits->specs();
  if (value.is(redis::Value::Kind::nil)) {
    bucket.birth = plan.birth_of(asked);
    for (const Spec& spec : specs) bucket.states.push_back(fresh_state(spec));
  } else {
    ByteReader bytes(value.text());
    (void)bytes.u8();  // version
    (void)bytes.u8();  // flags
    bucket.birth = static_cast<std::uint64_t>(bytes.number());
    if (bytes.u8() != specs.size()) return std::nullopt;
    for (const Spec& spec : specs) {
      const bool named =
          bytes.number() == code_of(spec.name) && bytes.number() == spec.quota &&
          (spec.name.algorithm != Algorithm::token_bucket || bytes.number() == spec.capacity);
      if (!named) return std::nullopt;
      bucket.states.push_back(read_state(spec, bytes));
    }
    if (!bytes.good()) return std::nullopt;
  }
  for (std::size_t i = 0; i < specs.size(); ++i) advance(bucket.states[i], specs[i], now);
  return bucket;
}

std::optional<Bucket> read_bucket(const Plan& plan, const Plan::AskedBucket& asked,
                                  const redis::Value& value, TimePoint now) {
  std::string_view text = value.text();
  if (!text.starts_with('!') && !text.starts_with('=')) {
    return read_stored(plan, asked, value, now);
  }
  Bucket bucket;
  bucket.limits = asked.limits;
  if (text.starts_with('!')) {
    bucket.bad = text.substr(1);
    if (bucket.bad.empty()) bucket.bad = "unreadable";
    return bucket;
  }
  text.remove_prefix(1);
  ByteReader bytes(text);
  bucket.birth = static_cast<std::uint64_t>(bytes.number());
  for (const Spec& spec : asked.limits->specs()) {
    bucket.states.push_back(read_state(spec, bytes));
  }
  for (State& state : bucket.states) {
    if (Log* log = std::get_if<Log>(&state)) read_entries(*log, bytes);
  }
  if (!bytes.good() || !bytes.rest().empty()) return std::nullopt;
  return bucket;
}

Check check(const State& state, const Spec& spec, std::int64_t need, TimePoint now) {
  return std::visit(
      Overloaded{[&](const Slots& slots) { return limit::check_slots(spec, slots.live, need); },
                 [&](const Log& log) { return log.log.check(spec, need, now); },
                 [&](const auto& steps) { return steps.check(spec, need, now); }},
      state);
}

Charge charge(State& state, const Spec& spec, std::int64_t amount, TimePoint now) {
  return std::visit(Overloaded{[&](Slots& slots) {
                                 if (amount > 0) ++slots.live;
                                 return Charge{amount, TimePoint{}};
                               },
                               [&](Log& log) { return log.log.charge(amount, base::Id{}, now); },
                               [&](auto& steps) { return steps.charge(spec, amount); }},
                    state);
}

Reading read(const State& state, const Spec& spec, TimePoint now) {
  return std::visit(
      Overloaded{[&](const Slots& slots) { return limit::read_slots(spec, slots.live); },
                 [&](const Log& log) { return log.log.read(spec, now); },
                 [&](const auto& steps) { return steps.read(spec, now); }},
      state);
}

class Replay {
 public:
  Replay(const Plan& plan, std::vector<Bucket> buckets, TimePoint now)
      : plan_(plan), buckets_(std::move(buckets)), now_(now) {}

  // Null if all can be read.
  const Bucket* bad_bucket(const Plan::Asked& asked) const {
    for (const std::size_t i : asked.buckets) {
      const Bucket& bucket = buckets_[plan_.asked_place(asked.record->buckets[i].key)];
      if (!bucket.bad.empty()) return &bucket;
    }
    return nullptr;
  }

  // Takes the steps of one admission, which the script admitted or not. Whether it would have.
  bool step(const Plan::Asked& asked, bool admitted) {
    AdmissionRecord& record = *asked.record;
    bool all = true;
    for (const std::size_t i : asked.buckets) {
      BucketSlot& slot = record.buckets[i];
      slot.charged = judge(record, slot, bucket_of(slot));
      all = all && (slot.charged || slot.shadow);
    }
    for (const std::size_t i : asked.buckets) {
      BucketSlot& slot = record.buckets[i];
      // What was admitted was charged, whatever the steps here say of it.
      slot.charged = admitted && (slot.charged || !slot.shadow);
      charge_and_answer(record, slot, asked.look);
    }
    return all;
  }

 private:
  Bucket& bucket_of(const BucketSlot& slot) { return buckets_[plan_.asked_place(slot.key)]; }

  bool judge(AdmissionRecord& record, const BucketSlot& slot, const Bucket& bucket) const {
    bool fits = true;
    const auto slots = record.slots_of(slot);
    for (std::size_t k = 0; k < slots.size(); ++k) {
      Check checked{Verdict::skipped, Duration::zero()};
      if (!slots[k].skip) checked = check(bucket.states[k], spec(slot, k), slots[k].need, now_);
      slots[k].verdict = checked.verdict;
      slots[k].wait = checked.wait;
      fits = fits && (slots[k].skip || checked.verdict == Verdict::fits);
    }
    return fits;
  }

  void charge_and_answer(AdmissionRecord& record, BucketSlot& slot, bool look) {
    Bucket& bucket = bucket_of(slot);
    // What is only looked at shows what would be, and leaves nothing.
    std::vector<State> copy;
    if (look) copy = bucket.states;
    std::vector<State>& states = look ? copy : bucket.states;
    const auto slots = record.slots_of(slot);
    for (std::size_t k = 0; k < slots.size(); ++k) {
      slots[k].charged = {};
      if (slot.charged && !slots[k].skip) {
        slots[k].charged = charge(states[k], spec(slot, k), slots[k].charge, now_);
      }
      const Reading reading = read(states[k], spec(slot, k), now_);
      slots[k].remaining = reading.remaining;
      slots[k].reset = reading.reset;
    }
    if (look) slot.charged = false;
    slot.overflow = false;
    slot.local = 0;
    slot.maybe_charged = false;
    slot.birth = bucket.birth;
  }

  [[nodiscard]] static const Spec& spec(const BucketSlot& slot, std::size_t i) {
    return (*slot.limits)[i];
  }

  const Plan& plan_;
  std::vector<Bucket> buckets_;
  TimePoint now_;
};

// The shape of the reply, checked before anything is believed.
struct Parts {
  std::string_view admitted;
  std::string_view changed;
  std::vector<Bucket> buckets;
};

std::optional<Parts> take_apart(const Plan& plan, const redis::Value& reply, TimePoint now) {
  using Kind = redis::Value::Kind;
  Parts parts;
  parts.admitted = reply[2].text();
  parts.changed = reply[3].text();
  if (!reply[2].is(Kind::text) || !reply[3].is(Kind::text) ||
      parts.admitted.size() != 2 * plan.ops() || parts.changed.size() != plan.changes() ||
      parts.changed.find_first_not_of(std::string_view("\0\1\2", 3)) != std::string_view::npos ||
      reply.size() != 4 + plan.asked_buckets().size()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < plan.asked_buckets().size(); ++i) {
    auto bucket = read_bucket(plan, plan.asked_buckets()[i], reply[4 + i], now);
    if (!bucket) return std::nullopt;
    parts.buckets.push_back(std::move(*bucket));
  }
  return parts;
}

}  // namespace

Answer replay(const Plan& plan, const redis::Value& reply) {
  using Kind = redis::Value::Kind;
  Answer answer;
  if (!reply.is(Kind::array) || !reply[0].is(Kind::integer) || !reply[1].is(Kind::integer)) {
    answer.why = "the script answered something else than it does";
    return answer;
  }
  answer.now = instant(reply[1].integer());
  if (reply[0].integer() == 0) {
    answer.kind = Answer::Kind::late;
    return answer;
  }
  auto parts = take_apart(plan, reply, answer.now);
  if (!parts) {
    answer.why = "the script answered something else than it does";
    return answer;
  }
  answer.kind = Answer::Kind::decided;
  for (const char changed : parts->changed) {
    answer.changes.push_back(static_cast<Answer::Change>(changed));
  }

  ByteReader admitted(parts->admitted);
  std::vector<std::uint16_t> left;  // of each op: how many more of it were admitted
  for (std::size_t i = 0; i < plan.ops(); ++i) left.push_back(admitted.u16());
  Replay steps(plan, std::move(parts->buckets), answer.now);
  for (const Plan::Asked& asked : plan.asked()) {
    asked.record->now = answer.now;
    std::uint16_t& count = left[asked.op];
    if (count == kUndecided) {
      const Bucket* bad = steps.bad_bucket(asked);
      if (bad != nullptr && bad->bad == "moved") {
        if (!answer.fault) {
          answer.why = "another server has the bucket now: this replica's list of servers is older";
        }
      } else {
        answer.why = bad != nullptr ? bad->bad : "undecided by the script";
        answer.fault = true;
      }
      answer.admissions.push_back(Answer::Fate::undecided);
      continue;
    }
    const bool script = count > 0;
    if (script) --count;
    if (steps.step(asked, script) != script) ++answer.disagreements;
    answer.admissions.push_back(script ? Answer::Fate::admitted : Answer::Fate::refused);
  }
  return answer;
}

}  // namespace stint::store
