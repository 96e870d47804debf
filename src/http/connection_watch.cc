// How a connection notices that its client has gone while the handler waits for something else.
#include <chrono>
#include <utility>

#include "http/connection.h"

namespace stint::http {
namespace {

using net::NetResult;

// How often to look for the end behind bytes that have no room.
constexpr Duration kLookAgain = std::chrono::milliseconds{200};

}  // namespace

void Connection::watch_client(std::move_only_function<void()> gone) {
  gone_ = std::move(gone);
  if (client_gone_ || !stream_.open()) {
    client_has_gone();
    return;
  }
  arm_watch();
}

void Connection::arm_watch() {
  stream_.watch([this](bool ended) {
    if (ended) {
      client_has_gone();
    } else {
      look_at_client();
    }
  });
}

// The client sent something while the handler waits: a pipelined request, or a body that nobody
// has asked for yet. It is taken, within the limits of a head, to see what comes behind it.
void Connection::look_at_client() {
  const std::span<char> room = input_.room(input_cap_);
  if (!room.empty()) {
    const std::optional<NetResult<std::size_t>> read = stream_.read_waiting(room);
    if (read && !read->has_value()) {
      client_has_gone();
      return;
    }
    if (read) input_.add(**read);
    arm_watch();
    return;
  }
  if (stream_.peer_ended()) {
    client_has_gone();
    return;
  }
  if (!look_again_) {
    look_again_ =
        std::make_unique<net::Deadline>(server_.loop.deadlines(), [this] { look_at_client(); });
  }
  look_again_->arm(server_.loop.now() + kLookAgain);
}

void Connection::client_has_gone() noexcept {
  client_gone_ = true;
  auto gone = std::exchange(gone_, nullptr);
  unwatch_client();
  if (gone) gone();
}

void Connection::unwatch_client() noexcept {
  gone_ = nullptr;
  stream_.stop_watching();
  if (look_again_) look_again_->disarm();
}

}  // namespace stint::http
