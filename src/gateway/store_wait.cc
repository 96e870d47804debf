#include "gateway/store_wait.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "net/deadline.h"

namespace stint::gateway {
namespace {

using Timer = boost::asio::basic_waitable_timer<
    std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, net::Executor>;

constexpr auto kToken = boost::asio::as_tuple(boost::asio::use_awaitable_t<net::Executor>{});

Admission undecided() {
  Admission admission;
  admission.decision.outcome = Outcome::undecided;
  admission.decision.error = {ErrorCode::unavailable, "", "the store did not answer"};
  return admission;
}

}  // namespace

// A request that waits. In the frame of the coroutine: whatever ends that, nobody wakes it
// afterwards.
class StoreWait::Waiter {
 public:
  explicit Waiter(StoreWait& owner)
      : owner_(owner),
        timer_(owner.loop_.executor()),
        deadline_(owner.loop_.deadlines(), [this] { wake(); }) {
    timer_.expires_at(Timer::time_point::max());  // never: cancelled to wake
    owner_.waiter_ = this;
  }
  ~Waiter() { owner_.waiter_ = nullptr; }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  void wake() { timer_.cancel(); }
  [[nodiscard]] net::Deadline& deadline() noexcept { return deadline_; }
  [[nodiscard]] Timer& timer() noexcept { return timer_; }

 private:
  StoreWait& owner_;
  Timer timer_;
  net::Deadline deadline_;
};

StoreWait::StoreWait(net::EventLoop& loop, std::shared_ptr<StoreCalls> calls)
    : loop_(loop), calls_(std::move(calls)) {}

void StoreWait::ask(admission::LimiterCore& core, const Attributes& attributes, const Cost& cost) {
  asking_ = true;
  under_way_ = true;
  admission::Admitted done = [self = shared_from_this()](Result<Admission> answer) {
    self->answered(std::move(answer));
  };
  core.admit(attributes, cost, std::move(done), &cancelled_);
}

void StoreWait::look(admission::LimiterCore& core, const Attributes& attributes, const Cost& cost) {
  asking_ = true;
  under_way_ = true;
  admission::Peeked done = [self = shared_from_this()](Result<Decision> decision) {
    Result<Admission> answer;
    if (decision) {
      answer->decision = std::move(*decision);
    } else {
      answer = std::unexpected(std::move(decision.error()));
    }
    self->answered(std::move(answer));
  };
  core.peek(attributes, cost, std::move(done));
}

net::Task<void> StoreWait::until_answered() {
  if (!asking_) co_return;
  const Duration due = loop_.now() + calls_->admit_timeout.load();
  co_await until_woken(due);
}

Result<Admission> StoreWait::take() {
  if (asking_) drop();
  if (!answer_) return undecided();
  Result<Admission> answer = std::move(*answer_);
  answer_.reset();
  return answer;
}

void StoreWait::drop() noexcept {
  if (std::exchange(asking_, false)) cancelled_.store(true, std::memory_order_relaxed);
  if (!answer_) return;
  give_back(*answer_);
  answer_.reset();
}

void StoreWait::give_back(Result<Admission>& answer) {
  if (answer && answer->reservation.holds()) answer->reservation.cancel(settlement());
  settlements_sent();
}

Reservation::Done StoreWait::settlement() {
  ++open_;
  return [self = shared_from_this()](const Result<void>&) { self->settled(); };
}

void StoreWait::settlements_sent() {
  if (open_ > 0 && !settle_by_) settle_by_ = loop_.now() + calls_->settle_timeout.load();
}

net::Task<void> StoreWait::until_settled() {
  if (!settling()) co_return;
  waited_ = true;
  co_await until_woken(*settle_by_);
}

net::Task<void> StoreWait::until_woken(Duration due) {
  auto state = co_await boost::asio::this_coro::cancellation_state;
  if (state.cancelled() != boost::asio::cancellation_type::none) co_return;
  Waiter waiter(*this);
  waiter.deadline().arm(due);
  Timer& timer = waiter.timer();
  co_await timer.async_wait(kToken);
}

void StoreWait::wake() noexcept {
  if (waiter_ != nullptr) waiter_->wake();
}

void StoreWait::leave() noexcept {
  drop();
  left_ = true;
  const std::size_t orphans = open_ + (under_way_ ? 1 : 0);
  if (orphans == 0 && !elsewhere_) return;  // nobody is left who could post
  calls_->orphans.fetch_add(orphans, std::memory_order_relaxed);
  const base::MutexLock lock(mutex_);
  closed_ = true;
}

bool StoreWait::post(std::move_only_function<void()>& work) {
  // Under the lock: until it is released the request cannot leave, and so the loop is there.
  const base::MutexLock lock(mutex_);
  if (closed_) return false;
  loop_.post(std::move(work));
  return true;
}

void StoreWait::answered(Result<Admission> answer) {
  if (on_loop()) return deliver(std::move(answer));
  auto held = std::make_shared<Result<Admission>>(std::move(answer));
  std::move_only_function<void()> work = [self = shared_from_this(), held] {
    self->elsewhere_ = true;
    self->deliver(std::move(*held));
  };
  if (!post(work)) orphan_answered(*held);
}

void StoreWait::deliver(Result<Admission> answer) {
  if (left_) return orphan_answered(answer);
  under_way_ = false;
  if (!asking_) return give_back(answer);  // too late
  asking_ = false;
  answer_ = std::move(answer);
  wake();
}

void StoreWait::orphan_answered(Result<Admission>& answer) {
  const auto less = [calls = calls_](const Result<void>&) {
    calls->orphans.fetch_sub(1, std::memory_order_release);
  };
  if (answer && answer->reservation.holds()) return answer->reservation.cancel(less);
  less({});
}

void StoreWait::settled() {
  if (on_loop()) return deliver_settled();
  std::move_only_function<void()> work = [self = shared_from_this()] {
    self->elsewhere_ = true;
    self->deliver_settled();
  };
  if (!post(work)) calls_->orphans.fetch_sub(1, std::memory_order_release);
}

void StoreWait::deliver_settled() {
  if (left_) {
    calls_->orphans.fetch_sub(1, std::memory_order_release);
    return;
  }
  if (--open_ == 0) wake();
}

}  // namespace stint::gateway
