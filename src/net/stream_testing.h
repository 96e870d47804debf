// Pairs of connected streams for tests, and small helpers around them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

#include "net/connect.h"
#include "net/listener.h"
#include "net/loop_testing.h"
#include "net/stream.h"

namespace stint::net {

// Far more than a test ever waits for what is meant to happen.
inline constexpr Duration kLong = std::chrono::seconds{20};

struct StreamPair {
  Stream client;
  Stream server;
};

inline Task<StreamPair> connect_pair(EventLoop& loop, std::string address) {
  const Endpoint endpoint = parse_endpoint(address).value();
  Listener listener = Listener::open(loop, endpoint).value();
  ConnectTo to(endpoint.host, listener.port());
  auto client = co_await connect(loop, std::move(to), kLong);
  auto server = co_await listener.accept();
  StreamPair pair{std::move(client.value()), std::move(server.value())};
  co_return std::move(pair);
}

inline StreamPair make_pair(EventLoop& loop, const std::string& address = "127.0.0.1:0") {
  return run(loop, connect_pair(loop, address));
}

// Reads exactly `size` bytes, or what came before the end.
inline Task<std::string> read_exactly(Stream& stream, std::size_t size) {
  std::string result(size, '\0');
  std::size_t filled = 0;
  while (filled < size) {
    const std::span<char> room(result.data() + filled, size - filled);
    const auto read = co_await stream.read_some(room, kLong);
    if (!read) break;
    filled += *read;
  }
  result.resize(filled);
  co_return std::move(result);
}

inline Task<NetErrc> read_error(Stream& stream, Duration timeout) {
  char byte = 0;
  const std::span<char> room(&byte, 1);
  const auto read = co_await stream.read_some(room, timeout);
  if (read) ADD_FAILURE() << "read a byte where none was expected";
  co_return read ? NetErrc::failed : read.error().code;
}

}  // namespace stint::net
