#include "store/redis/change.h"

namespace stint::store {
namespace {

Change change_of(const AdmissionRecord& record, const BucketSlot& bucket) {
  Change change;
  change.key = bucket.key;
  if (bucket.text != bucket.key) change.text = bucket.text;
  change.limits = bucket.limits;
  change.birth = bucket.birth;
  change.id = record.id;
  return change;
}

std::optional<Change::Step> step_of(const limit::LimitName& name, const LimitSlot& slot) {
  const limit::Charge& charged = slot.charged;
  if (slot.skip || slot.actual == charged.amount) return std::nullopt;
  if (name.algorithm == Algorithm::sliding_log || name.algorithm == Algorithm::concurrency) {
    if (slot.actual != 0) return std::nullopt;
    return Change::Step{Action::remove, name, charged.amount, 0};
  }
  if (slot.actual > charged.amount) {
    return Change::Step{Action::take, name, slot.actual - charged.amount, 0};
  }
  return Change::Step{Action::give_back, name, charged.amount - slot.actual,
                      charged.window.time_since_epoch().count()};
}

}  // namespace

std::optional<Change> settlement(const AdmissionRecord& record, const BucketSlot& bucket) {
  if (!bucket.charged) return std::nullopt;
  std::optional<Change> change;
  const auto slots = record.slots_of(bucket);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto step = step_of((*bucket.limits)[i].name, slots[i]);
    if (!step) continue;
    if (!change) change = change_of(record, bucket);
    change->steps.push_back(*step);
  }
  return change;
}

std::optional<Change> renewal(const AdmissionRecord& record, const BucketSlot& bucket) {
  if (!bucket.charged) return std::nullopt;
  const auto slots = record.slots_of(bucket);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const limit::LimitName& name = (*bucket.limits)[i].name;
    if (name.algorithm != Algorithm::concurrency || slots[i].charged.amount == 0) continue;
    Change change = change_of(record, bucket);
    change.steps.push_back({Action::renew, name, record.lease_ttl.count(), 0});
    return change;
  }
  return std::nullopt;
}

}  // namespace stint::store
