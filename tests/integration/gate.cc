#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "net/socket.h"
#include "tests/integration/redis_testing.h"

namespace stint::redis_testing {
namespace {

using net::FileDescriptor;
using Steady = std::chrono::steady_clock;

constexpr std::size_t kMostWaiting = std::size_t{4} * 1024 * 1024;

// Bytes on their way to one side.
struct Direction {
  struct Piece {
    std::string bytes;
    Steady::time_point due;
  };
  std::deque<Piece> pieces;
  std::size_t waiting = 0;
  bool ended = false;  // the other side has closed

  void add(std::string bytes, Steady::time_point due) {
    waiting += bytes.size();
    pieces.push_back({std::move(bytes), due});
  }
};

struct Pair {
  FileDescriptor client;
  FileDescriptor server;
  Direction to_client;
  Direction to_server;
  bool over = false;
};

}  // namespace

struct Gate::Impl {
  explicit Impl(std::uint16_t to_port_in) : to_port(to_port_in), wake(::eventfd(0, EFD_CLOEXEC)) {
    listen();
    thread = std::thread([this] { work(); });
  }
  ~Impl() {
    run([this] { stopping = true; });
    thread.join();
  }

  // On the gate's thread; returns when it was done.
  void run(std::function<void()> change) {
    std::packaged_task<void()> task(std::move(change));
    auto done = task.get_future();
    {
      const std::scoped_lock lock(mutex);
      changes.push_back(std::move(task));
    }
    const std::uint64_t one = 1;
    if (::write(wake.get(), &one, sizeof one) != sizeof one) throw std::runtime_error("eventfd");
    done.get();
  }

