#include "store/redis/sweep.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "limit/bucket_key.h"
#include "limit/fixed_window.h"
#include "limit/lease_set.h"
#include "limit/sliding_window.h"
#include "limit/token_bucket.h"
#include "store/redis/layout.h"

namespace stint::store {
namespace {

// How many places of its table SCAN looks at for a page.
constexpr std::size_t kMostPerScan = 256;

// The beginning of keys as a pattern of SCAN, where some characters mean something else.
std::string scan_pattern(std::string_view begin) {
  std::string pattern;
  for (const char c : begin) {
    if (std::string_view("*?[]\\^-").contains(c)) pattern.push_back('\\');
    pattern.push_back(c);
  }
  return pattern + "{*}";
}

// A key longer than limit::kMaxKey: its text is in the bucket.
bool hashed(std::string_view key) { return key.contains(":%#"); }

struct Live {
  std::int64_t leases = 0;
  const redis::Value* logs = nullptr;  // of each what is used, and its last entry
  std::size_t next_log = 0;
};

// How a limit stands now, and whether it says no more than a fresh one.
struct Standing {
  std::int64_t value = 0;
  limit::Reading reading;
  bool spent = false;
};

template <class State>
Standing standing_of(State state, const limit::Spec& spec, TimePoint now) {
  state.advance(spec, now);
  Standing standing{.reading = state.read(spec, now), .spent = state.spent_at(spec) <= now};
  if constexpr (std::is_same_v<State, limit::FixedWindow>) standing.value = state.used;
  if constexpr (std::is_same_v<State, limit::SlidingWindow>) standing.value = state.current;
  if constexpr (std::is_same_v<State, limit::TokenBucket>) standing.value = state.level;
  return standing;
}

Standing standing_of_log(const limit::Spec& spec, TimePoint now, Live& live) {
  const std::int64_t used = (*live.logs)[live.next_log++].integer();
  const TimePoint last{Duration{(*live.logs)[live.next_log++].integer()}};
  // An entry that lies ahead was made before the clock was set back: it is taken as now.
  const Duration whole = std::min(last, now) + spec.window() - now;
  return {.value = used,
          .reading = {std::max<std::int64_t>(spec.quota - used, 0), used > 0 ? whole : Duration{0}},
          .spent = used == 0};
}

Standing standing_of(const StoredBucket::Stored& stored, TimePoint now, Live& live) {
  const auto& numbers = stored.numbers;
  const limit::Spec& spec = stored.spec;
  const auto at = [](std::int64_t us) { return TimePoint{Duration{us}}; };
  switch (spec.name.algorithm) {
    case Algorithm::fixed_window:
      return standing_of(limit::FixedWindow{at(numbers[0]), numbers[1]}, spec, now);
    case Algorithm::sliding_window:
      return standing_of(limit::SlidingWindow{at(numbers[0]), numbers[1], numbers[2]}, spec, now);
    case Algorithm::token_bucket: {
      limit::TokenBucket state{at(numbers[0]), numbers[1]};
      state.rest = numbers[2] & limit::TokenBucket::kRestBits;
      return standing_of(state, spec, now);
    }
    case Algorithm::sliding_log:
      return standing_of_log(spec, now, live);
    case Algorithm::concurrency:
      return {.value = live.leases,
              .reading = limit::read_slots(spec, live.leases),
              .spent = live.leases == 0};
  }
  std::unreachable();
}

std::optional<SweptBucket> describe(std::string_view key, const redis::Value& looked,
                                    TimePoint now) {
  const auto stored = parse_bucket(looked[0].text());
  if (!stored) return std::nullopt;
  SweptBucket bucket;
  bucket.key = key;
  bucket.info.key = stored->text.empty() ? std::string(key) : stored->text;
  Live live{looked[1].integer(), &looked[2], 0};
  bool all_spent = true;
  for (const StoredBucket::Stored& limit : stored->limits) {
    const Standing standing = standing_of(limit, now, live);
    all_spent = all_spent && standing.spent;
    const limit::LimitName& name = limit.spec.name;
    bucket.info.counters.push_back({name.unit, name.algorithm, name.window, standing.value,
                                    limit.spec.quota, limit.spec.capacity,
                                    standing.reading.remaining, standing.reading.reset});
    if (name.algorithm == Algorithm::sliding_log) bucket.logs.push_back(name.window);
  }
  if (all_spent) return std::nullopt;
  return bucket;
}

// Never empty.
std::string text_of(const redis::CallError& error) {
  return error.text.empty() ? to_string(error.reason) : error.text;
}

// Places by what may be in one command.
using Groups = std::map<std::uint64_t, std::vector<std::size_t>>;

template <class KeyOf>
Groups grouped(std::size_t count, const ReachOf& reach_of, KeyOf key_of) {
  Groups groups;
  for (std::size_t i = 0; i < count; ++i) {
    groups[reach_of ? reach_of(key_of(i)) : 0].push_back(i);
  }
  return groups;
}

// Whether it says only that the bucket is on its way to another target.
bool moves(const redis::CallError& error) {
  return error.code == "MOVED" || error.code == "ASK" || error.code == "TRYAGAIN";
}

class Sweep : public std::enable_shared_from_this<Sweep> {
 public:
  Sweep(redis::Target& target, const Scripts& scripts, SweepRequest request,
        std::move_only_function<void(SweptPage)> done)
      : target_(target),
        scripts_(scripts),
        request_(std::move(request)),
        done_(std::move(done)),
        count_(std::clamp<std::size_t>(request_.page_size, 1, kMostPerScan)) {
    if (request_.from.skip > 0) count_ = 1;
  }

