#include "tests/model/history_run.h"

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <semaphore>
#include <set>
#include <sstream>
#include <utility>

#include "limit/limit_set.h"
#include "store/memory/memory_store.h"
#include "tests/model/reference_store.h"

namespace stint::model {
namespace {

using limit::LimitSet;
using limit::LimitSetPtr;
using store::AdmissionRecord;
using store::BucketSlot;
using store::LimitSlot;
using store::RateStore;

constexpr std::int64_t kSeed = 4711;

class SharedTime final : public store::TimeSource {
 public:
  explicit SharedTime(const TimePoint& now) : now_(now) {}
  [[nodiscard]] TimePoint now() noexcept override { return now_; }

 private:
  const TimePoint& now_;
};

std::unique_ptr<RateStore> memory_store(const TimePoint& now, std::size_t expire_per_call) {
  store::MemoryStoreOptions options;
  options.expire_per_call = expire_per_call;
  options.hash_seed = kSeed;
  return std::make_unique<store::MemoryStore>(options, std::make_unique<SharedTime>(now));
}

const char* text_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::admitted:
      return "admitted";
    case Outcome::refused:
      return "refused";
    case Outcome::undecided:
      return "undecided";
  }
  return "?";
}

const char* text_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::fits:
      return "fits";
    case Verdict::refused:
      return "refused";
    case Verdict::never_fits:
      return "never_fits";
    case Verdict::skipped:
      return "skipped";
  }
  return "?";
}

// All that a store answered, as text: what is compared, and what is shown if it differs.
std::string answers(const AdmissionRecord& record) {
  std::ostringstream out;
  out << text_of(record.outcome) << " at " << record.now.time_since_epoch().count();
  for (const BucketSlot& bucket : record.buckets) {
    out << " | " << bucket.key << (bucket.charged ? " charged" : " not charged")
        << (bucket.overflow ? " OVERFLOW" : "");
    const auto slots = record.slots_of(bucket);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const LimitSlot& slot = slots[i];
      out << " [" << text_of(slot.verdict) << " remaining " << slot.remaining << " reset "
          << slot.reset.count() << " wait " << slot.wait.count();
      // Of a peek nothing is charged, whatever stands there. Only of windows is it said which one.
      if (bucket.charged) out << " charged " << slot.charged.amount;
      const Algorithm algorithm = (*bucket.limits)[i].name.algorithm;
      if (bucket.charged &&
          (algorithm == Algorithm::fixed_window || algorithm == Algorithm::sliding_window)) {
        out << " in " << slot.charged.window.time_since_epoch().count();
      }
      out << "]";
    }
  }
  return out.str();
}

// Whether the memory store forgets what has expired also when it refuses: that would show if its
// time stepped back.
bool forgets(const History& history) {
  return std::ranges::any_of(history.policies, [](const std::vector<Limit>& policy) {
    return std::ranges::any_of(policy, [](const Limit& limit) {
      return limit.algorithm == Algorithm::sliding_log || limit.algorithm == Algorithm::concurrency;
    });
  });
}

// Calls that wait for their answer.
void acquire(RateStore& store, AdmissionRecord& record) {
  std::binary_semaphore done{0};
  store.acquire(record, [&] { done.release(); });
  done.acquire();
}
void peek(RateStore& store, AdmissionRecord& record) {
  std::binary_semaphore done{0};
  store.peek(record, [&] { done.release(); });
  done.acquire();
}
void settle(RateStore& store, AdmissionRecord& record) {
  std::binary_semaphore done{0};
  store.settle(record, [&](const Result<void>&) { done.release(); });
  done.acquire();
}
void renew(RateStore& store, const std::vector<AdmissionRecord*>& records) {
  std::binary_semaphore done{0};
  store.renew(records, [&] { done.release(); });
  done.acquire();
}
void reset(RateStore& store, std::string_view pattern) {
  std::uint64_t cursor = 0;
  do {
    store::ResetPage page;
    std::binary_semaphore done{0};
    store.reset(pattern, cursor, page, [&] { done.release(); });
    done.acquire();
    cursor = page.next;
  } while (cursor != 0);
}
BucketPage list(RateStore& store, std::uint64_t cursor) {
  BucketPage page;
  std::binary_semaphore done{0};
  store.list("*", cursor, 2, page, [&] { done.release(); });
  done.acquire();
  return page;
}

class Runner {
 public:
  Runner(const History& history, Compared compared, const std::vector<Further>& further)
      : policies_(history.policies),
        lease_ttl_(history.lease_ttl),
        start_(history.start),
        now_(start_) {
    for (const auto& policy : policies_) sets_.push_back(LimitSet::create(policy).value());
    names_.emplace_back("reference");
    stores_.push_back(std::make_unique<ReferenceStore>([this] { return now_; }));
    if (compared == Compared::all || !forgets(history)) {
      names_.emplace_back("memory, expire_per_call 0");
      stores_.push_back(memory_store(now_, 0));
    }
    if (compared == Compared::all) {
      names_.emplace_back("memory, expire_per_call 4");
      stores_.push_back(memory_store(now_, 4));
    }
    for (const Further& other : further) {
      names_.push_back(other.name);
      stores_.push_back(std::shared_ptr<RateStore>(other.store, [](RateStore*) {}));
      told_time_.push_back(other.set_time);
    }
    tell_time();
  }

