#include "store/redis/plan.h"

#include <algorithm>
#include <utility>

#include "store/redis/bytes.h"
#include "store/redis/layout.h"

namespace stint::store {
namespace {

// Flags of an admission in the plan.
constexpr std::uint8_t kHasId = 1;
constexpr std::uint8_t kLook = 2;
constexpr std::int64_t kSkip = -1;
// What fits in the one byte that mostly is all that is said of a bucket.
constexpr std::size_t kMaxShortSpec = 255;

bool names_charge(const limit::Spec& spec, const LimitSlot& slot) noexcept {
  if (slot.skip) return false;
  return spec.name.algorithm == Algorithm::sliding_log ||
         spec.name.algorithm == Algorithm::concurrency;
}

void put_id(std::string& out, const base::Id& id) {
  for (const std::uint64_t half : {id.high, id.low}) {
    for (int shift = 56; shift >= 0; shift -= 8) {
      put_u8(out, static_cast<std::uint8_t>(half >> shift & 0xFF));
    }
  }
}

bool needs_id(const AdmissionRecord& record, const Plan::Buckets& buckets) {
  return std::ranges::any_of(buckets, [&](std::size_t place) {
    const BucketSlot& bucket = record.buckets[place];
    const auto slots = record.slots_of(bucket);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (names_charge((*bucket.limits)[i], slots[i])) return true;
    }
    return false;
  });
}

}  // namespace

std::size_t Plan::spec_of(const limit::LimitSetPtr& limits) {
  const auto found = std::ranges::find(specs_, limits);
  if (found != specs_.end()) return static_cast<std::size_t>(found - specs_.begin()) + 1;
  specs_.push_back(limits);
  return specs_.size();
}

std::size_t Plan::place_of(std::string_view key, std::string_view text,
                           const limit::LimitSetPtr& limits) {
  const auto [found, fresh] = places_.emplace(key, buckets_.size() + 1);
  if (fresh) {
    Planned bucket;
    bucket.key = key;
    if (text != key) bucket.text = text;
    bucket.spec = spec_of(limits);
    buckets_.push_back(std::move(bucket));
  }
  Planned& bucket = buckets_[found->second - 1];
  for (const limit::Spec& spec : limits->specs()) {
    if (spec.name.algorithm == Algorithm::concurrency) bucket.leases = true;
    if (spec.name.algorithm != Algorithm::sliding_log) continue;
    if (std::ranges::find(bucket.logs, spec.window()) == bucket.logs.end()) {
      bucket.logs.push_back(spec.window());
    }
  }
  return found->second;
}

bool Plan::add(AdmissionRecord& record, const Buckets& buckets, bool look) {
  if (asked_.size() >= kMaxAdmissions) return false;
  if (!empty() && buckets_.size() + buckets.size() > kMaxBuckets) return false;
  for (const std::size_t i : buckets) {
    const BucketSlot& bucket = record.buckets[i];
    const auto found = places_.find(bucket.key);
    if (found == places_.end()) continue;
    const limit::LimitSetPtr& asked = buckets_[found->second - 1].asked;
    if (asked && asked != bucket.limits) return false;
  }
  Op op = op_of(record, buckets, look);
  // A run of equal admissions is one: the hot bucket of a flood costs next to nothing each.
  if (!ops_.empty() && ops_.back().same_charge(op)) {
    ++ops_.back().count;
  } else {
    ops_.push_back(std::move(op));
  }
  asked_.push_back({&record, buckets, ops_.size() - 1, look});
  return true;
}

// Where a bucket that an admission asks stands.
std::size_t Plan::ask(const BucketSlot& bucket) {
  const std::size_t place = place_of(bucket.key, bucket.text, bucket.limits);
  Planned& planned = buckets_[place - 1];
  if (!planned.asked) {
    planned.asked = bucket.limits;
    planned.spec = spec_of(bucket.limits);
    planned.asked_place = asked_buckets_.size();
    asked_buckets_.push_back({bucket.key, bucket.limits, place});
  }
  return place;
}

