#include "redis/sentinel.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <utility>

#include "net/deadline.h"
#include "redis/master_search.h"
#include "redis/retired.h"

namespace stint::redis {
namespace {

// A Sentinel that stays away is told of so often.
constexpr Duration kTellAgainAfter = std::chrono::minutes{5};

MasterSearch::Options search_options(const SentinelOptions& options) {
  MasterSearch::Options search;
  search.sentinels = options.sentinels.size();
  return search;
}

ServerOptions sentinel_options(const SentinelOptions& options, const ServerAddress& address) {
  ServerOptions server;
  server.address = address;
  server.client_name = options.master.client_name;
  server.tls = address.tls ? options.sentinel_tls : nullptr;
  server.ask_time = false;
  server.connect_timeout = options.master.connect_timeout;
  server.entropy = options.master.entropy;
  return server;
}

// What keys see: the server that is the master now.
class MasterTarget final : public Target {
 public:
  explicit MasterTarget(std::string name) : name_(std::move(name)) {}

  void call(const Script& script, std::span<const std::string_view> keys,
            std::span<const std::string_view> args, Duration deadline, CallDone done) override {
    if (server) return server->call(script, keys, args, deadline, std::move(done));
    refuse(done);
  }
  void command(std::span<const std::string_view> words, Duration deadline, CallDone done) override {
    if (server) return server->command(words, deadline, std::move(done));
    refuse(done);
  }
  [[nodiscard]] bool available() const noexcept override { return server && server->available(); }
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }

  std::unique_ptr<Server> server{};  // null: nobody has named one

 private:
  void refuse(CallDone& done) {
    CallError error;
    error.text = "no Sentinel has named the master yet";
    done(std::unexpected(std::move(error)));
  }
  std::string name_;
};

}  // namespace

struct Sentinel::Impl {
  Impl(net::EventLoop& loop_in, SentinelOptions options_in)
      : loop(loop_in),
        options(std::move(options_in)),
        target(options.master.name.empty() ? options.master_name : options.master.name),
        search(search_options(options)),
        timer(loop.deadlines(), [this] { ask(); }),
        retired(loop) {
    for (std::size_t i = 0; i < options.sentinels.size(); ++i) {
      ServerOptions made = sentinel_options(options, options.sentinels[i]);
      made.on_event = [this, i](const ServerEvent& event) { on_sentinel_event(i, event); };
      made.probe.on_reply = [this](const CallResult& result) {
        if (!result) return;
        search.reachable(loop.now());
        arm();
      };
      sentinels.push_back(std::make_unique<Server>(loop, std::move(made)));
    }
    troubles.resize(sentinels.size());
  }

  void ask();
  void ask_one(std::size_t sentinel);
  void on_answers(std::size_t sentinel, const CallResult& master, const CallResult& address);
  void arm();
  void use(const NamedMaster& named);
  [[nodiscard]] ServerOptions master_options(const NamedMaster& named);
  void on_sentinel_event(std::size_t sentinel, const ServerEvent& event);
  void on_master_event(const std::string& place, ServerEvent event);
  void tell(ServerEvent::Kind kind, std::string text) const;

  net::EventLoop& loop;
  SentinelOptions options;
  MasterTarget target;
  Target* target_pointer = &target;
  std::vector<std::unique_ptr<Server>> sentinels;
  // Why there is no connection to a Sentinel, since when, and when it was told of.
  struct Trouble {
    std::string why{};
    Duration since{0};
    std::optional<Duration> told{};
  };
  std::vector<Trouble> troubles;  // of each
  MasterSearch search;
  net::Deadline timer;
  RetiredServers retired;
  std::uint64_t generation = 0;  // of the server in use: what older ones say counts no more
  bool stopping = false;
};

void Sentinel::Impl::arm() {
  if (!stopping) timer.arm(std::max(search.next_question(), loop.now()));
}

void Sentinel::Impl::ask() {
  for (const std::size_t sentinel : search.take_questions(loop.now())) ask_one(sentinel);
  arm();
}

void Sentinel::Impl::ask_one(std::size_t sentinel) {
  struct Answers {
    std::optional<CallResult> master;
    std::optional<CallResult> address;
  };
  const auto answers = std::make_shared<Answers>();
  const auto into = [this, sentinel, answers](std::optional<CallResult> Answers::* which) {
    return [this, sentinel, answers, which](CallResult result) {
      ((*answers).*which).emplace(std::move(result));
      if (answers->master && answers->address) {
        on_answers(sentinel, *answers->master, *answers->address);
      }
    };
  };
  Server& server = *sentinels[sentinel];
  const Duration deadline = loop.now() + options.answer_timeout;
  const std::string_view name = options.master_name;
  const std::array<std::string_view, 3> master = {"SENTINEL", "MASTER", name};
  server.command(master, deadline, into(&Answers::master));
  const std::array<std::string_view, 3> address = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name};
  server.command(address, deadline, into(&Answers::address));
}