  std::string run(const History& history) {
    for (std::size_t i = 0; i < history.ops.size() && fault_.empty(); ++i) {
      step_ = "op " + std::to_string(i) + ": " + to_text(history.ops[i]);
      std::visit([this](const auto& op) { (*this)(op); }, history.ops[i]);
      log_ += step_ + "\n";
    }
    step_ = "in the end";
    if (fault_.empty()) compare_listings();
    return fault_.empty() ? fault_ : log_ + fault_;
  }

  void operator()(const Acquire& op) { decide(op.uses, true); }
  void operator()(const Peek& op) { decide(op.uses, false); }

  void operator()(const Settle& op) {
    if (open_.empty()) return;
    const auto picked =
        std::next(open_.begin(), static_cast<std::ptrdiff_t>(op.pick % open_.size()));
    for (std::size_t s = 0; s < stores_.size(); ++s) {
      AdmissionRecord& record = picked->records[s];
      for (BucketSlot& bucket : record.buckets) {
        const auto slots = record.slots_of(bucket);
        for (std::size_t i = 0; i < slots.size(); ++i) {
          const bool lease = (*bucket.limits)[i].name.unit == Unit::concurrency;
          const std::size_t number = bucket.first_slot + i;
          if (!lease && !op.actual.empty()) {
            slots[i].actual = op.actual[number % op.actual.size()].of(slots[i].charged.amount);
          }
        }
      }
      settle(*stores_[s], record);
    }
    open_.erase(picked);
  }

  void operator()(const Renew& op) {
    if (open_.empty()) return;
    for (std::size_t s = 0; s < stores_.size(); ++s) {
      std::vector<AdmissionRecord*> records;
      for (const std::size_t pick : op.picks) {
        const auto at = static_cast<std::ptrdiff_t>(pick % open_.size());
        records.push_back(&std::next(open_.begin(), at)->records[s]);
      }
      renew(*stores_[s], records);
    }
  }

  void operator()(const Reset& op) {
    std::string pattern = "*";
    if (op.policy) {
      const std::size_t policy = *op.policy % sets_.size();
      pattern = op.key ? key(policy, *op.key) : "p" + std::to_string(policy) + ":*";
    }
    for (const auto& store : stores_) reset(*store, pattern);
  }

  void operator()(const Reload& op) {
    const std::size_t policy = op.policy % sets_.size();
    auto changed = policies_[policy];
    Limit& limit = changed[op.limit % changed.size()];
    limit.quota = op.quota;
    if (limit.algorithm == Algorithm::token_bucket) limit.burst = op.burst;
    put_into_force(policy, std::move(changed));
  }

  void operator()(const Relayout& op) {
    const std::size_t policy = op.policy % sets_.size();
    auto changed = policies_[policy];
    Limit& limit = changed[op.limit % changed.size()];
    if (limit.unit != Unit::concurrency) limit.window = op.window;
    const auto middle = static_cast<std::ptrdiff_t>(op.rotate % changed.size());
    std::ranges::rotate(changed, changed.begin() + middle);
    put_into_force(policy, std::move(changed));
  }

  void operator()(const Wait& op) { move_time(op.span); }

  void operator()(const Edge& op) {
    const auto& policy = policies_[op.policy % policies_.size()];
    const Limit& limit = policy[op.limit % policy.size()];
    const bool lease = limit.unit == Unit::concurrency;
    const Duration left =
        lease ? lease_ttl_ : limit.window - now_.time_since_epoch() % limit.window;
    move_time(left + op.offset);
  }

  void operator()(const AsTold& op) { move_time(std::max(told_ + op.offset, Duration{0})); }

 private:
  // An admission as each of the stores knows it.
  struct Open {
    std::vector<AdmissionRecord> records;
  };

  // If it is valid: not every limit can have every quota or window.
  void put_into_force(std::size_t policy, std::vector<Limit> changed) {
    auto set = LimitSet::create(changed);
    if (!set) return;
    policies_[policy] = std::move(changed);
    sets_[policy] = *set;
  }

  // Histories stay below 285 years (2^53 us), where the longest wait that is told ends and the
  // time of stores that count in doubles.
  void move_time(Duration span) {
    constexpr Duration kYear = std::chrono::days{366};
    constexpr TimePoint kEnd = TimePoint{Duration{kMaxQuantity}} - 4 * kYear;
    const Duration most = std::min(start_ + 240 * kYear, kEnd) - now_;
    const Duration least = start_ - 10 * kYear - now_;
    now_ += std::clamp(span, least, most);
    tell_time();
  }

