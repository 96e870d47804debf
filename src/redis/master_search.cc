#include "redis/master_search.h"

#include <algorithm>
#include <utility>

namespace stint::redis {
namespace {

// The value of a field in a map that RESP2 sends as names and values in turn.
std::optional<std::int64_t> number_in(const Reply& map, std::string_view field) {
  for (std::size_t i = 0; i + 1 < map.size(); i += 2) {
    if (map[i].text() == field) return map[i + 1].number();
  }
  return std::nullopt;
}

}  // namespace

std::expected<NamedMaster, std::string> read_named_master(const CallResult& master,
                                                          const CallResult& address) {
  for (const CallResult* result : {&master, &address}) {
    if (!*result) return std::unexpected(result->error().text);
  }
  NamedMaster named;
  const auto epoch = number_in(*master, "config-epoch");
  const auto port = (*address)[1].number();
  named.host = (*address)[0].text();
  if (!epoch || named.host.empty() || !port || *port < 1 || *port > 65535) {
    return std::unexpected("names no master of that name");
  }
  named.port = static_cast<std::uint16_t>(*port);
  named.epoch = *epoch;
  return named;
}

MasterSearch::MasterSearch(Options options)
    : options_(options), sentinels_(std::max<std::size_t>(options.sentinels, 1)) {}

std::vector<std::size_t> MasterSearch::take_questions(Duration now) {
  std::vector<std::size_t> questions;
  if (now < next_) return questions;
  const bool one = well_ && master_;
  next_ = now + (one ? options_.watch_every : options_.search_every);
  for (std::size_t i = 0; i < sentinels_.size(); ++i) {
    const std::size_t at = (turn_ + i) % sentinels_.size();
    if (sentinels_[at].asked) continue;
    sentinels_[at].asked = true;
    questions.push_back(at);
    if (one) break;
  }
  if (one && !questions.empty()) turn_ = questions.front() + 1;
  return questions;
}

bool MasterSearch::answered(std::size_t sentinel, NamedMaster named, Duration now) {
  Sentinel& from = sentinels_[sentinel];
  from.asked = false;
  from.said = std::move(named);
  from.failure.clear();
  const NamedMaster& said = *from.said;
  if (!believes(said, now)) return false;
  const bool other = !master_ || !master_->same_place(said);
  master_ = said;
  if (other) {
    well_ = false;
    lost_at_ = now;
  }
  return other;
}

bool MasterSearch::believes(const NamedMaster& named, Duration now) const {
  if (!master_ || named.epoch > master_->epoch) return true;
  if (named.epoch == master_->epoch) {
    // Of two that are named by the same right the one that works is kept, unless most of them mean
    // the other: somebody has told them so.
    return named.same_place(*master_) || !well_ || majority_says(named);
  }
  return !well_ && now - lost_at_ >= options_.forget_after && majority_says(named);
}

bool MasterSearch::majority_says(const NamedMaster& named) const {
  const auto agreeing = std::ranges::count_if(sentinels_, [&](const Sentinel& sentinel) {
    return sentinel.said && sentinel.said->same_place(named) && sentinel.said->epoch == named.epoch;
  });
  return static_cast<std::size_t>(agreeing) * 2 > sentinels_.size();
}

void MasterSearch::failed(std::size_t sentinel, std::string why, Duration now) {
  Sentinel& from = sentinels_[sentinel];
  from.asked = false;
  from.said.reset();
  from.failure = std::move(why);
  // The next one at once, but for one round only: then all of them are away.
  const bool anybody =
      std::ranges::any_of(sentinels_, [](const Sentinel& other) { return other.failure.empty(); });
  if (well_ && master_ && anybody) next_ = std::min(next_, now);
}

void MasterSearch::lost(Duration now) {
  if (!std::exchange(well_, false)) return;
  lost_at_ = now;
  next_ = std::min(next_, now);
}

std::string MasterSearch::silence() const {
  std::string why;
  for (const Sentinel& sentinel : sentinels_) {
    if (sentinel.failure.empty()) return {};
    if (!why.empty()) why += "; ";
    why += sentinel.failure;
  }
  return why;
}

}  // namespace stint::redis
