#include "admin/buckets.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "limit/bucket_key.h"
#include "net/arrival.h"

namespace stint::admin {
namespace {

constexpr int kMostCalls = 64;
constexpr Duration kMostTime = std::chrono::seconds{1};
// A text of a listing that is as long as this may be cut, see BucketInfo::key.
constexpr std::size_t kCutText = 1024;

Unreached silent() { return {"store", "it did not answer"}; }

// Kept alive by the call to the store: it may be answered when nobody waits any more.
template <class Page>
struct Call {
  std::string pattern;
  Page page{};
};

json::object counter(const BucketInfo::Counter& counter) {
  const bool bucket = counter.algorithm == Algorithm::token_bucket;
  Limit shown{.unit = counter.unit,
              .quota = counter.quota,
              .window = counter.window,
              .algorithm = counter.algorithm};
  if (bucket) shown.burst = counter.capacity;
  json::object out = limit(shown);
  // What is not left is used; more than the limit holds is seen in the counter itself.
  const std::int64_t raw = bucket ? counter.capacity - counter.value : counter.value;
  out["used"] = counter.remaining > 0 ? counter.capacity - counter.remaining
                                      : std::max(raw, counter.capacity);
  out["remaining"] = counter.remaining;
  out["reset_ms"] = milliseconds_up(counter.reset);
  return out;
}

// Policies by what the keys of their buckets begin with.
std::map<std::string, const Policy*, std::less<>> by_prefix(const config::Snapshot* snapshot) {
  std::map<std::string, const Policy*, std::less<>> found;
  if (snapshot == nullptr) return found;
  for (const auto* policies : {&snapshot->early(), &snapshot->late()}) {
    for (const Policy& policy : *policies) {
      std::string id;
      limit::append_escaped(id, policy.id);
      found.emplace(std::move(id), &policy);
    }
  }
  return found;
}

json::value policy_json(const Policy* policy) {
  if (policy == nullptr) return nullptr;
  json::object out;
  out["id"] = text(policy->id);
  out["name"] = text(policy->name.empty() ? policy->id : policy->name);
  return out;
}

// A decimal text: JavaScript's numbers do not hold 64 bits.
json::value cursor_json(std::uint64_t next) {
  return next == 0 ? json::value(nullptr) : json::value(std::to_string(next));
}

}  // namespace

net::Task<BucketPage> list_buckets(net::EventLoop& loop, store::RateStore& store, Sweep sweep) {
  BucketPage all;
  all.next = sweep.cursor;
  const Duration until = loop.now() + kMostTime;
  for (int calls = 0; calls < kMostCalls; ++calls) {
    auto call = std::make_shared<Call<BucketPage>>(sweep.pattern);
    net::Arrival arrival(loop);
    store::Done done = [call, signal = arrival.signal()]() mutable { signal(); };
    store.list(call->pattern, all.next, sweep.limit - all.buckets.size(), call->page,
               std::move(done));
    auto answered = co_await arrival.wait(sweep.store_wait);
    if (!answered) {
      all.unreached.push_back(silent());
      all.next = 0;
      break;
    }
    BucketPage& page = call->page;
    std::ranges::move(page.buckets, std::back_inserter(all.buckets));
    std::ranges::move(page.unreached, std::back_inserter(all.unreached));
    all.next = page.next;
    const bool enough = all.buckets.size() > (sweep.limit - 1) / 2;
    if (all.next == 0 || enough || loop.now() >= until) break;
  }
  co_return all;
}

net::Task<store::ResetPage> reset_buckets(net::EventLoop& loop, store::RateStore& store,
                                          Sweep sweep) {
  store::ResetPage all;
  all.next = sweep.cursor;
  const Duration until = loop.now() + kMostTime;
  for (int calls = 0; calls < kMostCalls; ++calls) {
    auto call = std::make_shared<Call<store::ResetPage>>(sweep.pattern);
    net::Arrival arrival(loop);
    store::Done done = [call, signal = arrival.signal()]() mutable { signal(); };
    store.reset(call->pattern, all.next, call->page, std::move(done));
    auto answered = co_await arrival.wait(sweep.store_wait);
    if (!answered) {
      all.unreached.push_back(silent());
      all.next = 0;
      break;
    }
    store::ResetPage& page = call->page;
    all.removed += page.removed;
    std::ranges::move(page.unreached, std::back_inserter(all.unreached));
    all.next = page.next;
    if (all.next == 0 || loop.now() >= until) break;
  }
  co_return all;
}

json::object listing(const BucketPage& page, const Places& places,
                     const config::Snapshot* snapshot) {
  const auto policies = by_prefix(snapshot);
  json::array buckets;
  for (const BucketInfo& bucket : page.buckets) {
    const std::string_view key = bucket.key;
    const auto policy = policies.find(key.substr(0, key.find(':')));
    json::array counters;
    for (const auto& one : bucket.counters) counters.push_back(counter(one));
    json::object out;
    out["key"] = text(key);
    out["policy"] = policy_json(policy == policies.end() ? nullptr : policy->second);
    out["shard"] = key.size() < kCutText ? json::value(text(places.shard_of(limit::key_of(key))))
                                         : json::value(nullptr);
    out["limits"] = std::move(counters);
    buckets.push_back(std::move(out));
  }
  json::object out;
  out["buckets"] = std::move(buckets);
  out["next"] = cursor_json(page.next);
  out["complete"] = page.unreached.empty();
  out["unreached"] = unreached(page.unreached);
  return out;
}

json::object reset_result(const store::ResetPage& page) {
  json::object out;
  out["removed"] = page.removed;
  out["next"] = cursor_json(page.next);
  out["complete"] = page.unreached.empty();
  out["unreached"] = unreached(page.unreached);
  return out;
}

}  // namespace stint::admin
