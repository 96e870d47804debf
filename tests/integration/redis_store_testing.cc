#include "tests/integration/redis_store_testing.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <utility>

namespace stint::redis_testing {
namespace {

constexpr std::string_view kPrefix = "t";
// Far beyond what a store takes: only one that never answers is caught by it.
constexpr std::chrono::seconds kNeverAnswers{60};

}  // namespace

store::Done Answers::expect() {
  const std::lock_guard lock(mutex_);
  ++open_;
  return [this] { arrived(); };
}

void Answers::arrived() {
  const std::lock_guard lock(mutex_);
  if (--open_ == 0) all_here_.notify_all();
}

void Answers::wait() {
  std::unique_lock lock(mutex_);
  if (!all_here_.wait_for(lock, kNeverAnswers, [this] { return open_ == 0; })) {
    std::cerr << "the store did not answer\n";
    std::abort();
  }
}

Call call_of(const std::vector<BucketAsk>& buckets, OnStoreError rule, Duration lease_ttl) {
  static std::atomic<std::uint64_t> next{1};
  Call call(next.fetch_add(1), lease_ttl, buckets);
  for (store::BucketSlot& bucket : call.record().buckets) bucket.on_store_error = rule;
  return call;
}

Outcome acquire(StoreRig& rig, Call& call) {
  Answers answers;
  rig.store().acquire(call.record(), answers.expect());
  answers.wait();
  return call.record().outcome;
}

Outcome peek(StoreRig& rig, Call& call) {
  Answers answers;
  rig.store().peek(call.record(), answers.expect());
  answers.wait();
  return call.record().outcome;
}

Result<void> settle(StoreRig& rig, Call& call, const std::vector<std::int64_t>& actual) {
  store::AdmissionRecord& record = call.record();
  for (std::size_t i = 0; i < record.slots.size(); ++i) record.slots[i].actual = actual.at(i);
  Answers answers;
  Result<void> settled;
  rig.store().settle(record, [&settled, done = answers.expect()](Result<void> result) mutable {
    settled = std::move(result);
    done();
  });
  answers.wait();
  return settled;
}

Result<void> give_back(StoreRig& rig, Call& call) {
  return settle(rig, call, std::vector<std::int64_t>(call.record().slots.size(), 0));
}

void renew(StoreRig& rig, Call& call) {
  Answers answers;
  const std::vector<store::AdmissionRecord*> records{&call.record()};
  rig.store().renew(records, answers.expect());
  answers.wait();
}

void on_threads(int threads, const std::function<void(int)>& work) {
  std::vector<std::thread> all;
  all.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) all.emplace_back(work, i);
  for (std::thread& thread : all) thread.join();
}

store::RedisStoreHooks Told::hooks() {
  store::RedisStoreHooks hooks;
  hooks.of_target = [this](std::string_view) {
    store::RedisTargetHooks of_target;
    of_target.on_unknown_charges = [this](std::size_t count) { unknown_charges_ += count; };
    return of_target;
  };
  hooks.on_warning = [this](std::string_view text) {
    const std::lock_guard lock(mutex_);
    warnings_.emplace_back(text);
  };
  return hooks;
}

std::size_t Told::warnings_with(std::string_view text) const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(
      warnings_, [&](const std::string& warning) { return warning.contains(text); }));
}

std::string Told::warnings() const {
  const std::lock_guard lock(mutex_);
  std::string all;
  for (const std::string& warning : warnings_) all += warning + '\n';
  return all;
}

StoreRig::Options replica_on(const redis::Deployment& deployment, Told& told) {
  StoreRig::Options options;
  options.deployment = deployment;
  options.loops = 2;
  options.store.key_prefix = kPrefix;
  options.store.timeout = std::chrono::milliseconds{500};
  options.store.hooks = told.hooks();
  return options;
}

std::int64_t used_at(RedisServer& server, std::string_view bucket) {
  std::string key;
  store::append_counters_key(key, store::keys_begin(kPrefix), bucket);
  const redis::Reply reply = server.command({"GET", key});
  const auto stored = store::parse_bucket(reply.text());
  return stored ? stored->limits.at(0).numbers[1] : 0;
}

std::multiset<std::string> list_all(StoreRig& rig, std::string_view pattern,
                                    std::size_t page_size) {
  std::multiset<std::string> keys;
  std::uint64_t cursor = 0;
  do {
    BucketPage page;
    Answers answers;
    rig.store().list(pattern, cursor, page_size, page, answers.expect());
    answers.wait();
    EXPECT_TRUE(page.unreached.empty());
    for (const BucketInfo& bucket : page.buckets) keys.insert(bucket.key);
    cursor = page.next;
  } while (cursor != 0);
  return keys;
}

