#include "tests/integration/redis_testing.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "net/socket.h"
#include "redis/command.h"

namespace stint::redis_testing {
namespace {

using net::FileDescriptor;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// One command over a new connection.
class BlockingClient {
 public:
  explicit BlockingClient(std::uint16_t port)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    timeval timeout{};
    timeout.tv_sec = 10;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    const sockaddr_in address = loopback(port);
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
        0) {
      throw std::runtime_error("connect to redis-server");
    }
  }

  redis::Reply command(std::span<const std::string_view> words) {
    std::string bytes;
    redis::append_command(bytes, words);
    if (::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("send to redis-server");
    }
    std::array<char, 16384> room;
    for (;;) {
      auto reply = reader_.next();
      if (!reply) throw std::runtime_error(reply.error());
      if (*reply) return std::move(**reply);
      const ssize_t n = ::recv(socket_.get(), room.data(), room.size(), 0);
      if (n <= 0) throw std::runtime_error("no reply from redis-server");
      reader_.feed({room.data(), static_cast<std::size_t>(n)});
    }
  }

 private:
  FileDescriptor socket_;
  redis::ReplyReader reader_;
};

}  // namespace

bool eventually(const std::function<bool()>& what, Duration within, Duration every) {
  const auto until = std::chrono::steady_clock::now() + within;
  while (!what()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    let_pass(every);
  }
  return true;
}

void let_pass(Duration span) {
  std::mutex mutex;
  std::condition_variable nobody_tells;
  std::unique_lock lock(mutex);
  const auto until = std::chrono::steady_clock::now() + span;
  nobody_tells.wait_until(lock, until, [] { return false; });
}

std::string info_field(const redis::Reply& info, std::string_view field) {
  const std::string begin = std::string(field) + ":";
  const std::string_view text = info.text();
  for (std::size_t at = 0; (at = text.find(begin, at)) != std::string_view::npos; ++at) {
    if (at > 0 && text[at - 1] != '\n') continue;
    const std::string_view value = text.substr(at + begin.size());
    return std::string(value.substr(0, value.find_first_of("\r\n")));
  }
  return {};
}

// Takes what the server says, so that it never waits for us, and tells when it is ready.
struct RedisServer::Log {
  explicit Log(int fd_in) : fd(fd_in), thread([this] { read(); }) {}
  ~Log() { thread.join(); }  // the pipe ends with the server

  void read() {
    std::array<char, 4096> room;
    for (;;) {
      const ssize_t n = ::read(fd.get(), room.data(), room.size());
      if (n < 0 && errno == EINTR) continue;
      const std::scoped_lock lock(mutex);
      if (n > 0) text.append(room.data(), static_cast<std::size_t>(n));
      ended = n <= 0;
      changed.notify_all();
      if (ended) return;
    }
  }
  [[nodiscard]] bool wait_for(std::string_view sign) {
    std::unique_lock lock(mutex);
    bool ready = false;
    changed.wait_for(lock, std::chrono::seconds{30}, [&] {
      ready = text.find(sign) != std::string::npos;
      return ready || ended;
    });
    return ready;
  }
  [[nodiscard]] std::string all() {
    const std::scoped_lock lock(mutex);
    return text;
  }

  FileDescriptor fd;
  std::mutex mutex;
  std::condition_variable changed;
  std::string text;
  bool ended = false;
  std::thread thread;
};

RedisServer::RedisServer() : RedisServer(Options()) {}

