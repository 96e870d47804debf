#include "redis/server.h"

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "net/deadline.h"
#include "net/stream.h"
#include "redis/breaker.h"
#include "redis/session.h"

namespace stint::redis {
namespace {

// What limits a wait are the deadlines of calls, which the session knows. These are for streams,
// which want one with every wait.
constexpr Duration kReadTimeout = std::chrono::hours{1};
constexpr Duration kWriteTimeout = std::chrono::seconds{10};
constexpr std::size_t kReadBytes = std::size_t{16} * 1024;

// CLIENT SETNAME refuses blanks and control characters.
std::string printable(std::string name) {
  for (char& c : name) {
    if (c <= ' ' || c > '~') c = '-';
  }
  return name;
}

SessionOptions session_options(const ServerOptions& options) {
  SessionOptions session;
  session.username = options.address.username;
  session.password = options.address.password;
  session.client_name = printable(options.client_name);
  session.database = options.address.database;
  session.scripts = options.scripts;
  session.ask_time = options.ask_time;
  session.must_be_master = options.must_be_master;
  return session;
}

// The answers of a replica.
bool is_demotion(const CallError& error) {
  return error.code == "READONLY" || error.code == "MASTERDOWN";
}
// An answer to a probe from a node of a Cluster that is well, and has not got that key's slot.
bool is_elsewhere(const CallError& error) {
  return error.code == "MOVED" || error.code == "ASK" || error.code == "TRYAGAIN";
}

std::vector<std::string_view> views_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

}  // namespace

const char* to_string(ServerEvent::Kind kind) noexcept {
  switch (kind) {
    case ServerEvent::Kind::connected:
      return "connected";
    case ServerEvent::Kind::connect_failed:
      return "connect_failed";
    case ServerEvent::Kind::lost:
      return "lost";
    case ServerEvent::Kind::breaker_opened:
      return "breaker_opened";
    case ServerEvent::Kind::breaker_closed:
      return "breaker_closed";
    case ServerEvent::Kind::configuration:
      return "configuration";
    case ServerEvent::Kind::found:
      return "found";
    case ServerEvent::Kind::gone:
      return "gone";
  }
  return "unknown";
}

struct Server::Impl {
  Impl(net::EventLoop& loop_in, ServerOptions options_in)
      : loop(loop_in),
        options(std::move(options_in)),
        name(options.name.empty() ? to_string(options.address) : options.name),
        breaker(options.breaker_failures, *options.entropy),
        reconnects(*options.entropy),
        probes(*options.entropy),
        session(with_callbacks(session_options(options))),
        call_timer(loop.deadlines(), [this] { on_call_timer(); }),
        probe_timer(loop.deadlines(), [this] { send_probe(); }),
        tasks(loop),
        writers(loop) {}

  SessionOptions with_callbacks(SessionOptions session_options) {
    session_options.on_result = [this](const CallResult& result) { on_result(result); };
    session_options.on_configuration = [this](const std::string& text) {
      tell(ServerEvent::Kind::configuration, text);
    };
    return session_options;
  }

  [[nodiscard]] bool available() const noexcept {
    return session.state() == Session::State::ready && probed && !demoted && breaker.closed();
  }
  [[nodiscard]] bool alive() const noexcept {
    return session.state() == Session::State::ready ||
           session.state() == Session::State::handshaking;
  }

  // The connection.
  net::Task<void> run();
  net::Task<void> serve();
  net::Task<void> write_all();
  net::Task<void> stop();
  void flush();
  void flush_soon();
  void rearm();
  void on_call_timer();
  void on_logged_in();
  void end_if_demoted();

  // Health.
  void on_result(const CallResult& result);
  void failed(const std::string& text);
  void send_probe();
  void on_probe_reply(const CallResult& result);
  void tell(ServerEvent::Kind kind, const std::string& text) const;

  // Calls.
  template <class Send>
  void send(CallDone& done, Send send_it);