void Sentinel::Impl::on_answers(std::size_t sentinel, const CallResult& master,
                                const CallResult& address) {
  if (stopping) return;
  auto named = read_named_master(master, address);
  if (!named) {
    const std::string& trouble = troubles[sentinel].why;
    const std::string& why = trouble.empty() ? named.error() : trouble;
    search.failed(sentinel, place_of(options.sentinels[sentinel]) + ": " + why, loop.now());
    const std::string silence = search.silence();
    if (!silence.empty() && !target.available()) {
      tell(ServerEvent::Kind::connect_failed, "no Sentinel names the master: " + silence);
    }
  } else if (search.answered(sentinel, std::move(*named), loop.now())) {
    use(*search.master());
  }
  arm();
}

ServerOptions Sentinel::Impl::master_options(const NamedMaster& named) {
  ServerOptions made = options.master;
  made.address.host = named.host;
  made.address.port = named.port;
  made.name = target.name();
  made.must_be_master = true;
  const std::uint64_t mine = ++generation;
  made.on_event = [this, mine, place = place_of(made.address)](const ServerEvent& event) {
    if (mine == generation) on_master_event(place, event);
  };
  if (options.master.on_time) {
    made.on_time = [this, mine](TimePoint store_time, Duration sent_at, Duration received_at) {
      if (mine == generation) options.master.on_time(store_time, sent_at, received_at);
    };
  }
  made.probe.on_reply = [this, mine](const CallResult& result) {
    if (mine != generation) return;
    if (result) search.usable();
    if (options.master.probe.on_reply) options.master.probe.on_reply(result);
  };
  return made;
}

// The one before answers what is pending with it, and is asked no more: what it would write is lost
// if it is no master, and it may not know.
void Sentinel::Impl::use(const NamedMaster& named) {
  auto server = std::make_unique<Server>(loop, master_options(named));
  server->start();
  server.swap(target.server);
  if (!server) return;
  tell(ServerEvent::Kind::lost, "the master is " + place_of(target.server->address()) + " now");
  retired.add(std::move(server));
}

void Sentinel::Impl::on_sentinel_event(std::size_t sentinel, const ServerEvent& event) {
  using Kind = ServerEvent::Kind;
  const std::string place = "sentinel " + place_of(options.sentinels[sentinel]) + ": ";
  Trouble& trouble = troubles[sentinel];
  if (event.kind == Kind::connected) trouble = {};
  if (event.kind == Kind::connect_failed || event.kind == Kind::lost) {
    const Duration now = loop.now();
    if (trouble.why.empty()) trouble.since = now;
    trouble.why = event.text;
    // While the master is well nothing else shows that the next failover would not be noticed.
    const bool due = !trouble.told || now - *trouble.told >= kTellAgainAfter;
    if (now - trouble.since >= options.missing_after && due) {
      trouble.told = now;
      tell(Kind::configuration, place + "cannot be reached: " + event.text);
    }
  }
  if (event.kind == Kind::configuration) tell(event.kind, place + event.text);
}

void Sentinel::Impl::on_master_event(const std::string& place, ServerEvent event) {
  using Kind = ServerEvent::Kind;
  switch (event.kind) {
    case Kind::connect_failed:
    case Kind::lost:
    case Kind::breaker_opened:
      event.text = place + ": " + event.text;
      search.lost(loop.now());
      arm();
      break;
    case Kind::connected:
    case Kind::breaker_closed:
    case Kind::configuration:
    case Kind::found:
    case Kind::gone:
      break;
  }
  tell(event.kind, std::move(event.text));
}

void Sentinel::Impl::tell(ServerEvent::Kind kind, std::string text) const {
  if (!options.master.on_event) return;
  ServerEvent event;
  event.kind = kind;
  event.text = std::move(text);
  options.master.on_event(event);
}

Sentinel::Sentinel(net::EventLoop& loop, SentinelOptions options) {
  if (options.sentinels.empty()) throw std::invalid_argument("no Sentinel");
  if (options.master.address.tls && !options.master.tls) {
    throw std::invalid_argument("a master with TLS, but no TLS context");
  }
  impl_ = std::make_unique<Impl>(loop, std::move(options));
}
Sentinel::~Sentinel() = default;

Topology::Route Sentinel::route(std::string_view /*routing_key*/) {
  Route route;
  route.target = impl_->target_pointer;
  return route;
}

std::span<Target* const> Sentinel::targets() { return {&impl_->target_pointer, 1}; }

void Sentinel::start() {
  for (const auto& sentinel : impl_->sentinels) sentinel->start();
  // They are asked as soon as they are connected; those that are not by then have failed.
  impl_->timer.arm(impl_->loop.now() + impl_->options.answer_timeout);
}

net::Task<void> Sentinel::stop() {
  Impl& impl = *impl_;
  impl.stopping = true;
  impl.timer.disarm();
  ++impl.generation;
  if (impl.target.server) {
    co_await impl.target.server->stop();
  }
  for (const auto& sentinel : impl.sentinels) {
    co_await sentinel->stop();
  }
  co_await impl.retired.join();
}

std::string Sentinel::master() const {
  const auto& server = impl_->target.server;
  return server ? place_of(server->address()) : std::string();
}

}  // namespace stint::redis
