#include "store/redis/local_bucket.h"

#include <algorithm>
#include <utility>

namespace stint::store {
namespace {

// Restored generations that are kept apart; settlements of older ones go to the store.
constexpr std::size_t kMaxGenerations = 16;

std::int64_t divisor(const LocalBucket::Start& start) noexcept {
  return start.rule == OnStoreError::local_full ? 1 : start.replicas;
}

Share share_for(const limit::Spec& spec, const LocalBucket::Start& start) {
  Share share{.replicas = divisor(start)};
  if (start.rule == OnStoreError::local_full || !start.heard) return share;
  share.heard = start.heard->find(spec.name);
  share.heard_at = start.heard->at;
  return share;
}

}  // namespace

LocalBucket::LocalBucket(std::string key, std::string text, limit::LimitSetPtr limits,
                         bool overflow, const Start& start)
    : key_(std::move(key)),
      text_(std::move(text)),
      limits_(std::move(limits)),
      overflow_(overflow) {
  begin(start);
}

void LocalBucket::begin(const Start& start) {
  rule_ = start.rule;
  replicas_ = start.replicas;
  begun_ = start.begun;
  not_spent_before_ = TimePoint::min();
  std::vector<LocalLimit> fresh;
  fresh.reserve(limits_->size());
  for (const limit::Spec& spec : limits_->specs()) {
    fresh.emplace_back(spec, share_for(spec, start), start.now);
  }
  counted_.swap(fresh);
}

void LocalBucket::fit(const limit::LimitSetPtr& limits, const Start& start) {
  const bool heard_since = start.heard && start.heard->at > taken_at_;
  if (!unsent() && (heard_since || spent(start.now))) {
    limits_ = limits;
    return begin(start);
  }
  // While something counts the share stays as it was.
  const bool divides_anew = start.replicas != replicas_ && spent(start.now);
  const std::int64_t replicas = divides_anew ? start.replicas : replicas_;
  if (limits_ == limits && rule_ == start.rule && replicas == replicas_) return;
  Start other = start;
  other.replicas = replicas;
  std::vector<LocalLimit> fitted;
  fitted.reserve(limits->size());
  for (const limit::Spec& spec : limits->specs()) {
    if (const LocalLimit* same = find(spec.name)) {
      fitted.push_back(*same);
      fitted.back().refit(spec, divisor(other));
    } else {
      fitted.emplace_back(spec, share_for(spec, other), start.now);
    }
  }
  counted_.swap(fitted);
  limits_ = limits;
  rule_ = start.rule;
  replicas_ = replicas;
}

LocalLimit* LocalBucket::find(const limit::LimitName& name) noexcept {
  const auto found = std::ranges::find(counted_, name, &LocalLimit::name);
  return found == counted_.end() ? nullptr : &*found;
}

void LocalBucket::advance(TimePoint now) {
  // For looking at leases that were given by whatever ttl: none is cut.
  for (LocalLimit& limit : counted_) limit.advance({now, {}, kMaxWindow});
}

bool LocalBucket::spent(TimePoint now) noexcept {
  if (now < not_spent_before_) return false;
  not_spent_before_ = limit::kAlwaysSpent;
  for (const LocalLimit& limit : counted_) {
    not_spent_before_ = std::max(not_spent_before_, limit.spent_at());
  }
  return not_spent_before_ <= now;
}

bool LocalBucket::holds(std::uint64_t generation) const noexcept {
  return std::ranges::count(generations_, generation) > 0;
}

std::uint64_t LocalBucket::generation(std::uint64_t fresh) {
  if (generations_.empty()) generations_.push_back(fresh);
  return generations_.back();
}

SpentBucket LocalBucket::take(TimePoint now) {
  advance(now);
  SpentBucket taken{key_, text_, limits_, {}, {}, begun_};
  taken.generations.assign(generations_.begin(), generations_.end());
  generations_.clear();
  taken_at_ = now;
  for (LocalLimit& limit : counted_) taken.spent.push_back(limit.take(now));
  return taken;
}

void LocalBucket::restore(const SpentBucket& spent, TimePoint now) {
  for (std::size_t i = 0; i < spent.spent.size(); ++i) {
    LocalLimit* limit = find((*spent.limits)[i].name);
    if (limit != nullptr) limit->restore(spent.spent[i], spent.begun != begun_, now);
  }
  generations_.insert(generations_.end(), spent.generations.begin(), spent.generations.end());
  std::ranges::sort(generations_);
  if (generations_.size() > kMaxGenerations) {
    generations_.erase(generations_.begin(), generations_.end() - kMaxGenerations);
  }
}

}  // namespace stint::store