  net::EventLoop& loop;
  ServerOptions options;
  std::string name;
  Breaker breaker;
  Backoff reconnects;
  Backoff probes;  // of those that follow one that failed
  Session session;
  std::optional<net::Stream> stream{};
  std::array<char, kReadBytes> buffer{};
  std::string demotion{};  // what it said
  bool stopping = false;
  bool receiving = false;  // what is called meanwhile goes out together
  bool writing = false;
  std::shared_ptr<bool> soon = std::make_shared<bool>(false);  // a flush is posted; dies with us
  bool probed = false;                                         // on this connection, with success
  bool demoted = false;                                        // it has turned out to be a replica
  bool probing = false;                                        // a probe is under way
  bool probing_open_breaker = false;
  net::Deadline call_timer;
  net::Deadline probe_timer;
  net::TaskGroup tasks;
  net::TaskGroup writers;
};

net::Task<void> Server::Impl::run() {
  while (!stopping) {
    net::ConnectTo to(options.address.host, options.address.port);
    if (options.address.tls) to.tls = options.tls;
    auto connected = co_await net::connect(loop, std::move(to), options.connect_timeout);
    if (stopping) break;
    if (connected) {
      stream.emplace(std::move(*connected));
      co_await serve();
      co_await writers.join();
      stream.reset();
    } else {
      tell(ServerEvent::Kind::connect_failed, connected.error().text);
      failed(connected.error().text);
    }
    if (stopping) break;
    const Duration pause = reconnects.next();
    co_await loop.wait_for(pause);
  }
}

// From the login to the end of the connection.
net::Task<void> Server::Impl::serve() {
  const Duration begin = loop.now();
  probed = demoted = false;
  bool logged_in = false;
  session.open(begin, begin + options.connect_timeout);
  flush();
  rearm();
  const std::span<char> room(buffer);
  while (alive()) {
    const auto read = co_await stream->read_some(room, kReadTimeout);
    if (read) {
      receiving = true;
      session.received({buffer.data(), *read}, loop.now());
      receiving = false;
      if (!logged_in && session.state() == Session::State::ready) {
        logged_in = true;
        on_logged_in();
      }
      end_if_demoted();
    } else if (read.error().code != net::NetErrc::timed_out) {
      session.lost(Reason::lost, "the connection ended: " + read.error().text);
    }
    flush();
    rearm();
  }
  stream->close();
  probed = false;
  if (stopping) co_return;
  const std::string why = session.fault().text;
  tell(logged_in ? ServerEvent::Kind::lost : ServerEvent::Kind::connect_failed, why);
  failed(why);
}

void Server::Impl::on_logged_in() {
  tell(ServerEvent::Kind::connected, {});
  if (const auto& time = session.server_time(); time && options.on_time) {
    options.on_time(time->store_time, time->sent_at, time->received_at);
  }
  send_probe();
}

// Not before the others are answered, each of which says that it did not run.
void Server::Impl::end_if_demoted() {
  if (!demoted || session.pending() > 0) return;
  session.lost(Reason::lost, demotion);
  if (stream) stream->close();
}

// A write that the kernel takes at once ends before this returns.
void Server::Impl::flush() {
  if (receiving || writing || !stream || !session.has_output()) return;
  writing = true;
  writers.start(write_all());
}

void Server::Impl::flush_soon() {
  if (!options.gather_writes) return flush();
  if (receiving || std::exchange(*soon, true)) return;
  loop.post([this, weak = std::weak_ptr<bool>(soon)] {
    const auto posted = weak.lock();
    if (!posted) return;
    *posted = false;
    flush();
  });
}

net::Task<void> Server::Impl::write_all() {
  while (session.has_output()) {
    const std::string_view bytes = session.begin_write(loop.now());
    const auto written = co_await stream->write(bytes, std::string_view(), kWriteTimeout);
    session.end_write();
    if (!written) {
      session.lost(Reason::lost, "the connection ended: " + written.error().text);
      stream->close();
      break;
    }
  }
  writing = false;
}

void Server::Impl::rearm() {
  if (const auto next = session.next_tick()) {
    call_timer.arm(*next);
  } else {
    call_timer.disarm();
  }
}

void Server::Impl::on_call_timer() {
  session.tick(loop.now());
  end_if_demoted();
  if (!alive() && stream) stream->close();  // wakes who reads it
  flush();
  rearm();
}

// Calls that a lost connection took with it are one failure, which `serve` counts.
void Server::Impl::on_result(const CallResult& result) {
  if (result) {
    breaker.succeeded();
    return;
  }
  const CallError& error = result.error();
  if (is_demotion(error) && !demoted) {
    demoted = true;
    demotion = error.text;
  }
  const bool of_connection = error.reason == Reason::lost || error.reason == Reason::protocol;
  if (is_failure(error) && !of_connection) failed(error.text);
}

void Server::Impl::failed(const std::string& text) {
  if (!breaker.failed(loop.now())) return;
  if (!probing) probe_timer.arm(breaker.probe_at());
  tell(ServerEvent::Kind::breaker_opened, text);
}

void Server::Impl::send_probe() {
  // Without a connection there is nothing to probe; the next one begins with a probe.
  if (probing || stopping || session.state() != Session::State::ready) return;
  probing = true;
  probing_open_breaker = !breaker.closed();
  probe_timer.disarm();
  CallDone done = [this](CallResult result) { on_probe_reply(result); };
  const Duration now = loop.now();
  const Duration deadline = now + options.probe_timeout;
  if (options.probe.script != nullptr) {
    const Probe::Call probe = options.probe.make ? options.probe.make() : Probe::Call();
    session.call(*options.probe.script, views_of(probe.keys), views_of(probe.args), now, deadline,
                 std::move(done));
  } else {
    const std::string_view ping = "PING";
    session.command({&ping, 1}, now, deadline, std::move(done));
  }
  flush();
  rearm();
}

void Server::Impl::on_probe_reply(const CallResult& result) {
  probing = false;
  if (options.probe.on_reply) options.probe.on_reply(result);
  if (session.state() != Session::State::ready) return;
  const Duration now = loop.now();
  const bool elsewhere = !result && is_elsewhere(result.error());
  if (elsewhere && !options.in_cluster) {
    const std::string text =
        "it is a node of a Redis Cluster, whose nodes belong under `nodes` "
        "(mode cluster): " +
        result.error().text;
    tell(ServerEvent::Kind::configuration, text);
    tell(ServerEvent::Kind::connect_failed, text);
  } else if (result || elsewhere) {
    probed = true;
    probes.reset();
    reconnects.reset();
    probe_timer.arm(now + options.probe_every);
    if (breaker.probe_succeeded()) tell(ServerEvent::Kind::breaker_closed, {});
    return;
  }
  // If this failure opened the breaker, the time of the next probe is set already.
  if (probing_open_breaker) breaker.probe_failed(now);
  probe_timer.arm(breaker.closed() ? now + probes.next() : breaker.probe_at());
}

void Server::Impl::tell(ServerEvent::Kind kind, const std::string& text) const {
  if (!options.on_event) return;
  ServerEvent event;
  event.kind = kind;
  event.text = text;
  options.on_event(event);
}

template <class Send>
void Server::Impl::send(CallDone& done, Send send_it) {
  if (!available()) {
    CallError error;
    error.reason = stopping ? Reason::stopped : Reason::unavailable;
    if (session.state() != Session::State::ready) {
      error.text = session.fault().text;
    } else {
      error.text =
          breaker.closed() ? (demoted ? demotion : "not probed yet") : "the breaker is open";
    }
    done(std::unexpected(std::move(error)));
    return;
  }
  send_it(loop.now());
  flush_soon();
  rearm();
}

net::Task<void> Server::Impl::stop() {
  stopping = true;
  probe_timer.disarm();
  session.lost(Reason::stopped, "stopped");
  call_timer.disarm();
  if (stream) stream->close();
  tasks.cancel_all();
  co_await tasks.join();
}

Server::Server(net::EventLoop& loop, ServerOptions options) {
  if (options.address.tls && !options.tls) {
    throw std::invalid_argument("a Redis server with TLS, but no TLS context");
  }
  impl_ = std::make_unique<Impl>(loop, std::move(options));
}
Server::~Server() = default;

void Server::start() { impl_->tasks.start(impl_->run()); }

net::Task<void> Server::stop() { return impl_->stop(); }

void Server::call(const Script& script, std::span<const std::string_view> keys,
                  std::span<const std::string_view> args, Duration deadline, CallDone done) {
  impl_->send(done, [&](Duration now) {
    impl_->session.call(script, keys, args, now, deadline, std::move(done));
  });
}

void Server::call_asking(const Script& script, std::span<const std::string_view> keys,
                         std::span<const std::string_view> args, Duration deadline, CallDone done) {
  impl_->send(done, [&](Duration now) {
    impl_->session.call(script, keys, args, now, deadline, std::move(done), Session::Asking::yes);
  });
}

void Server::command(std::span<const std::string_view> words, Duration deadline, CallDone done) {
  impl_->send(done,
              [&](Duration now) { impl_->session.command(words, now, deadline, std::move(done)); });
}

bool Server::available() const noexcept { return impl_->available(); }
std::string_view Server::name() const noexcept { return impl_->name; }
const ServerAddress& Server::address() const noexcept { return impl_->options.address; }

}  // namespace stint::redis
