#include "redis/cluster_node.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace stint::redis {
namespace {

constexpr Duration kYouth = std::chrono::seconds{1};

std::vector<std::string_view> views_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

std::vector<std::string> copies_of(std::span<const std::string_view> views) {
  return {views.begin(), views.end()};
}

void refuse(CallDone& done, Reason reason, std::string text) {
  CallError error;
  error.reason = reason;
  error.text = std::move(text);
  done(std::unexpected(std::move(error)));
}

}  // namespace

ClusterNode::ClusterNode(net::EventLoop& loop, NodePlace place, std::string name)
    : loop_(loop),
      place_(std::move(place)),
      name_(std::move(name)),
      timer_(loop.deadlines(), [this] { on_timer(); }) {}

ClusterNode::~ClusterNode() = default;

void ClusterNode::begin(std::unique_ptr<Server> server) {
  server_ = std::move(server);
  young_until_ = loop_.now() + kYouth;
  server_->start();
}

std::unique_ptr<Server> ClusterNode::end() {
  young_until_ = {};
  auto server = std::move(server_);
  release();
  return server;
}

bool ClusterNode::young() const noexcept { return server_ && loop_.now() < young_until_; }

bool ClusterNode::available() const noexcept {
  return server_ && (server_->available() || young());
}

void ClusterNode::told(const ServerEvent& event) {
  using Kind = ServerEvent::Kind;
  const bool trouble = event.kind == Kind::connect_failed || event.kind == Kind::lost ||
                       event.kind == Kind::breaker_opened;
  if (!trouble) return;
  young_until_ = {};
  timer_.arm(loop_.now());  // not now: whoever tells us is not done yet
}

void ClusterNode::probed() {
  if (young_until_ == Duration{}) return;
  young_until_ = {};
  timer_.arm(loop_.now());  // it counts as available only after the probe's callback
}

void ClusterNode::call(const Script& script, std::span<const std::string_view> keys,
                       std::span<const std::string_view> args, Duration deadline, CallDone done) {
  take(script, keys, args, deadline, std::move(done), false);
}

void ClusterNode::command(std::span<const std::string_view> words, Duration deadline,
                          CallDone done) {
  if (server_) return server_->command(words, deadline, std::move(done));
  refuse(done, Reason::unavailable, "no node of the cluster any more");
}

void ClusterNode::take(const Script& script, std::span<const std::string_view> keys,
                       std::span<const std::string_view> args, Duration deadline, CallDone done,
                       bool asking) {
  // The others first.
  const bool wait = server_ && ((young() && !server_->available()) || !held_.empty());
  if (!wait) return send(script, keys, args, deadline, std::move(done), asking);
  Held held;
  held.script = &script;
  held.keys = copies_of(keys);
  held.args = copies_of(args);
  held.deadline = deadline;
  held.done = std::move(done);
  held.asking = asking;
  held_.push_back(std::move(held));
  on_timer();
}

void ClusterNode::send(const Script& script, std::span<const std::string_view> keys,
                       std::span<const std::string_view> args, Duration deadline, CallDone done,
                       bool asking) {
  if (!server_) return refuse(done, Reason::unavailable, "no node of the cluster any more");
  if (asking) return server_->call_asking(script, keys, args, deadline, std::move(done));
  server_->call(script, keys, args, deadline, std::move(done));
}

void ClusterNode::release() {
  for (Held& held : std::exchange(held_, {})) {
    const auto keys = views_of(held.keys);
    const auto args = views_of(held.args);
    send(*held.script, keys, args, held.deadline, std::move(held.done), held.asking);
  }
}

// Of those that wait, lets all go if they need not wait any more, or answers those that may not.
void ClusterNode::on_timer() {
  if (!young() || server_->available()) return release();
  const Duration now = loop_.now();
  Duration next = young_until_;
  std::vector<Held> late;
  std::erase_if(held_, [&](Held& held) {
    if (held.deadline > now) {
      next = std::min(next, held.deadline);
      return false;
    }
    late.push_back(std::move(held));
    return true;
  });
  if (!held_.empty()) timer_.arm(next);
  for (Held& held : late) refuse(held.done, Reason::timed_out, "not connected in time");
}

}  // namespace stint::redis