  void listen() {
    listener = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port.number());
    if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener.get(), 64) != 0) {
      throw std::runtime_error("gate: bind or listen");
    }
  }

  void work() {
    while (!stopping) {
      std::vector<pollfd> polled;
      polled.push_back({wake.get(), POLLIN, 0});
      polled.push_back({listener.get(), POLLIN, 0});  // negative when refusing: ignored
      for (const Pair& pair : pairs) {
        polled.push_back({pair.client.get(), events(pair.to_server, pair.to_client), 0});
        polled.push_back({pair.server.get(), events(pair.to_client, pair.to_server), 0});
      }
      ::poll(polled.data(), polled.size(), timeout());
      std::size_t next = 2;
      for (Pair& pair : pairs) {
        const short client = polled[next++].revents;
        const short server = polled[next++].revents;
        serve(pair, client, server);
      }
      pairs.remove_if([](const Pair& pair) { return pair.over; });
      if ((polled[1].revents & POLLIN) != 0) accept();
      if ((polled[0].revents & POLLIN) != 0) apply_changes();
    }
  }

  // Of a socket whose bytes go to `from_it` and which gets those of `to_it`.
  [[nodiscard]] short events(const Direction& from_it, const Direction& to_it) const {
    short wanted = 0;
    if (!stalled && !from_it.ended && from_it.waiting < kMostWaiting) wanted |= POLLIN;
    if (!stalled && is_due(to_it)) wanted |= POLLOUT;
    return wanted;
  }
  [[nodiscard]] static bool is_due(const Direction& direction) {
    return !direction.pieces.empty() && direction.pieces.front().due <= Steady::now();
  }
  [[nodiscard]] int timeout() const {
    auto next = Steady::now() + std::chrono::hours{1};
    for (const Pair& pair : pairs) {
      for (const Direction* direction : {&pair.to_client, &pair.to_server}) {
        if (!direction->pieces.empty()) next = std::min(next, direction->pieces.front().due);
      }
    }
    if (stalled) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Steady::now()).count();
    return static_cast<int>(std::max<std::int64_t>(left, 0));
  }

  void accept() {
    FileDescriptor client(
        ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client.valid()) return;
    ++accepted;
    FileDescriptor server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(to_port);
    // On loopback this does not wait. If nobody is there, the client finds itself cut off.
    if (::connect(server.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return;
    const int on = 1;
    ::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(server.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Pair& pair = pairs.emplace_back();
    pair.client = std::move(client);
    pair.server = std::move(server);
  }

  void serve(Pair& pair, short client, short server) {
    constexpr short kReadable = POLLIN | POLLHUP | POLLERR;
    if (!stalled) {
      if ((client & kReadable) != 0) read(pair, pair.client, pair.to_server, true);
      if ((server & kReadable) != 0) read(pair, pair.server, pair.to_client, false);
      write(pair, pair.server, pair.to_server);
      write(pair, pair.client, pair.to_client);
    } else if (((client | server) & (POLLHUP | POLLERR)) != 0) {
      pair.over = true;  // poll reports it for ever
    }
  }

  void read(Pair& pair, const FileDescriptor& from, Direction& into, bool request) {
    std::array<char, 16384> room;
    const ssize_t n = ::recv(from.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
      into.ended = true;
      if (n < 0 || into.pieces.empty()) pair.over = true;
      return;
    }
    std::string bytes(room.data(), static_cast<std::size_t>(n));
    if (request) {
      requested += bytes.size();
      into.add(std::move(bytes), Steady::now());
      return;
    }
    if (dropping) return;
    if (corrupting) {
      for (char& c : bytes) c = static_cast<char>(c ^ 0x15);
    }
    if (cut_after) {
      if (bytes.size() >= *cut_after) {
        bytes.resize(*cut_after);
        into.ended = true;  // when these are written it is over
        cut_after.reset();
        if (bytes.empty()) pair.over = true;
      } else {
        *cut_after -= bytes.size();
      }
    }
    if (!bytes.empty()) into.add(std::move(bytes), Steady::now() + delay);
  }

  static void write(Pair& pair, const FileDescriptor& to, Direction& from) {
    while (!pair.over && is_due(from)) {
      std::string& bytes = from.pieces.front().bytes;
      const ssize_t n = ::send(to.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n < 0) {
        if (errno != EAGAIN && errno != EINTR) pair.over = true;
        return;
      }
      from.waiting -= static_cast<std::size_t>(n);
      bytes.erase(0, static_cast<std::size_t>(n));
      if (bytes.empty()) from.pieces.pop_front();
    }
    if (from.ended && from.pieces.empty()) pair.over = true;
  }

  void apply_changes() {
    std::uint64_t count = 0;
    if (::read(wake.get(), &count, sizeof count) != sizeof count) return;
    std::deque<std::packaged_task<void()>> todo;
    {
      const std::scoped_lock lock(mutex);
      todo.swap(changes);
    }
    for (auto& change : todo) change();
  }

  void heal() {
    if (!listener.valid()) listen();
    stalled = dropping = corrupting = false;
    delay = Duration::zero();
    cut_after.reset();
  }

  const std::uint16_t to_port;
  FileDescriptor wake;
  const OwnPort port = OwnPort::take();

  std::mutex mutex;
  std::deque<std::packaged_task<void()>> changes;  // guarded by mutex

  // Of the thread.
  FileDescriptor listener;
  std::list<Pair> pairs;
  std::size_t accepted = 0;
  std::size_t requested = 0;
  bool stalled = false;
  bool dropping = false;
  bool corrupting = false;
  Duration delay{};
  std::optional<std::size_t> cut_after;
  bool stopping = false;
  std::thread thread;
};

Gate::Gate(std::uint16_t to_port) : impl_(std::make_unique<Impl>(to_port)) {}
Gate::~Gate() = default;

std::uint16_t Gate::port() const noexcept { return impl_->port.number(); }

std::size_t Gate::accepted() {
  std::size_t result = 0;
  impl_->run([&] { result = impl_->accepted; });
  return result;
}

std::size_t Gate::requested() {
  std::size_t result = 0;
  impl_->run([&] { result = impl_->requested; });
  return result;
}

void Gate::pass() {
  impl_->run([this] { impl_->heal(); });
}
void Gate::refuse() {
  impl_->run([this] { impl_->listener = FileDescriptor(); });
}
void Gate::stall() {
  impl_->run([this] { impl_->stalled = true; });
}
void Gate::drop_replies() {
  impl_->run([this] { impl_->dropping = true; });
}
void Gate::delay(Duration span) {
  impl_->run([this, span] { impl_->delay = span; });
}
void Gate::cut_after(std::size_t bytes) {
  impl_->run([this, bytes] { impl_->cut_after = bytes; });
}
void Gate::corrupt() {
  impl_->run([this] { impl_->corrupting = true; });
}
void Gate::close_all() {
  impl_->run([this] { impl_->pairs.clear(); });
}

}  // namespace stint::redis_testing
