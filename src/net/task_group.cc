#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cassert>
#include <chrono>
#include <exception>
#include <list>
#include <utility>

#include "net/event_loop.h"

namespace stint::net {
namespace {

using Timer = boost::asio::basic_waitable_timer<
    std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, Executor>;

constexpr auto kToken = boost::asio::as_tuple(boost::asio::use_awaitable_t<Executor>{});

// Cancellation is a result of what waits, not an exception at the next await: a task may still
// have something to settle.
Task<void> without_throwing(Task<void> task) {
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  co_await std::move(task);
}

bool is_cancellation(const std::exception& error) {
  const auto* system = dynamic_cast<const boost::system::system_error*>(&error);
  return system != nullptr && system->code() == boost::asio::error::operation_aborted;
}

}  // namespace

struct TaskGroup::Impl {
  explicit Impl(EventLoop& loop) : executor(loop.executor()), emptied(executor) {
    emptied.expires_at(Timer::time_point::max());
  }

  Executor executor;
  std::list<boost::asio::cancellation_signal> tasks;  // one for each that runs
  Timer emptied;                                      // never expires: cancelled to wake `join`
};

TaskGroup::TaskGroup(EventLoop& loop) : impl_(std::make_shared<Impl>(loop)) {}

TaskGroup::~TaskGroup() {
  // A task that is left would go on with what its owner has just destroyed.
  assert(impl_->tasks.empty());
}

void TaskGroup::start(Task<void> task) {
  impl_->tasks.emplace_front();
  const auto position = impl_->tasks.begin();
  auto ended = [this, group = impl_, position](const std::exception_ptr& exception) {
    group->tasks.erase(position);
    if (group->tasks.empty()) group->emptied.cancel();
    if (!exception) return;
    std::string what;
    try {
      std::rethrow_exception(exception);
    } catch (const std::exception& error) {
      if (is_cancellation(error)) return;  // it was cancelled before it began
      what = error.what();
    } catch (...) {
      what = "unknown exception";
    }
    if (!on_exception) std::rethrow_exception(exception);
    on_exception(what);
  };
  boost::asio::co_spawn(impl_->executor, without_throwing(std::move(task)),
                        boost::asio::bind_cancellation_slot(position->slot(), std::move(ended)));
}

std::size_t TaskGroup::running() const noexcept { return impl_->tasks.size(); }

void TaskGroup::cancel_all() noexcept {
  for (auto& task : impl_->tasks) task.emit(boost::asio::cancellation_type::terminal);
}

Task<void> TaskGroup::join() {
  const std::shared_ptr<Impl> group = impl_;
  while (!group->tasks.empty()) {
    co_await group->emptied.async_wait(kToken);
  }
}

}  // namespace stint::net