Plan::Op Plan::op_of(const AdmissionRecord& record, const Buckets& buckets, bool look) {
  Op op;
  const bool id = needs_id(record, buckets);
  put_u8(op.terms, static_cast<std::uint8_t>(buckets.size()));
  put_u8(op.terms, static_cast<std::uint8_t>((id ? kHasId : 0) | (look ? kLook : 0)));
  put_number(op.terms, record.lease_ttl.count());
  for (const std::size_t i : buckets) {
    const BucketSlot& bucket = record.buckets[i];
    op.places.push_back(ask(bucket));
    const auto slots = record.slots_of(bucket);
    put_u8(op.terms, bucket.shadow ? 1 : 0);
    put_u8(op.terms, static_cast<std::uint8_t>(slots.size()));
    for (const LimitSlot& slot : slots) {
      put_number(op.terms, slot.skip ? kSkip : slot.need);
      put_number(op.terms, slot.charge);
    }
  }
  if (id) put_id(op.id, record.id);
  return op;
}

bool Plan::add(const Change& change) {
  if (changes_ >= kMaxChanges) return false;
  if (!empty() && buckets_.size() >= kMaxBuckets && !places_.contains(change.key)) return false;
  const std::string_view text = change.text.empty() ? change.key : change.text;
  const std::size_t place = place_of(change.key, text, change.limits);
  put_u16(change_bodies_, place);
  put_u16(change_bodies_, spec_of(change.limits));
  put_number(change_bodies_, static_cast<std::int64_t>(change.birth));
  put_id(change_bodies_, change.id);
  put_u8(change_bodies_, static_cast<std::uint8_t>(change.steps.size()));
  for (const Change::Step& step : change.steps) {
    put_u8(change_bodies_, static_cast<std::uint8_t>(step.action));
    put_number(change_bodies_, code_of(step.limit));
    put_number(change_bodies_, step.amount);
    put_number(change_bodies_, step.when);
  }
  ++changes_;
  return true;
}

void Plan::append_buckets() {
  // The views of the keys are made when the text that they point to lies still.
  std::vector<std::size_t> ends;
  std::string rows;
  put_u16(text_, buckets_.size());
  for (const Planned& bucket : buckets_) {
    append_counters_key(key_texts_, begin_, bucket.key);
    ends.push_back(key_texts_.size());
    if (bucket.spec <= kMaxShortSpec && !bucket.leases && bucket.logs.empty() &&
        bucket.text.empty()) {
      put_u8(text_, static_cast<std::uint8_t>(bucket.spec));
      continue;
    }
    put_u8(text_, 0);
    put_u16(rows, bucket.spec);
    put_u8(rows, bucket.leases ? 1 : 0);
    put_u8(rows, static_cast<std::uint8_t>(bucket.logs.size()));
    const std::string_view kept = bucket.text.substr(0, kMaxStoredText);
    put_u16(rows, kept.size());
    if (bucket.leases) {
      append_leases_key(key_texts_, begin_, bucket.key);
      ends.push_back(key_texts_.size());
    }
    for (const Duration window : bucket.logs) {
      put_number(rows, window.count());
      append_log_key(key_texts_, begin_, bucket.key, window);
      ends.push_back(key_texts_.size());
    }
    rows += kept;
  }
  text_ += rows;
  std::size_t from = 0;
  for (const std::size_t end : ends) {
    keys_.push_back(std::string_view(key_texts_).substr(from, end - from));
    from = end;
  }
}

void Plan::finish(TimePoint not_after, std::int64_t birth) {
  first_birth_ = birth;
  put_number(text_, not_after.time_since_epoch().count());
  put_number(text_, birth);
  put_u16(text_, specs_.size());
  for (const limit::LimitSetPtr& limits : specs_) {
    put_u8(text_, static_cast<std::uint8_t>(limits->size()));
    for (const limit::Spec& spec : limits->specs()) {
      put_number(text_, code_of(spec.name));
      put_number(text_, spec.quota);
      put_number(text_, spec.capacity);
    }
  }
  append_buckets();
  put_u16(text_, changes_);
  text_ += change_bodies_;
  append_ops();
}

void Plan::append_ops() {
  put_u16(text_, ops_.size());
  const std::string* before = nullptr;
  for (const Op& op : ops_) {
    const bool same = before != nullptr && *before == op.terms;
    put_u16(text_, op.count);
    put_u8(text_, same ? 0 : 1);
    put_u16(text_, op.places.front());
    if (!same) text_ += op.terms;
    for (std::size_t i = 1; i < op.places.size(); ++i) put_u16(text_, op.places[i]);
    text_ += op.id;
    before = &op.terms;
  }
}

std::size_t Plan::asked_place(std::string_view key) const {
  return buckets_[places_.find(key)->second - 1].asked_place;
}

}  // namespace stint::store
