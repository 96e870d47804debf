#include "net/arrival.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

namespace stint::net {
namespace {

using Timer = boost::asio::basic_waitable_timer<
    std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, Executor>;

constexpr auto kToken = boost::asio::as_tuple(boost::asio::use_awaitable_t<Executor>{});

}  // namespace

// Touched on the loop's thread only.
struct Arrival::State {
  explicit State(EventLoop& on) : loop(on) {}

  void arrived() {
    there = true;
    if (timer != nullptr) timer->cancel();
  }

  EventLoop& loop;
  bool there = false;
  Timer* timer = nullptr;  // of whoever waits
};

Arrival::Arrival(EventLoop& loop) : state_(std::make_shared<State>(loop)) {}
Arrival::~Arrival() = default;

std::move_only_function<void()> Arrival::signal() {
  return [state = state_] {
    if (state->loop.executor().running_in_this_thread()) return state->arrived();
    state->loop.post([state] { state->arrived(); });
  };
}

Task<bool> Arrival::wait(Duration span) {
  // In the frame of the coroutine: whatever ends that, nobody touches the timer afterwards.
  struct Waiting {
    Waiting(State& of, Duration for_span) : state(of), timer(of.loop.executor(), for_span) {
      state.timer = &timer;
    }
    ~Waiting() { state.timer = nullptr; }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    State& state;
    Timer timer;
  };
  const std::shared_ptr<State> state = state_;
  auto cancellation = co_await boost::asio::this_coro::cancellation_state;
  const bool cancelled = cancellation.cancelled() != boost::asio::cancellation_type::none;
  if (state->there || cancelled) co_return state->there;
  Waiting waiting(*state, span);
  co_await waiting.timer.async_wait(kToken);
  co_return state->there;
}

}  // namespace stint::net
