#include "tests/contract/store_contract.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>
#include <utility>

namespace stint::store {
namespace {

// Far beyond what any store takes: only a store that never answers is caught by it.
constexpr std::chrono::seconds kNeverAnswers{60};

// Starts a call and waits until its callback came. The one place that knows that stores may
// answer later, on another thread; a second answer breaks the promise and ends the program.
template <class T, class Start>
T wait_for(Start start) {
  auto answer = std::make_shared<std::promise<T>>();
  std::future<T> future = answer->get_future();
  start(std::move(answer));
  if (future.wait_for(kNeverAnswers) != std::future_status::ready) {
    std::cerr << "the store did not answer\n";
    std::abort();
  }
  return future.get();
}

template <class Start>
void wait_until_done(Start start) {
  wait_for<bool>([&](std::shared_ptr<std::promise<bool>> answer) {
    start([answer = std::move(answer)] { answer->set_value(true); });
  });
}

}  // namespace

std::string store_name(const testing::TestParamInfo<StoreFactory>& info) { return info.param.name; }

void PrintTo(const StoreFactory& factory, std::ostream* out) { *out << factory.name; }

Call::Call(std::uint64_t id, Duration lease_ttl, const std::vector<BucketAsk>& buckets) {
  record_.id = base::Id{1, id};
  record_.lease_ttl = lease_ttl;
  for (const BucketAsk& ask : buckets) {
    BucketSlot slot;
    slot.key = texts_.emplace_back(ask.key);
    slot.text = texts_.emplace_back(ask.text);
    slot.policy = texts_.emplace_back(ask.key.substr(0, ask.key.find(':')));
    slot.limits = ask.limits;
    slot.first_slot = record_.slots.size();
    slot.shadow = ask.shadow;
    record_.buckets.push_back(std::move(slot));
    for (std::size_t i = 0; i < ask.limits->size(); ++i) {
      // One Ask is enough where all limits are asked the same.
      const Ask& asked = ask.asks.at(ask.asks.size() == 1 ? 0 : i);
      LimitSlot limit;
      limit.need = asked.need;
      limit.charge = asked.charge;
      limit.skip = asked.skip;
      record_.slots.push_back(limit);
    }
  }
}

const LimitSlot& Call::slot(std::size_t limit, std::size_t bucket) const {
  return record_.slots_of(record_.buckets[bucket])[limit];
}

Duration Call::wait() const {
  Duration longest{0};
  for (const BucketSlot& bucket : record_.buckets) {
    if (bucket.shadow) continue;
    for (const LimitSlot& limit : record_.slots_of(bucket)) longest = std::max(longest, limit.wait);
  }
  return longest;
}

limit::LimitSetPtr limits(const std::vector<Limit>& limits) {
  return limit::LimitSet::create(limits).value();
}

Limit token_bucket(std::int64_t quota, Duration window, std::int64_t burst) {
  Limit limit = requests_per(window, quota, Algorithm::token_bucket);
  limit.burst = burst;
  return limit;
}

void StoreContract::set_time(TimePoint now) {
  now_ = now;
  tested_->set_time(now);
}

Call StoreContract::call(const std::vector<BucketAsk>& buckets, Duration lease_ttl) {
  return Call(next_id_++, lease_ttl, buckets);
}

Outcome StoreContract::acquire(Call& call) {
  wait_until_done([&](Done done) { store().acquire(call.record(), std::move(done)); });
  return call.record().outcome;
}

Outcome StoreContract::peek(Call& call) {
  wait_until_done([&](Done done) { store().peek(call.record(), std::move(done)); });
  return call.record().outcome;
}

Call StoreContract::acquired(const std::vector<BucketAsk>& buckets, Duration lease_ttl) {
  Call made = call(buckets, lease_ttl);
  acquire(made);
  return made;
}

Call StoreContract::peeked(const std::vector<BucketAsk>& buckets) {
  Call made = call(buckets);
  peek(made);
  return made;
}

bool StoreContract::admits(const std::string& key, const limit::LimitSetPtr& limits,
                           std::int64_t cost) {
  return acquired({{key, limits, {{cost}}}}).admitted();
}

int StoreContract::admitted_of(int tries, const std::vector<BucketAsk>& buckets) {
  int admitted = 0;
  for (int i = 0; i < tries; ++i) admitted += acquired(buckets).admitted() ? 1 : 0;
  return admitted;
}

Result<void> StoreContract::settle(Call& call, const std::vector<std::int64_t>& actual) {
  AdmissionRecord& record = call.record();
  for (std::size_t i = 0; i < record.slots.size(); ++i) record.slots[i].actual = actual.at(i);
  return wait_for<Result<void>>([&](std::shared_ptr<std::promise<Result<void>>> answer) {
    store().settle(record, [answer = std::move(answer)](Result<void> result) {
      answer->set_value(std::move(result));
    });
  });
}

Result<void> StoreContract::give_back(Call& call) {
  return settle(call, std::vector<std::int64_t>(call.record().slots.size(), 0));
}

void StoreContract::renew(const std::vector<Call*>& calls) {
  std::vector<AdmissionRecord*> records;
  records.reserve(calls.size());
  for (Call* call : calls) records.push_back(&call->record());
  wait_until_done([&](Done done) { store().renew(records, std::move(done)); });
}

BucketPage StoreContract::list_page(std::string_view pattern, std::uint64_t cursor,
                                    std::size_t page_size) {
  BucketPage page;
  wait_until_done(
      [&](Done done) { store().list(pattern, cursor, page_size, page, std::move(done)); });
  EXPECT_LE(page.buckets.size(), page_size);
  EXPECT_TRUE(page.unreached.empty());
  return page;
}

std::vector<BucketInfo> StoreContract::list(std::string_view pattern, std::size_t page_size) {
  std::vector<BucketInfo> all;
  std::uint64_t cursor = 0;
  do {
    BucketPage page = list_page(pattern, cursor, page_size);
    std::ranges::move(page.buckets, std::back_inserter(all));
    cursor = page.next;
  } while (cursor != 0);
  return all;
}

std::size_t StoreContract::reset(std::string_view pattern) {
  std::size_t removed = 0;
  std::uint64_t cursor = 0;
  do {
    ResetPage page;
    wait_until_done([&](Done done) { store().reset(pattern, cursor, page, std::move(done)); });
    EXPECT_TRUE(page.unreached.empty());
    removed += page.removed;
    cursor = page.next;
  } while (cursor != 0);
  return removed;
}

std::int64_t StoreContract::value(std::string_view key, std::size_t counter) {
  for (const BucketInfo& bucket : list()) {
    if (bucket.key == key) return bucket.counters.at(counter).value;
  }
  return 0;
}

std::int64_t StoreContract::remaining(const std::string& key, const limit::LimitSetPtr& limits,
                                      std::size_t limit) {
  return peeked({{key, limits, {{.need = 0}}}}).slot(limit).remaining;
}

}  // namespace stint::store
