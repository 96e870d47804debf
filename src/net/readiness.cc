#include "net/readiness.h"

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <system_error>

namespace stint::net {
namespace {

constexpr std::uint32_t kEnd = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
constexpr std::uint32_t kForReaders = EPOLLIN | kEnd;
constexpr std::uint32_t kForWriters = EPOLLOUT | EPOLLHUP | EPOLLERR;

}  // namespace

Readiness::Readiness() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.valid()) throw std::system_error(errno, std::system_category(), "epoll_create1");
}

Readiness::~Readiness() = default;

void Readiness::attach(boost::asio::io_context& context) {
  context_ = &context;
  descriptor_.emplace(context, epoll_.get());
}

void Readiness::detach() {
  // What waits may own the sockets, so the calls go first; the sockets go with them.
  std::vector<std::shared_ptr<ReadySocket::Wait>> left;
  for (ReadySocket* socket : sockets_) {
    for (auto& waits : socket->waits_) {
      for (auto& wait : waits) {
        wait->socket_ = nullptr;
        left.push_back(std::move(wait));
      }
      waits.clear();
    }
  }
  waits_ = 0;
  for (const auto& wait : left) wait->call_ = nullptr;
  descriptor_->release();  // the epoll outlives it
  descriptor_.reset();
  context_ = nullptr;
}

void Readiness::begin_wait() {
  if (waits_++ == 0 && !armed_ && !dispatching_) arm();
}

// With nobody waiting nothing may keep the loop running.
void Readiness::end_wait() noexcept {
  if (--waits_ > 0 || !armed_ || dispatching_) return;
  boost::system::error_code ignored;
  descriptor_->cancel(ignored);
}

void Readiness::arm() {
  armed_ = true;
  descriptor_->async_wait(Descriptor::wait_read, [this](const boost::system::error_code& error) {
    armed_ = false;
    if (!error) dispatch();
    if (waits_ > 0 && !armed_) arm();
  });
}

void Readiness::dispatch() {
  const int found =
      ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), /*timeout=*/0);
  event_count_ = found > 0 ? static_cast<std::size_t>(found) : 0;
  dispatching_ = true;
  // First all are told of, so that whoever is called sees what is known of any socket.
  for (std::size_t i = 0; i < event_count_; ++i) {
    static_cast<ReadySocket*>(events_[i].data.ptr)->happened(events_[i].events);
  }
  // What is under way goes on before anything new is begun: an answer that is there does not wait
  // for all the requests that came with it.
  wake_all(/*idle_too=*/false);
  wake_all(/*idle_too=*/true);
  event_count_ = 0;
  dispatching_ = false;
}

// Each once, so the second time those that are left.
void Readiness::wake_all(bool idle_too) {
  for (std::size_t i = 0; i < event_count_; ++i) {
    auto* const socket = static_cast<ReadySocket*>(events_[i].data.ptr);
    if (socket == nullptr || (socket->idle_ && !idle_too)) continue;
    events_[i].data.ptr = nullptr;
    socket->wake(events_[i].events);
  }
}

void Readiness::forget(const ReadySocket& socket) noexcept {
  for (std::size_t i = 0; i < event_count_; ++i) {
    if (events_[i].data.ptr == &socket) events_[i].data.ptr = nullptr;
  }
}

ReadySocket::ReadySocket(Readiness& readiness, FileDescriptor socket)
    : readiness_(readiness), socket_(std::move(socket)) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = this;
  if (::epoll_ctl(readiness_.epoll_.get(), EPOLL_CTL_ADD, socket_.get(), &event) != 0) {
    error_ = errno;
  }
  position_ = readiness_.sockets_.insert(readiness_.sockets_.end(), this);
}

ReadySocket::~ReadySocket() {
  close();
  readiness_.sockets_.erase(position_);
  if (gone_ != nullptr) *gone_ = true;
}

std::shared_ptr<ReadySocket::Wait> ReadySocket::wait(Direction direction, Call call) {
  auto begun = std::make_shared<Wait>(*this, direction, std::move(call));
  waits_[index(direction)].push_back(begun);
  readiness_.begin_wait();
  return begun;
}

bool ReadySocket::remove(const Wait& wait) noexcept {
  const auto same = [&wait](const std::shared_ptr<Wait>& each) { return each.get() == &wait; };
  if (std::erase_if(waits_[index(wait.direction_)], same) == 0) return false;
  readiness_.end_wait();
  return true;
}

void ReadySocket::drop(const std::shared_ptr<Wait>& wait) noexcept {
  if (wait->socket_ == nullptr) return;
  wait->socket_ = nullptr;
  (void)remove(*wait);
  wait->call_ = nullptr;
}

void ReadySocket::abort_later(std::shared_ptr<Wait> wait) {
  wait->socket_ = nullptr;
  if (readiness_.context_ == nullptr) return;
  boost::asio::post(*readiness_.context_, [wait = std::move(wait)] {
    wait->finish(boost::asio::error::operation_aborted);
  });
}

void ReadySocket::cancel() noexcept {
  for (auto& waits : waits_) {
    for (auto& each : std::exchange(waits, {})) {
      abort_later(std::move(each));
      readiness_.end_wait();
    }
  }
}

void ReadySocket::close() noexcept {
  if (!socket_.valid()) return;
  readiness_.forget(*this);
  cancel();
  const FileDescriptor closed = std::move(socket_);  // which takes it out of the epoll
}

void ReadySocket::happened(std::uint32_t events) noexcept {
  if ((events & kEnd) != 0) ended_ = true;
  if ((events & kForReaders) != 0) ready_[index(Direction::read)] = true;
  if ((events & kForWriters) != 0) ready_[index(Direction::write)] = true;
}

void ReadySocket::wake(std::uint32_t events) {
  bool gone = false;
  gone_ = &gone;
  if ((events & kForReaders) != 0) wake(Direction::read, gone);
  if (!gone && (events & kForWriters) != 0) wake(Direction::write, gone);
  if (!gone) gone_ = nullptr;
}

// Those who wait now, not those who come meanwhile.
void ReadySocket::wake(Direction direction, const bool& gone) {
  auto& waits = waits_[index(direction)];
  for (std::size_t left = waits.size(); left > 0 && !gone && !waits.empty(); --left) {
    const std::shared_ptr<Wait> first = std::move(waits.front());
    waits.erase(waits.begin());
    first->socket_ = nullptr;
    readiness_.end_wait();
    first->finish({});
  }
}

}  // namespace stint::net
