#include "tests/contract/redis_tested.h"

#include <mutex>
#include <set>
#include <stdexcept>
#include <utility>

namespace stint::store {
namespace {

using redis_testing::StoreRig;

// Sees to it that a bucket has its time before the store is asked about it.
class TimedStore final : public RateStore {
 public:
  TimedStore(RateStore& store, std::function<void(std::string_view bucket)> prepare)
      : store_(store), prepare_(std::move(prepare)) {}

  void acquire(AdmissionRecord& record, Done done) override {
    prepare(record);
    store_.acquire(record, std::move(done));
  }
  void peek(AdmissionRecord& record, Done done) override {
    prepare(record);
    store_.peek(record, std::move(done));
  }
  void settle(AdmissionRecord& record, Settled done) override {
    prepare(record);
    store_.settle(record, std::move(done));
  }
  void renew(std::span<AdmissionRecord* const> records, Done done) override {
    for (const AdmissionRecord* record : records) prepare(*record);
    store_.renew(records, std::move(done));
  }
  void reset(std::string_view pattern, std::uint64_t cursor, ResetPage& page, Done done) override {
    store_.reset(pattern, cursor, page, std::move(done));
  }
  void list(std::string_view pattern, std::uint64_t cursor, std::size_t page_size, BucketPage& page,
            Done done) override {
    store_.list(pattern, cursor, page_size, page, std::move(done));
  }
  [[nodiscard]] StoreStats stats() const override { return store_.stats(); }

 private:
  void prepare(const AdmissionRecord& record) {
    for (const BucketSlot& bucket : record.buckets) prepare_(bucket.key);
  }
  RateStore& store_;
  const std::function<void(std::string_view)> prepare_;
};

class RedisTested final : public TestedStore {
 public:
  RedisTested(TimePoint start, const redis::Deployment& deployment, TimeKeys time_keys,
              std::function<void(const std::string&, const std::string&)> set_key)
      : beside_(time_keys == TimeKeys::one_beside_each_bucket),
        prefix_(redis_testing::fresh_prefix()),
        scripts_(beside_ ? redis_testing::prelude_with_time_beside(prefix_ + ":now")
                         : redis_testing::prelude_with_time_of(prefix_ + ":now")),
        set_key_(std::move(set_key)) {
    set_time(start);
    StoreRig::Options options;
    options.deployment = deployment;
    options.store.key_prefix = prefix_;
    options.store.scripts = &scripts_;
    options.store.timeout = std::chrono::seconds{10};
    options.store.hooks.on_warning = [](std::string_view text) {
      ADD_FAILURE() << "the store warns: " << text;
    };
    rig_ = std::make_unique<StoreRig>(std::move(options));
    if (!rig_->wait_until_degraded(false)) throw std::runtime_error("no connection to Redis");
    timed_ = std::make_unique<TimedStore>(rig_->store(), [this](std::string_view bucket) {
      if (!beside_) return;
      const std::lock_guard lock(mutex_);  // whoever comes second finds the time set
      if (buckets_.emplace(bucket).second) set_time_of(std::string(bucket));
    });
  }
  [[nodiscard]] RateStore& store() override { return *timed_; }
  void set_time(TimePoint now) override {
    now_ = std::to_string(now.time_since_epoch().count());
    if (!beside_) set_key_(prefix_ + ":now", now_);
    for (const std::string& bucket : buckets_) set_time_of(bucket);
  }

 private:
  void set_time_of(const std::string& bucket) { set_key_(prefix_ + ":now{" + bucket + "}", now_); }

  const bool beside_;
  const std::string prefix_;
  const Scripts scripts_;
  const std::function<void(const std::string&, const std::string&)> set_key_;
  std::string now_;
  std::mutex mutex_;
  std::set<std::string> buckets_;  // that were asked for
  std::unique_ptr<StoreRig> rig_;
  std::unique_ptr<TimedStore> timed_;
};

}  // namespace

std::unique_ptr<TestedStore> make_redis_tested(
    TimePoint start, const redis::Deployment& deployment, TimeKeys time_keys,
    std::function<void(const std::string& key, const std::string& value)> set_key) {
  return std::make_unique<RedisTested>(start, deployment, time_keys, std::move(set_key));
}

}  // namespace stint::store
