#include "cli/ring.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "config/bootstrap.h"
#include "config/shards.h"
#include "stint/hash_ring.h"

namespace stint::cli {
namespace {

using Shards = std::vector<config::RedisShard>;
template <class T>
using OrWhyNot = std::expected<T, std::string>;

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f %%", share * 100);
  return text.data();
}

std::string number(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
  return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}

// Columns as wide as what stands in them; numbers to the right.
std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t texts) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      line += i == 0 ? "  " : "   ";
      line += i < texts ? row[i] + blanks : blanks + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

OrWhyNot<HashRing> make_ring(const Shards& shards, int virtual_nodes) {
  auto ring = config::ring_of(shards, virtual_nodes);
  if (!ring) return std::unexpected(to_string(ring.error()));
  return std::move(*ring);
}

std::string shares_text(const Shards& shards, const HashRing& ring) {
  const auto shares = ring.distribution();
  std::vector<std::vector<std::string>> rows{{"shard", "address", "weight", "points", "share"}};
  for (const config::RedisShard& shard : shards) {
    const auto found = std::ranges::find(shares, shard.name, &HashRing::Share::name);
    rows.push_back({shard.name, shard.address(), number(shard.weight),
                    std::to_string(found->points), percent(found->share)});
  }
  return table(rows, 2);
}

std::string moves_text(const HashRing& before, const HashRing& after) {
  const auto moves = HashRing::moves(before, after);
  if (moves.empty()) return "no bucket moves\n";
  double all = 0;
  std::vector<std::vector<std::string>> rows{{"from", "to", "of all buckets"}};
  for (const HashRing::Move& move : moves) {
    all += move.share;
    rows.push_back({move.from, move.to, percent(move.share)});
  }
  return percent(all) + " of all buckets would move:\n" + table(rows, 2);
}

// "[name=]url[,weight]". Behind the user and password a URL has no comma.
OrWhyNot<config::Shard> parse_addition(std::string_view text) {
  double weight = 1.0;
  std::size_t host = text.rfind('@');
  if (host == std::string_view::npos) host = text.find("://");
  const std::size_t comma = host == std::string_view::npos ? host : text.find(',', host);
  if (comma != std::string_view::npos) {
    const std::string_view digits = text.substr(comma + 1);
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), weight,
                                              std::chars_format::fixed);
    const bool good = fault == std::errc{} && end == digits.data() + digits.size() &&
                      weight >= HashRing::kMinWeight && weight <= HashRing::kMaxWeight;
    if (!good) return std::unexpected<std::string>("has a weight that is not 0.01 to 100");
    text = text.substr(0, comma);
  }
  auto shard = config::parse_shard(text);
  if (!shard) return std::unexpected(std::move(shard.error()));
  shard->weight = weight;
  return std::move(*shard);
}

OrWhyNot<Shards> changed(Shards shards, const RingChange& change, const config::Redis& redis) {
  for (const std::string& name : change.without) {
    const auto found = std::ranges::find(shards, name, &config::RedisShard::name);
    if (found == shards.end()) {
      return std::unexpected("--without: there is no shard " + config::quoted(name));
    }
    shards.erase(found);
  }
  for (std::size_t i = 0; i < change.with.size(); ++i) {
    // By its number: the text may hold a password.
    const std::string which =
        change.with.size() == 1 ? "--with: " : "--with " + std::to_string(i + 1) + ": ";
    const auto shard = parse_addition(change.with[i]);
    if (!shard) return std::unexpected(which + shard.error());
    config::RedisShard added = config::complete(*shard, redis);
    if (std::ranges::count(shards, added.name, &config::RedisShard::name) != 0) {
      return std::unexpected(which + "there is a shard " + config::quoted(added.name) +
                             " already; to change it, name it --without, too");
    }
    shards.push_back(std::move(added));
  }
  if (shards.empty()) return std::unexpected<std::string>("--without: no shard is left");
  return shards;
}

std::string heading(const config::Redis& redis, const Shards& shards) {
  if (shards.size() == 1) return "one shard: every bucket is there\n";
  return counted(shards.size(), "shard", "shards") + ", " +
         counted(static_cast<std::size_t>(redis.virtual_nodes), "virtual node", "virtual nodes") +
         " for a weight of 1\n";
}

OrWhyNot<std::string> report(const config::Redis& redis, const RingChange& change) {
  const Shards shards = config::shards_of(redis);
  const auto ring = make_ring(shards, redis.virtual_nodes);
  if (!ring) return std::unexpected(ring.error());
  std::string text = heading(redis, shards) + shares_text(shards, *ring);

  const Shards previous = config::previous_shards_of(redis);
  if (!previous.empty()) {
    const auto before = make_ring(previous, redis.virtual_nodes);
    if (!before) return std::unexpected("previous: " + before.error());
    text += "\nfrom ratelimit.redis.previous to these: " + moves_text(*before, *ring);
  }
  if (change.with.empty() && change.without.empty()) return text;

  const auto other = changed(shards, change, redis);
  if (!other) return std::unexpected(other.error());
  const auto after = make_ring(*other, redis.virtual_nodes);
  if (!after) return std::unexpected(after.error());
  return text + "\nafter the change: " + heading(redis, *other) + shares_text(*other, *after) +
         "\n" + moves_text(*ring, *after);
}

// Empty: there is one.
std::string_view why_no_ring(const std::optional<config::Redis>& redis) {
  if (!redis) return "ratelimit.backend is memory: every process has all its buckets, and no shard";
  switch (redis->mode) {
    case config::RedisMode::sentinel:
      return "ratelimit.redis.mode is sentinel: every bucket is at the master, and there is no "
             "ring";
    case config::RedisMode::cluster:
      return "ratelimit.redis.mode is cluster: its nodes say where a bucket is, and there is no "
             "ring";
    case config::RedisMode::single:
    case config::RedisMode::ring:
      return {};
  }
  return {};
}

}  // namespace

RingResult ring(const std::optional<std::string>& file, const config::Environment& environment,
                const RingChange& change) {
  RingResult result{.exit_code = 1, .text = {}};
  const auto loaded = config::load_bootstrap(file, environment);
  for (const config::Fault& fault : loaded.faults) result.text += to_string(fault) + "\n";
  for (const config::Fault& warning : loaded.warnings) {
    result.text += "warning: " + to_string(warning) + "\n";
  }
  if (!loaded.value) return result;
  const auto& redis = loaded.value->ratelimit.redis;
  if (const std::string_view why = why_no_ring(redis); !why.empty()) {
    result.text += std::string(why) + "\n";
    result.exit_code = change.with.empty() && change.without.empty() ? 0 : 1;
    return result;
  }
  const auto told = report(*redis, change);
  result.text += told ? *told : "stint: ring: " + told.error() + "\n";
  result.exit_code = told ? 0 : 1;
  return result;
}

}  // namespace stint::cli