std::size_t reset_all(StoreRig& rig, std::string_view pattern) {
  std::size_t removed = 0;
  std::uint64_t cursor = 0;
  do {
    store::ResetPage page;
    Answers answers;
    rig.store().reset(pattern, cursor, page, answers.expect());
    answers.wait();
    EXPECT_TRUE(page.unreached.empty());
    removed += page.removed;
    cursor = page.next;
  } while (cursor != 0);
  return removed;
}

void expect_same(const store::AdmissionRecord& redis, const store::AdmissionRecord& model) {
  EXPECT_EQ(redis.outcome, model.outcome);
  EXPECT_EQ(redis.now, model.now);
  for (std::size_t i = 0; i < redis.buckets.size(); ++i) {
    EXPECT_EQ(redis.buckets[i].charged, model.buckets[i].charged) << redis.buckets[i].key;
  }
  for (std::size_t i = 0; i < redis.slots.size(); ++i) {
    const store::LimitSlot& ours = redis.slots[i];
    const store::LimitSlot& theirs = model.slots[i];
    EXPECT_EQ(ours.verdict, theirs.verdict) << i;
    EXPECT_EQ(ours.remaining, theirs.remaining) << i;
    EXPECT_EQ(ours.reset, theirs.reset) << i;
    EXPECT_EQ(ours.wait, theirs.wait) << i;
    EXPECT_EQ(ours.charged.amount, theirs.charged.amount) << i;
  }
}

StoreRig::Options RedisStoreTest::patient() const {
  StoreRig::Options options;
  options.url = server_.url();
  options.store.key_prefix = kPrefix;
  options.store.timeout = std::chrono::seconds{10};
  return options;
}

StoreRig::Options RedisStoreTest::patient_through(const Gate& gate) const {
  StoreRig::Options options = patient();
  options.url = "redis://127.0.0.1:" + std::to_string(gate.port());
  return options;
}

std::unique_ptr<StoreRig> RedisStoreTest::rig(StoreRig::Options options) {
  auto made = std::make_unique<StoreRig>(std::move(options));
  EXPECT_TRUE(made->wait_until_degraded(false));
  return made;
}

std::vector<std::unique_ptr<StoreRig>> RedisStoreTest::replicas(std::size_t count,
                                                                std::size_t loops) const {
  std::vector<std::unique_ptr<StoreRig>> made;
  for (std::size_t i = 0; i < count; ++i) {
    StoreRig::Options options = patient();
    options.loops = loops;
    made.push_back(rig(std::move(options)));
  }
  return made;
}

std::string RedisStoreTest::counters_key(std::string_view bucket) {
  std::string key;
  store::append_counters_key(key, store::keys_begin(kPrefix), bucket);
  return key;
}

std::string RedisStoreTest::leases_key(std::string_view bucket) {
  std::string key;
  store::append_leases_key(key, store::keys_begin(kPrefix), bucket);
  return key;
}

std::string RedisStoreTest::log_key(std::string_view bucket, Duration window) {
  std::string key;
  store::append_log_key(key, store::keys_begin(kPrefix), bucket, window);
  return key;
}

std::optional<store::StoredBucket> RedisStoreTest::stored(std::string_view bucket) {
  const redis::Reply reply = server_.command({"GET", counters_key(bucket)});
  return store::parse_bucket(reply.text());
}

std::int64_t RedisStoreTest::used(std::string_view bucket, std::size_t limit) {
  const auto found = stored(bucket);
  return found && limit < found->limits.size() ? found->limits[limit].numbers[1] : 0;
}

std::int64_t RedisStoreTest::count_of(std::string_view sorted_set) {
  return server_.command({"ZCARD", sorted_set}).integer();
}

std::int64_t RedisStoreTest::script_calls() {
  const redis::Reply reply = server_.command({"INFO", "commandstats"});
  const std::string_view all = reply.text();
  constexpr std::string_view kLine = "cmdstat_evalsha:calls=";
  const std::size_t at = all.find(kLine);
  if (at == std::string_view::npos) return 0;
  return std::stoll(std::string(all.substr(at + kLine.size(), 20)));
}

std::string RedisStoreTest::immortal_keys() {
  constexpr std::string_view kFind =
      "local found = {} "
      "for _, key in ipairs(redis.call('KEYS', '*')) do "
      "  if redis.call('PTTL', key) == -1 then found[#found + 1] = key end "
      "end "
      "return table.concat(found, ' ')";
  const redis::Reply reply = server_.command({"EVAL", kFind, "0"});
  return std::string(reply.text());
}

}  // namespace stint::redis_testing
