#include "net/event_loop.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "net/deadline.h"
#include "net/readiness.h"

namespace stint::net {
namespace {

using Timer = boost::asio::basic_waitable_timer<
    std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, Executor>;

constexpr auto kToken = boost::asio::as_tuple(boost::asio::use_awaitable_t<Executor>{});

}  // namespace

struct EventLoop::Impl {
  Impl() : deadlines([this] { schedule(); }) {
    timer.emplace(context);
    readiness.attach(context);
  }
  ~Impl() {
    // What is destroyed with the context takes deadlines out of the queue: no timer for those.
    timer.reset();
    readiness.detach();
  }

  // Has the timer fire for the earliest deadline.
  void schedule() {
    if (!timer) return;
    const std::optional<Duration> next = deadlines.next();
    if (!next) {
      timer->cancel();
      scheduled_for = Duration::max();
      return;
    }
    if (scheduled_for <= *next) return;
    scheduled_for = *next;
    timer->expires_at(std::chrono::steady_clock::time_point{*next});  // ends the wait before
    timer->async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      scheduled_for = Duration::max();
      deadlines.fire(system_clock().steady_now());
      schedule();
    });
  }

  // These two outlive the context, which may still own streams.
  DeadlineQueue deadlines;
  Readiness readiness;
  boost::asio::io_context context{1};
  std::optional<Timer> timer;
  Duration scheduled_for = Duration::max();
};

EventLoop::EventLoop() : impl_(std::make_unique<Impl>()) {}
EventLoop::~EventLoop() = default;

Executor EventLoop::executor() noexcept { return impl_->context.get_executor(); }

void EventLoop::run() {
  impl_->context.run();
  // For the next `run`. Not before: a `stop` that came first must end this one.
  impl_->context.restart();
}

void EventLoop::stop() noexcept { impl_->context.stop(); }

void EventLoop::post(std::move_only_function<void()> work) {
  boost::asio::post(impl_->context, std::move(work));
}

Task<bool> EventLoop::wait_for(Duration span) {
  auto state = co_await boost::asio::this_coro::cancellation_state;
  if (state.cancelled() != boost::asio::cancellation_type::none) co_return false;
  Timer timer(impl_->context, span);
  const auto [error] = co_await timer.async_wait(kToken);
  co_return !error;
}

Duration EventLoop::now() const noexcept { return system_clock().steady_now(); }

DeadlineQueue& EventLoop::deadlines() noexcept { return impl_->deadlines; }

Readiness& EventLoop::readiness() noexcept { return impl_->readiness; }

}  // namespace stint::net
