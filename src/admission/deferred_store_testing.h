// A store in memory that answers when the test says so, as one across a network does.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "store/memory/forward_clock.h"
#include "store/memory/memory_store.h"

namespace stint::admission {

// Calls are carried out at once; only their completion waits for `complete`.
// Not thread-safe.
class DeferredStore : public store::RateStore {
 public:
  explicit DeferredStore(const Clock& clock)
      : store_({}, std::make_unique<store::ForwardClock>(clock, nullptr)) {}

  // With `down`, acquire is undecided and settle unavailable; nothing is counted.
  bool down = false;
  std::size_t renewals = 0;
  store::AdmissionRecord* last = nullptr;  // that was to be acquired

  [[nodiscard]] std::size_t pending() const { return pending_.size(); }
  void complete() {
    auto next = std::move(pending_.front());
    pending_.pop_front();
    next();
  }

  void acquire(store::AdmissionRecord& record, store::Done done) override {
    last = &record;
    if (down) {
      record.outcome = Outcome::undecided;
      record.error = {ErrorCode::unavailable, "", "the store is away"};
    } else {
      store_.acquire(record);
    }
    pending_.push_back(std::move(done));
  }
  void peek(store::AdmissionRecord& record, store::Done done) override {
    store_.peek(record, std::move(done));
  }
  void settle(store::AdmissionRecord& record, store::Settled done) override {
    Result<void> result;
    if (down) {
      result = std::unexpected(Error{ErrorCode::unavailable, "", "the store is away"});
    } else {
      store_.settle(record);
    }
    pending_.push_back([done = std::move(done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  }
  void renew(std::span<store::AdmissionRecord* const> records, store::Done done) override {
    renewals += records.size();
    store_.renew(records);
    pending_.push_back(std::move(done));
  }
  void reset(std::string_view pattern, std::uint64_t cursor, store::ResetPage& page,
             store::Done done) override {
    store_.reset(pattern, cursor, page, std::move(done));
  }
  void list(std::string_view pattern, std::uint64_t cursor, std::size_t page_size, BucketPage& page,
            store::Done done) override {
    store_.list(pattern, cursor, page_size, page, std::move(done));
  }
  [[nodiscard]] store::StoreStats stats() const override { return store_.stats(); }

 private:
  store::MemoryStore store_;
  std::deque<std::move_only_function<void()>> pending_;
};

}  // namespace stint::admission
