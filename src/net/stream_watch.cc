// How a stream is looked at without reading from it.
#include <poll.h>

#include <utility>

#include "net/stream_impl.h"

namespace stint::net {

Task<bool> Stream::Impl::watch_for_end() {
  watching_ = true;
  bool ended = false;
  while (watching_ && !closed_) {
    const Attempt attempt = try_peek();
    if (attempt.kind == Attempt::Kind::done) break;
    ended = attempt.kind == Attempt::Kind::failed;
    if (ended) break;
    reading_.timed_out = false;
    const auto over = co_await wait(attempt.kind, reading_);
    if (over) break;
  }
  watching_ = false;
  co_return ended;
}

void Stream::Impl::watch(std::move_only_function<void(bool ended)> done) {
  stop_watching();
  if (closed_) return;
  watch_ = std::make_shared<Watch>(this, std::move(done));
  arm_watch();
}

void Stream::Impl::arm_watch() {
  auto looked = [watch = watch_](const boost::system::error_code&) {
    if (watch->stream != nullptr) watch->stream->look();
  };
  if (socket_.may_be_ready(ReadySocket::Direction::read) || (tls_ && tls_->pending())) {
    loop_.post([looked = std::move(looked)] { looked({}); });
  } else {
    watch_->wait = socket_.wait(ReadySocket::Direction::read, std::move(looked));
  }
}

void Stream::Impl::look() {
  if (closed_) return;
  const std::shared_ptr<Watch> watch = watch_;
  const Attempt attempt = try_peek();
  if (attempt.kind == Attempt::Kind::want_read || attempt.kind == Attempt::Kind::want_write) {
    arm_watch();
    return;
  }
  watch->stream = nullptr;
  watch_.reset();
  watch->done(attempt.kind == Attempt::Kind::failed);
}

void Stream::Impl::stop_watching() noexcept {
  if (watching_) {
    watching_ = false;
    socket_.cancel();
  }
  if (watch_) {
    watch_->stream = nullptr;
    if (watch_->wait) socket_.drop(watch_->wait);
    watch_.reset();
  }
}

bool Stream::Impl::readable() const noexcept {
  return closed_ || (tls_ && tls_->pending()) || polled(POLLIN) != 0;
}

bool Stream::Impl::peer_ended() const noexcept {
  return closed_ || (polled(POLLRDHUP) & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

int Stream::Impl::polled(short events) const noexcept {
  pollfd asked{};
  asked.fd = socket_.get();
  asked.events = events;
  return ::poll(&asked, 1, 0) > 0 ? asked.revents : 0;
}

}  // namespace stint::net