RedisServer::RedisServer(Options options) : options_(std::move(options)) {
  std::string pattern = (std::filesystem::temp_directory_path() / "stint_redis_XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  folder_ = pattern;
  start();
}

RedisServer::~RedisServer() {
  if (pid_ > 0) end(SIGKILL);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string RedisServer::url() const {
  const std::string login = options_.password.empty() ? "" : ":" + options_.password + "@";
  return "redis://" + login + "127.0.0.1:" + std::to_string(port());
}

redis::Reply RedisServer::command(std::initializer_list<std::string_view> words) {
  return command(std::vector<std::string_view>(words));
}

redis::Reply RedisServer::command(const std::vector<std::string_view>& words) {
  BlockingClient client(port());
  if (!options_.password.empty()) {
    const std::array<std::string_view, 2> login{"AUTH", options_.password};
    const redis::Reply answer = client.command(login);
    if (answer.text() != "OK") throw std::runtime_error(std::string(answer.text()));
  }
  return client.command(words);
}

void RedisServer::start() {
  for (int attempt = 0; attempt < 10; ++attempt) {
    if (!ports_fixed_) {
      port_ = OwnPort::take();
      if (!options_.cert_file.empty()) tls_port_ = OwnPort::take();
      if (options_.cluster) bus_port_ = OwnPort::take();
    }
    if (start_once()) {
      ports_fixed_ = true;
      return;
    }
    // Somebody else took the port meanwhile; anything else is final.
    if (log_->all().find("Address already in use") == std::string::npos) break;
  }
  throw std::runtime_error("redis-server does not start:\n" + log_->all());
}

bool RedisServer::start_once() {
  const std::string file = folder_ + "/redis.conf";
  // A Sentinel writes there what it has learned, and needs it when it comes back.
  if (!options_.sentinel || !ports_fixed_) {
    std::ofstream config(file);
    config << "bind 127.0.0.1\nport " << port() << "\ndir " << folder_
           << "\nsave \"\"\nappendonly no\ndaemonize no\nlogfile \"\"\n";
    if (!options_.password.empty()) config << "requirepass " << options_.password << '\n';
    for (const std::string& user : options_.users) config << "user " << user << '\n';
    if (tls_port() != 0) {
      config << "tls-port " << tls_port() << "\ntls-cert-file " << options_.cert_file
             << "\ntls-key-file " << options_.key_file << '\n';
      // Redis wants a CA in any case; its own certificate does where nobody is verified.
      const bool verified = !options_.ca_file.empty();
      config << "tls-ca-cert-file " << (verified ? options_.ca_file : options_.cert_file)
             << "\ntls-auth-clients " << (verified ? "yes" : "no") << '\n';
    }
    if (options_.cluster) {
      config << "cluster-enabled yes\ncluster-config-file nodes.conf\ncluster-port " << bus_port()
             << '\n';
    }
    for (const std::string& line : options_.config) config << line << '\n';
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  FileDescriptor ours(ends[0]);
  FileDescriptor theirs(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
    // Only what is allowed between fork and exec in a program with threads.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::dup2(theirs.get(), STDOUT_FILENO);
    ::dup2(theirs.get(), STDERR_FILENO);
    const char* const mode = options_.sentinel ? "--sentinel" : nullptr;
    ::execlp("redis-server", "redis-server", file.c_str(), mode, static_cast<char*>(nullptr));
    ::_exit(127);
  }
  pid_ = child;
  ::close(theirs.get());  // else the pipe would not end with the server
  theirs.release();
  log_.reset();
  log_ = std::make_unique<Log>(ours.get());
  ours.release();
  if (!log_->wait_for(options_.sentinel ? "Sentinel ID is" : "Ready to accept connections")) {
    end(SIGKILL);
    return false;
  }
  return command({"PING"}).text() == "PONG";
}

void RedisServer::end(int signal) {
  ::kill(pid_, signal);
  ::kill(pid_, SIGCONT);  // in case it is paused: SIGTERM would wait
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
  paused_ = false;
}

void RedisServer::stop() { end(SIGTERM); }
void RedisServer::kill() { end(SIGKILL); }

void RedisServer::restart() {
  if (pid_ > 0) end(SIGKILL);
  start();
}

void RedisServer::pause() {
  ::kill(pid_, SIGSTOP);
  ::waitpid(pid_, nullptr, WUNTRACED);
  paused_ = true;
}

void RedisServer::resume() {
  ::kill(pid_, SIGCONT);
  paused_ = false;
}

}  // namespace stint::redis_testing