  void scan() {
    const std::string cursor = std::to_string(request_.from.scan);
    const std::string pattern = scan_pattern(request_.keys_begin);
    const std::string count = std::to_string(count_);
    const std::array<std::string_view, 6> words = {"SCAN",  cursor,  "MATCH",
                                                   pattern, "COUNT", count};
    target_.command(words, request_.deadline,
                    [self = shared_from_this()](redis::CallResult result) {
                      self->scanned(std::move(result));
                    });
  }

 private:
  void scanned(redis::CallResult result) {
    if (!result) return fail(result.error());
    page_.next.scan = static_cast<std::uint64_t>((*result)[0].number().value_or(0));
    keys_.clear();
    for (const redis::Value& key : (*result)[1].elements()) {
      const auto bucket = bucket_of(request_.keys_begin, key.text());
      if (!bucket) continue;
      if (hashed(*bucket) || limit::matches(request_.pattern, *bucket)) keys_.emplace_back(*bucket);
    }
    std::ranges::sort(keys_);  // SCAN may answer a key twice
    keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
    const std::size_t skip = std::min<std::size_t>(request_.from.skip, keys_.size());
    keys_.erase(keys_.begin(), keys_.begin() + static_cast<std::ptrdiff_t>(skip));
    if (keys_.size() > request_.page_size && count_ > 1) {
      count_ = std::max<std::size_t>(count_ / 4, 1);
      return scan();
    }
    page_.more = page_.next.scan != 0;
    if (keys_.size() > request_.page_size) {
      keys_.resize(request_.page_size);
      page_.next = {request_.from.scan,
                    static_cast<std::uint8_t>(std::min<std::size_t>(skip + keys_.size(), 255))};
      page_.more = true;
    }
    if (keys_.empty()) return done_(std::move(page_));
    look();
  }

  void look() {
    Groups groups = grouped(keys_.size(), request_.reach_of,
                            [this](std::size_t i) -> std::string_view { return keys_[i]; });
    found_.resize(keys_.size());
    looking_ = groups.size();
    for (auto& [reach, places] : groups) look_at(std::move(places));
  }

  void look_at(std::vector<std::size_t> places) {
    std::vector<std::string> names;
    names.reserve(2 * places.size());
    for (const std::size_t i : places) {
      append_counters_key(names.emplace_back(), request_.keys_begin, keys_[i]);
      append_leases_key(names.emplace_back(), request_.keys_begin, keys_[i]);
    }
    const std::vector<std::string_view> views(names.begin(), names.end());
    target_.call(scripts_.look, views, {}, request_.deadline,
                 [self = shared_from_this(), places = std::move(places)](redis::CallResult result) {
                   self->looked(places, result);
                 });
  }

