#include "store/redis/mover.h"

#include <array>
#include <utility>

#include "base/hash.h"
#include "store/redis/layout.h"

namespace stint::store {
namespace {

// Beyond it they are asked for once more, which changes nothing.
constexpr std::size_t kMostRemembered = 200'000;

std::string us_text(Duration span) { return std::to_string(span.count()); }
std::string us_text(TimePoint time) { return us_text(time.time_since_epoch()); }

// What take.lua says if it took the bucket: {1, now, counters, time to live, leases, logs...}.
bool usable(const redis::Value& taken) {
  return taken.size() >= 5 && taken[0].integer() == 1 && taken.size() % 2 == 1;
}

void append_scored(std::vector<std::string>& words, const redis::Value& scored) {
  words.push_back(std::to_string(scored.size() / 2));
  for (std::size_t i = 0; i + 1 < scored.size(); i += 2) {
    words.emplace_back(scored[i].text());
    words.emplace_back(scored[i + 1].text());
  }
}

}  // namespace

struct Mover::Move {
  std::string bucket;
  std::string counters_key;
  redis::Target* from = nullptr;
  redis::Target* to = nullptr;
  Duration left{0};
  Duration deadline{0};
  bool again = false;  // asked once before, and came too late by a clock we had wrong
  std::vector<std::move_only_function<void()>> waiting;
};

Mover::Mover(net::EventLoop& loop, Shared& shared, redis::Topology& topology, Duration timeout,
             ClockOf clock_of)
    : loop_(loop),
      shared_(shared),
      topology_(topology),
      timeout_(timeout),
      clock_of_(std::move(clock_of)),
      seed_(shared.entropy.next()) {}

Mover::~Mover() = default;

bool Mover::needed(std::string_view bucket_key) {
  const auto previous = topology_.previous(bucket_key);
  return previous && previous->route.target->available() &&
         !brought_.contains(base::hash(bucket_key, seed_));
}

void Mover::bring(std::string_view bucket_key, std::move_only_function<void()> then) {
  const auto known = under_way_.find(bucket_key);
  if (known != under_way_.end()) return known->second->waiting.push_back(std::move(then));
  const auto previous = topology_.previous(bucket_key);
  if (!previous) return then();
  auto move = std::make_shared<Move>();
  move->bucket = bucket_key;
  append_counters_key(move->counters_key, shared_.keys_begin, bucket_key);
  move->from = previous->route.target;
  move->to = topology_.route(bucket_key).target;
  move->left = previous->left;
  move->deadline = loop_.now() + timeout_;
  move->waiting.push_back(std::move(then));
  under_way_.emplace(move->bucket, move);
  take(std::move(move));
}

// Whether the script had come too late and is to be called once more, by the time that the answer
// has taught us. Of a server of which nothing else is asked any more, no other call teaches it.
bool Mover::late(Move& move, const redis::Target& by, const redis::Value& answer, Duration sent) {
  ServerClock& clock = clock_of_(by);
  const Duration now = loop_.now();
  clock.learn(TimePoint{Duration{answer[1].integer()}}, sent, now);
  return answer[0].integer() == 0 && now < move.deadline && !std::exchange(move.again, true);
}

void Mover::take(std::shared_ptr<Move> move) {
  const std::string not_after = us_text(clock_of_(*move->from).at(move->deadline));
  const std::string left = us_text(move->left);
  const std::array<std::string_view, 1> keys = {move->counters_key};
  const std::array<std::string_view, 2> args = {not_after, left};
  redis::Target& from = *move->from;
  const Duration deadline = move->deadline;
  from.call(shared_.scripts.take, keys, args, deadline,
            [this, move = std::move(move), sent = loop_.now()](redis::CallResult result) mutable {
              if (result && late(*move, *move->from, *result, sent)) return take(std::move(move));
              if (result && usable(*result)) {
                move->again = false;
                return install(std::move(move), std::make_shared<redis::Reply>(std::move(*result)));
              }
              shared_.warn("move", "a bucket could not be brought from " +
                                       std::string(move->from->name()) + ": " +
                                       (result ? "the call came too late" : result.error().text));
              finish(move, false);
            });
}

void Mover::install(std::shared_ptr<Move> move, std::shared_ptr<const redis::Reply> reply) {
  const redis::Reply& taken = *reply;
  std::vector<std::string> words = {us_text(clock_of_(*move->to).at(move->deadline)),
                                    us_text(move->left), std::string(taken[2].text()),
                                    std::to_string(taken[3].integer())};
  append_scored(words, taken[4]);
  for (std::size_t i = 5; i + 1 < taken.size(); i += 2) {
    words.emplace_back(taken[i].text());
    append_scored(words, taken[i + 1]);
  }
  const std::array<std::string_view, 1> keys = {move->counters_key};
  const std::vector<std::string_view> args(words.begin(), words.end());
  redis::Target& to = *move->to;
  const Duration deadline = move->deadline;
  to.call(shared_.scripts.install, keys, args, deadline,
          [this, move = std::move(move), reply = std::move(reply),
           sent = loop_.now()](const redis::CallResult& result) mutable {
            if (result && late(*move, *move->to, *result, sent)) {
              return install(std::move(move), std::move(reply));
            }
            finish(move, result && (*result)[0].integer() == 1);
          });
}

void Mover::finish(const std::shared_ptr<Move>& move, bool done) {
  under_way_.erase(move->bucket);
  if (done) {
    if (brought_.size() >= kMostRemembered) brought_.clear();
    brought_.insert(base::hash(move->bucket, seed_));
  }
  for (auto& then : move->waiting) then();
}

}  // namespace stint::store
