// What one request asks of the store, and how it waits for the answers.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <thread>

#include "admission/limiter_core.h"
#include "base/mutex.h"
#include "net/event_loop.h"
#include "net/task.h"
#include "stint/limiter.h"
#include "stint/time.h"

namespace stint::gateway {

// What the requests of all loops share of this. Thread rule: any thread.
struct StoreCalls {
  // How long the end of an answer waits for its settlement to be acknowledged.
  std::atomic<Duration> settle_timeout{std::chrono::milliseconds{50}};
  // How long an admission is waited for: far beyond any time-out of a store, which answers
  // undecided by itself. Only for one that does not.
  std::atomic<Duration> admit_timeout{std::chrono::milliseconds{1050}};
  // Of one call to the store, from now on.
  void set_store_timeout(Duration timeout) noexcept {
    settle_timeout = timeout;
    admit_timeout = timeout + std::chrono::seconds{1};
  }
  // Calls under way whose request has ended.
  std::atomic<std::size_t> orphans{0};
};

// The calls to the store of one request. Mostly they are answered before they return, and nothing
// is waited for. An answer that comes later, on whatever thread, is brought to the request's loop;
// one that nobody wants any more is given back. Shared by the request and its calls under way.
// Thread rule: the loop's thread, but for what the store calls.
class StoreWait : public std::enable_shared_from_this<StoreWait> {
 public:
  // `loop` must live until `leave`.
  StoreWait(net::EventLoop& loop, std::shared_ptr<StoreCalls> calls);

  // Asks for an admission. The attributes need to live until it returns. One at a time.
  void ask(admission::LimiterCore& core, const Attributes& attributes, const Cost& cost);
  // Asks what an admission would say, and charges nothing; `take` gives that, with an empty
  // reservation.
  void look(admission::LimiterCore& core, const Attributes& attributes, const Cost& cost);
  [[nodiscard]] bool asking() const noexcept { return asking_; }
  // Completes with the answer, after `wake`, or after the time-out.
  [[nodiscard]] net::Task<void> until_answered();
  // The answer; undecided if it did not come. That one is dropped before it is sent, if it can
  // be, and else cancelled when it comes.
  [[nodiscard]] Result<Admission> take();
  // Instead of `take`: as if it had not come.
  void drop() noexcept;

  // To be given to the settlement of a reservation; then `settlements_sent`.
  [[nodiscard]] Reservation::Done settlement();
  void settlements_sent();
  // Whether the end of the answer has to wait: not all are acknowledged, and there is time left.
  [[nodiscard]] bool settling() const noexcept { return open_ > 0 && !waited_; }
  // Completes when all are acknowledged, or the time-out since they were sent has passed.
  [[nodiscard]] net::Task<void> until_settled();

  void wake() noexcept;
  // The request ends. What is still under way is nobody's from now on.
  void leave() noexcept;

 private:
  class Waiter;

  [[nodiscard]] net::Task<void> until_woken(Duration due);
  [[nodiscard]] bool on_loop() const noexcept { return std::this_thread::get_id() == thread_; }
  // Posts to the loop, unless the request has left.
  [[nodiscard]] bool post(std::move_only_function<void()>& work);
  void give_back(Result<Admission>& answer);
  // What the store calls, and what becomes of it on the loop.
  void answered(Result<Admission> answer);
  void settled();
  void deliver(Result<Admission> answer);
  void deliver_settled();
  // Of a request that has left. Any thread.
  void orphan_answered(Result<Admission>& answer);

  net::EventLoop& loop_;
  const std::shared_ptr<StoreCalls> calls_;
  const std::thread::id thread_ = std::this_thread::get_id();

  bool asking_ = false;     // somebody waits for the admission
  bool under_way_ = false;  // the store has it
  std::optional<Result<Admission>> answer_;
  std::size_t open_ = 0;  // settlements under way
  std::optional<Duration> settle_by_;
  bool waited_ = false;  // for settlements; once is enough
  bool left_ = false;
  bool elsewhere_ = false;  // another thread has posted, and may not be out of it yet
  Waiter* waiter_ = nullptr;
  std::atomic<bool> cancelled_{false};  // AdmissionRecord::cancelled

  base::Mutex mutex_;
  bool closed_ STINT_GUARDED_BY(mutex_) = false;  // the loop may be gone
};

}  // namespace stint::gateway