  void looked(const std::vector<std::size_t>& places, const redis::CallResult& result) {
    if (result) {
      const TimePoint now{Duration{(*result)[0].integer()}};
      for (std::size_t i = 0; i < places.size(); ++i) {
        found_[places[i]] = describe(keys_[places[i]], (*result)[i + 1], now);
      }
    } else if (moves(result.error())) {
      page_.moved = {keys_[places.front()], result.error()};
    } else if (!failure_) {
      failure_ = result.error();
    }
    if (--looking_ > 0) return;
    if (failure_) return fail(*failure_);
    for (auto& bucket : found_) {
      if (!bucket || !limit::matches(request_.pattern, bucket->info.key)) continue;
      page_.buckets.push_back(std::move(*bucket));
    }
    done_(std::move(page_));
  }

  void fail(const redis::CallError& error) {
    page_ = {};
    page_.error = text_of(error);
    done_(std::move(page_));
  }

  redis::Target& target_;
  const Scripts& scripts_;
  const SweepRequest request_;
  std::move_only_function<void(SweptPage)> done_;
  std::size_t count_;
  std::vector<std::string> keys_;
  std::vector<std::optional<SweptBucket>> found_;  // of each of them
  std::size_t looking_ = 0;
  std::optional<redis::CallError> failure_;
  SweptPage page_;
};

// All keys of some buckets, in two commands.
void remove_together(redis::Target& target, std::string_view keys_begin,
                     const std::vector<const SweptBucket*>& buckets, Duration deadline,
                     std::move_only_function<void(std::size_t, std::string)> done) {
  std::vector<std::string> counters = {"UNLINK"};
  std::vector<std::string> others = {"UNLINK"};
  for (const SweptBucket* bucket : buckets) {
    append_counters_key(counters.emplace_back(), keys_begin, bucket->key);
    append_leases_key(others.emplace_back(), keys_begin, bucket->key);
    for (const Duration window : bucket->logs) {
      append_log_key(others.emplace_back(), keys_begin, bucket->key, window);
    }
  }
  // Others first: counters without their log or leases are a bucket of which less is used.
  const std::vector<std::string_view> first(others.begin(), others.end());
  // Answered before the other, on the same connection or not at all.
  auto error = std::make_shared<std::string>();
  target.command(first, deadline, [error](const redis::CallResult& result) {
    if (!result) *error = text_of(result.error());
  });
  const std::vector<std::string_view> second(counters.begin(), counters.end());
  target.command(second, deadline,
                 [error, done = std::move(done)](const redis::CallResult& result) mutable {
                   if (!result) return done(0, text_of(result.error()));
                   done(static_cast<std::size_t>(result->integer()), std::move(*error));
                 });
}

}  // namespace

void sweep(redis::Target& target, const Scripts& scripts, SweepRequest request,
           std::move_only_function<void(SweptPage)> done) {
  std::make_shared<Sweep>(target, scripts, std::move(request), std::move(done))->scan();
}

void remove_buckets(redis::Target& target, std::string_view keys_begin,
                    const std::vector<SweptBucket>& buckets, const ReachOf& reach_of,
                    Duration deadline,
                    std::move_only_function<void(std::size_t, std::string)> done) {
  if (buckets.empty()) return done(0, {});
  struct Removal {
    std::size_t removed = 0;
    std::size_t pending = 0;
    std::string error;
    std::move_only_function<void(std::size_t, std::string)> done;
  };
  const Groups groups =
      grouped(buckets.size(), reach_of,
              [&buckets](std::size_t i) -> std::string_view { return buckets[i].key; });
  auto removal = std::make_shared<Removal>();
  removal->pending = groups.size();
  removal->done = std::move(done);
  for (const auto& [reach, places] : groups) {
    std::vector<const SweptBucket*> together;
    together.reserve(places.size());
    for (const std::size_t i : places) together.push_back(&buckets[i]);
    remove_together(target, keys_begin, together, deadline,
                    [removal](std::size_t removed, std::string error) {
                      removal->removed += removed;
                      if (!error.empty()) removal->error = std::move(error);
                      if (--removal->pending == 0)
                        removal->done(removal->removed, std::move(removal->error));
                    });
  }
}

}  // namespace stint::store
