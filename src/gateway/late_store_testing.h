// A store as across a network: each call is carried out and answered when the test says so, in
// whatever order, on whatever thread it says it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/id.h"
#include "store/memory/forward_clock.h"
#include "store/memory/memory_store.h"

namespace stint::gateway {

// Its policies must have a concurrency limit, so that admissions have names, and one of requests,
// so that what is released differs from what is cancelled. Thread rule: any thread.
class LateStore final : public store::RateStore {
 public:
  enum class How {
    properly,   // as a store that looks whether anybody still waits, and then decides
    too_late,   // had been sent when that was to be seen
    not_known,  // undecided, unavailable
  };

  explicit LateStore(const Clock& clock)
      : store_({}, std::make_unique<store::ForwardClock>(clock, nullptr)) {}

  // Waits until so many calls have not been answered; false if there are not in a long time.
  [[nodiscard]] bool has_pending(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds{20},
                             [&] { return calls_.size() == count; });
  }
  [[nodiscard]] std::size_t pending() {
    const std::lock_guard lock(mutex_);
    return calls_.size();
  }
  // Whether the i-th of those is a settlement.
  [[nodiscard]] bool settles(std::size_t i) {
    const std::lock_guard lock(mutex_);
    return static_cast<bool>(calls_.at(i).settled);
  }
  // Answers the i-th of them, on this thread. False if there is none.
  bool answer(std::size_t i = 0, How how = How::properly) {
    Call call;
    {
      const std::lock_guard lock(mutex_);
      if (i >= calls_.size()) return false;
      call = std::move(calls_[i]);
      calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    changed_.notify_all();
    if (call.settled) {
      call.settled(settle(*call.record, how));
    } else if (call.looks) {
      store_.peek(*call.record, std::move(call.done));
    } else {
      decide(*call.record, how);
      call.done();
    }
    return true;
  }

  // Admissions that were never sent, as nobody waited any more.
  [[nodiscard]] std::size_t dropped() {
    const std::lock_guard lock(mutex_);
    return dropped_;
  }
  // Settlements that left nothing of what was charged: cancelled, not released.
  [[nodiscard]] std::size_t given_back() {
    const std::lock_guard lock(mutex_);
    return given_back_;
  }
  // Admitted and not settled.
  [[nodiscard]] std::size_t held() {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }

  void acquire(store::AdmissionRecord& record, store::Done done) override {
    add({&record, std::move(done), nullptr, false});
  }
  void settle(store::AdmissionRecord& record, store::Settled done) override {
    add({&record, nullptr, std::move(done), false});
  }
  void peek(store::AdmissionRecord& record, store::Done done) override {
    add({&record, std::move(done), nullptr, true});
  }
  void renew(std::span<store::AdmissionRecord* const> records, store::Done done) override {
    store_.renew(records, std::move(done));
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
  struct Call {
    store::AdmissionRecord* record = nullptr;
    store::Done done;        // of an admission, or of a look at one
    store::Settled settled;  // of a settlement
    bool looks = false;
  };

  void add(Call call) {
    {
      const std::lock_guard lock(mutex_);
      calls_.push_back(std::move(call));
    }
    changed_.notify_all();
  }

  void decide(store::AdmissionRecord& record, How how) {
    const std::lock_guard lock(mutex_);
    const bool drop = how == How::properly && record.cancelled != nullptr && *record.cancelled;
    if (drop) ++dropped_;
    if (drop || how == How::not_known) {
      record.outcome = Outcome::undecided;
      record.error = {ErrorCode::unavailable, "", "the store is away"};
      return;
    }
    store_.acquire(record);
    if (record.outcome == Outcome::admitted) EXPECT_TRUE(held_.insert(record.id).second);
  }

  Result<void> settle(store::AdmissionRecord& record, How how) {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(held_.erase(record.id), 1U) << "settled twice, or never admitted";
    if (std::ranges::all_of(record.slots, [](const auto& slot) { return slot.actual == 0; })) {
      ++given_back_;
    }
    if (how == How::not_known) {
      return std::unexpected(Error{ErrorCode::unavailable, "", "the store is away"});
    }
    store_.settle(record);
    return {};
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  store::MemoryStore store_;
  std::vector<Call> calls_;  // oldest first
  std::set<base::Id> held_;
  std::size_t dropped_ = 0;
  std::size_t given_back_ = 0;
};

}  // namespace stint::gateway
