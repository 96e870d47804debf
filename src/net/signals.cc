#include "net/signals.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <tuple>

namespace stint::net {

namespace asio = boost::asio;

struct Signals::Impl {
  explicit Impl(Executor executor) : set(executor) {}
  asio::basic_signal_set<Executor> set;
};

Signals::Signals(EventLoop& loop, std::initializer_list<int> signals)
    : impl_(std::make_unique<Impl>(loop.executor())) {
  for (const int signal : signals) impl_->set.add(signal);
}
Signals::~Signals() = default;

Task<int> Signals::next() {
  constexpr asio::as_tuple_t<asio::use_awaitable_t<Executor>> kToken;
  auto outcome = co_await impl_->set.async_wait(kToken);
  co_return std::get<0>(outcome) ? 0 : std::get<1>(outcome);
}

void Signals::cancel() noexcept {
  boost::system::error_code ignored;
  impl_->set.cancel(ignored);
}

}  // namespace stint::net
