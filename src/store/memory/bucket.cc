#include "store/memory/bucket.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace stint::store {
namespace {

using limit::Counter;
using limit::LimitSetPtr;
using limit::Moment;
using limit::Spec;

static_assert(alignof(Counter) <= alignof(Bucket));

}  // namespace

Bucket::Bucket(std::uint64_t hash, LimitSetPtr limits, bool overflow) noexcept
    : overflow_(overflow), limits_(std::move(limits)), hash_(hash) {}

Bucket::~Bucket() {
  for (std::size_t i = 0; i < limits_->size(); ++i) counters()[i].destroy((*limits_)[i]);
}

void Bucket::Destroy::operator()(Bucket* bucket) const noexcept {
  bucket->~Bucket();
  ::operator delete(bucket);
}

Bucket* Bucket::allocate(std::uint64_t hash, std::string_view key, std::string_view text,
                         LimitSetPtr limits, bool overflow) {
  const std::string_view kept = text == key ? std::string_view{} : text.substr(0, kMaxKeptText);
  const std::size_t counters = limits->size() * sizeof(Counter);
  void* block = ::operator new(sizeof(Bucket) + counters + key.size() + kept.size());
  auto* bucket = new (block) Bucket(hash, std::move(limits), overflow);
  bucket->key_size_ = static_cast<std::uint16_t>(key.size());
  bucket->text_size_ = static_cast<std::uint16_t>(kept.size() & 0x7FFF);
  std::ranges::copy(key, bucket->chars());
  std::ranges::copy(kept, bucket->chars() + key.size());
  return bucket;
}

Bucket::Owner Bucket::create(std::uint64_t hash, std::string_view key, std::string_view text,
                             LimitSetPtr limits, bool overflow) {
  Bucket* bucket = allocate(hash, key, text, std::move(limits), overflow);
  for (std::size_t i = 0; i < bucket->limits().size(); ++i) {
    new (&bucket->counters()[i]) Counter(Counter::fresh(bucket->limits()[i]));
  }
  return Owner(bucket);
}

Bucket::Owner Bucket::clone() const {
  Bucket* copy = allocate(hash_, key(), text(), limits_, overflow());
  for (std::size_t i = 0; i < limits_->size(); ++i) {
    new (&copy->counters()[i]) Counter(counters()[i].clone((*limits_)[i]));
  }
  return Owner(copy);
}

Bucket::Owner Bucket::with_limits(LimitSetPtr limits) {
  Bucket* other = allocate(hash_, key(), text(), std::move(limits), overflow());
  for (std::size_t i = 0; i < other->limits().size(); ++i) {
    const Spec& spec = other->limits()[i];
    const auto old = limits_->find(spec.name);
    Counter fresh = Counter::fresh(spec);
    if (old) std::swap(fresh, counters()[*old]);
    new (&other->counters()[i]) Counter(fresh);
  }
  other->slot = slot;
  return Owner(other);
}

char* Bucket::chars() noexcept {
  return reinterpret_cast<char*>(this + 1) + limits_->size() * sizeof(Counter);
}
const char* Bucket::chars() const noexcept { return const_cast<Bucket*>(this)->chars(); }

std::string_view Bucket::key() const noexcept { return {chars(), key_size_}; }

std::string_view Bucket::text() const noexcept {
  return text_size_ == 0 ? key() : std::string_view(chars() + key_size_, text_size_);
}

std::span<Counter> Bucket::counters() noexcept {
  return {std::launder(reinterpret_cast<Counter*>(this + 1)), limits_->size()};
}
std::span<const Counter> Bucket::counters() const noexcept {
  return const_cast<Bucket*>(this)->counters();
}

void Bucket::advance(const Moment& at) {
  for (std::size_t i = 0; i < limits_->size(); ++i) counters()[i].advance((*limits_)[i], at);
}

TimePoint Bucket::spent_at() const noexcept {
  TimePoint latest = limit::kAlwaysSpent;
  for (std::size_t i = 0; i < limits_->size(); ++i) {
    latest = std::max(latest, counters()[i].spent_at((*limits_)[i]));
  }
  return latest;
}

bool Bucket::spent(TimePoint now) const noexcept { return spent_at() <= now; }

std::int64_t Bucket::left(TimePoint now) const noexcept {
  std::int64_t least = 1024;
  for (std::size_t i = 0; i < limits_->size(); ++i) {
    const Spec& spec = (*limits_)[i];
    const std::int64_t remaining = counters()[i].read(spec, now).remaining;
    const bool leases = spec.name.unit == Unit::concurrency && counters()[i].value(spec) > 0;
    if (leases) return -1;
    // Refuses everything, with or without the bucket.
    if (spec.capacity == 0 || spec.quota == 0) continue;
    if (remaining == 0) return -1;
    // remaining * 1024 <= 2^63 because a quantity is less than 2^53.
    least = std::min(least, remaining * 1024 / spec.capacity);
  }
  return least;
}

}  // namespace stint::store
