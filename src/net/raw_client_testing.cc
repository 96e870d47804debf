#include "net/raw_client_testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>

namespace stint::net {

RawClient::RawClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  constexpr timeval kLong = {.tv_sec = 30, .tv_usec = 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &kLong, sizeof kLong);
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &kLong, sizeof kLong);
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("RawClient: connect");
  }
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool RawClient::fill() {
  if (ended_) return false;
  std::array<char, 64 * 1024> bytes;
  const ssize_t n = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
  if (n > 0) {
    unread_.append(bytes.data(), static_cast<std::size_t>(n));
    return true;
  }
  reset_ = n < 0 && errno == ECONNRESET;
  ended_ = n == 0 || reset_;
  return false;
}

std::string RawClient::read_until(std::string_view text) {
  std::size_t found = unread_.find(text);
  while (found == std::string::npos && fill()) found = unread_.find(text);
  const std::size_t size = found == std::string::npos ? unread_.size() : found + text.size();
  return take(size);
}

std::string RawClient::read(std::size_t size) {
  while (unread_.size() < size && fill()) {
  }
  return take(size);
}

std::string RawClient::take(std::size_t size) {
  std::string result = unread_.substr(0, size);
  unread_.erase(0, result.size());
  // Tests that count the memory of a server in the same program count ours, too.
  if (unread_.empty()) unread_.shrink_to_fit();
  return result;
}

std::optional<std::string> RawClient::read_to_end() {
  while (fill()) {
  }
  if (!ended_) return std::nullopt;
  return std::exchange(unread_, std::string());
}

void RawClient::close_sending() { ::shutdown(socket_.get(), SHUT_WR); }

void RawClient::close() { socket_ = FileDescriptor(); }

void RawClient::reset() {
  constexpr linger kReset = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &kReset, sizeof kReset);
  close();
}

void RawClient::shrink_receive_buffer() {
  const int size = 4096;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

}  // namespace stint::net