  void tell_time() const {
    for (const auto& tell : told_time_) tell(now_);
  }

  // The text lives as long as the runner.
  const std::string& key(std::size_t policy, std::size_t number) {
    return *keys_.insert("p" + std::to_string(policy) + ":k=" + std::to_string(number)).first;
  }

  void decide(const std::vector<Use>& uses, bool charge) {
    AdmissionRecord record = record_of(uses);
    Open asked;
    for (const auto& store : stores_) {
      AdmissionRecord& mine = asked.records.emplace_back(record);
      charge ? acquire(*store, mine) : peek(*store, mine);
    }
    const std::string expected = answers(asked.records[0]);
    step_ += "\n    " + expected;
    for (std::size_t s = 1; s < stores_.size(); ++s) {
      const std::string answered = answers(asked.records[s]);
      if (answered == expected) continue;
      fault_ += step_ + "\n  " + names_[s] + ":\n    " + answered + "\n";
    }
    told_ = told(asked.records[0]);
    if (charge && asked.records[0].outcome == Outcome::admitted) {
      open_.push_back(std::move(asked));
    }
  }

  AdmissionRecord record_of(const std::vector<Use>& uses) {
    AdmissionRecord record;
    record.id = base::Id{7, next_id_++};
    record.lease_ttl = lease_ttl_;
    std::set<std::string_view> named;
    for (const Use& use : uses) {
      const std::size_t policy = use.policy % sets_.size();
      BucketSlot bucket;
      bucket.key = key(policy, use.key);
      if (!named.insert(bucket.key).second) continue;
      bucket.text = bucket.key;
      bucket.policy = bucket.key.substr(0, bucket.key.find(':'));
      bucket.limits = sets_[policy];
      bucket.first_slot = record.slots.size();
      bucket.shadow = use.shadow;
      for (std::size_t i = 0; i < bucket.limits->size(); ++i) {
        const limit::Spec& spec = (*bucket.limits)[i];
        const Ask ask = use.asks.empty() ? Ask{} : use.asks[i % use.asks.size()];
        LimitSlot slot;
        slot.need = ask.need.of(spec.capacity);
        slot.charge = ask.charge.of(spec.capacity);
        if (spec.name.unit == Unit::concurrency) {
          slot.need = slot.charge = std::min<std::int64_t>(slot.need, 1);
          slot.skip = ask.skip;
        }
        record.slots.push_back(slot);
      }
      record.buckets.push_back(std::move(bucket));
    }
    return record;
  }

  static Duration told(const AdmissionRecord& record) {
    Duration wait{0};
    Duration reset = Duration::max();
    for (const LimitSlot& slot : record.slots) {
      wait = std::max(wait, slot.wait);
      if (slot.reset > Duration{0}) reset = std::min(reset, slot.reset);
    }
    if (wait > Duration{0}) return wait;
    return reset == Duration::max() ? Duration{0} : reset;
  }

  static std::map<std::string, std::string> listing(RateStore& store) {
    std::map<std::string, std::string> shown;
    std::uint64_t cursor = 0;
    do {
      const BucketPage page = list(store, cursor);
      for (const BucketInfo& bucket : page.buckets) {
        std::string& text = shown[bucket.key];
        if (!text.empty()) text += " LISTED TWICE";
        for (const auto& counter : bucket.counters) {
          text += " " + std::to_string(counter.value) + " (" + std::to_string(counter.remaining) +
                  " of " + std::to_string(counter.capacity) + " left, whole in " +
                  std::to_string(counter.reset.count()) + ")";
        }
      }
      cursor = page.next;
    } while (cursor != 0);
    return shown;
  }

  void compare_listings() {
    const auto expected = listing(*stores_[0]);
    for (std::size_t s = 1; s < stores_.size(); ++s) {
      const auto shown = listing(*stores_[s]);
      if (shown == expected) continue;
      std::ostringstream out;
      out << step_ << ", the listing of the reference:\n";
      for (const auto& [key, text] : expected) out << "    " << key << text << "\n";
      out << "  of " << names_[s] << ":\n";
      for (const auto& [key, text] : shown) out << "    " << key << text << "\n";
      fault_ += out.str();
    }
  }

  std::vector<std::vector<Limit>> policies_;
  std::vector<LimitSetPtr> sets_;
  const Duration lease_ttl_;
  const TimePoint start_;
  TimePoint now_;
  std::set<std::string> keys_;
  std::vector<std::string> names_;
  std::vector<std::shared_ptr<RateStore>> stores_;
  std::vector<std::function<void(TimePoint)>> told_time_;
  std::list<Open> open_;
  std::uint64_t next_id_ = 1;
  Duration told_{0};
  std::string step_;
  std::string log_;
  std::string fault_;
};

}  // namespace

std::string run(const History& history, Compared compared, const std::vector<Further>& further) {
  return Runner(history, compared, further).run(history);
}

}  // namespace stint::model
