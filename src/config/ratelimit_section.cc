// ratelimit{}: where the counters live, and what holds for all limits.
#include <array>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/address.h"
#include "config/bootstrap_sections.h"
#include "config/names.h"
#include "config/redis_nodes.h"
#include "config/shards.h"
#include "stint/limit.h"

namespace stint::config {
namespace {

constexpr Duration kSecond = std::chrono::seconds{1};
constexpr std::array<std::string_view, 2> kBackends{"memory", "redis"};
constexpr std::array<std::string_view, 4> kRedisModes{"single", "sentinel", "cluster", "ring"};

std::optional<std::string> check_key_prefix(std::string_view text) {
  // Braces would move the hash tag, and with it the slot.
  const bool good =
      !text.empty() && text.size() <= 64 && text.find_first_of("{} ") == std::string_view::npos;
  return good ? std::nullopt
              : std::optional<std::string>("must be 1 to 64 characters without { } and spaces");
}

std::optional<std::string> check_shard(std::string_view text) {
  auto shard = parse_shard(text);
  return shard ? std::nullopt : std::optional(std::move(shard.error()));
}

// Two names of one server would be two shards that fail together.
void check_distinct(MapReader& reader, const std::vector<RedisShard>& shards) {
  const std::string_view list = reader.given("shards") ? "shards" : "urls";
  std::map<std::string, std::size_t> names;
  std::map<std::string, std::size_t> servers;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].server.host.empty()) continue;  // no good, and was told
    const auto [named, fresh_name] = names.emplace(shards[i].name, i);
    const auto [server, fresh_server] = servers.emplace(shards[i].address(), i);
    const auto other = [list](std::size_t index) {
      return std::string(list) + "[" + std::to_string(index) + "]";
    };
    if (!fresh_name) {
      reader.fault(list, i,
                   "is the shard " + quoted(shards[i].name) + " as is " + other(named->second) +
                       "; give each a name of its own");
    } else if (!fresh_server) {
      reader.fault(list, i,
                   "is the server " + shards[i].address() + " as is " + other(server->second) +
                       "; give each shard a server of its own");
    }
  }
}

// `shards` (maps) or `urls` (texts): two ways to write the same.
void read_shards(MapReader& reader, std::vector<Shard>& out) {
  std::vector<Shard> shards;
  std::vector<std::string> urls;
  reader.maps("shards", [&](MapReader& item) {
    Shard shard;
    item.text("name", shard.name, check_shard_name);
    item.text("url", shard.url, check_redis_url);
    item.decimal("weight", shard.weight, 0.01, 100);
    item.finish();
    item.require("url");
    shards.push_back(std::move(shard));
  });
  reader.texts("urls", urls, check_shard);
  if (reader.context().known != nullptr) return;
  if (reader.given("shards") && reader.given("urls")) {
    reader.fault("urls", "says the same as shards; keep one of them");
    return;
  }
  for (const std::string& url : urls) shards.push_back(*parse_shard(url));
  out = std::move(shards);
}

// The keys that give addresses, and the mode that each belongs to.
struct AddressKey {
  const char* name;
  RedisMode mode;
};
constexpr std::array<AddressKey, 5> kAddressKeys{{{"url", RedisMode::single},
                                                  {"sentinels", RedisMode::sentinel},
                                                  {"nodes", RedisMode::cluster},
                                                  {"shards", RedisMode::ring},
                                                  {"urls", RedisMode::ring}}};

std::string_view name_of(RedisMode mode) { return kRedisModes[static_cast<std::size_t>(mode)]; }

// Both are within their bounds, and yet the ring may be too large to be made.
void check_size(MapReader& reader, const Redis& redis) {
  std::size_t points = 0;
  for (const Shard& shard : redis.shards) {
    points += HashRing::point_count(redis.virtual_nodes, shard.weight);
  }
  if (points <= HashRing::kMaxPoints) return;
  reader.fault("virtual_nodes", "makes " + std::to_string(points) +
                                    " points with the weights of these shards, and " +
                                    std::to_string(HashRing::kMaxPoints) +
                                    " are the most; give fewer, or less weight");
}

// The mode's own keys must be there, and no other's.
void check_mode(MapReader& reader, Redis& redis) {
  const AddressKey* first = nullptr;
  for (const AddressKey& key : kAddressKeys) {
    if (first == nullptr && reader.given(key.name)) first = &key;
  }
  if (first == nullptr && !reader.given("mode")) {
    reader.fault("",
                 "has no address: give url, sentinels, nodes or shards, or set REDIS_URLS or "
                 "REDIS_URL in the environment");
    return;
  }
  if (!reader.given("mode")) redis.mode = first->mode;

  const std::string mode(name_of(redis.mode));
  const auto needs = [&](bool good, const std::string& what) {
    if (!good) reader.fault("mode", mode + " needs " + what);
  };
  switch (redis.mode) {
    case RedisMode::single:
      needs(reader.given("url"), "url");  // one that is no good was told
      break;
    case RedisMode::sentinel:
      needs(!redis.sentinels.empty(), "sentinels");
      needs(!redis.master_name.empty(), "master_name");
      break;
    case RedisMode::cluster:
      needs(!redis.nodes.empty(), "nodes");
      check_nodes(reader, redis);
      break;
    case RedisMode::ring:
      needs(!redis.shards.empty(), "shards or urls");
      check_size(reader, redis);
      break;
  }
  const auto belongs = [&](const char* name, RedisMode owner) {
    if (!reader.given(name) || owner == redis.mode) return;
    reader.fault(name, "belongs to mode " + std::string(name_of(owner)) + ", and this is " + mode);
  };
  for (const AddressKey& key : kAddressKeys) belongs(key.name, key.mode);
  for (const char* name :
       {"master_name", "sentinel_username", "sentinel_password", "sentinel_tls"}) {
    belongs(name, RedisMode::sentinel);
  }
  belongs("virtual_nodes", RedisMode::ring);
  belongs("previous", RedisMode::ring);
  belongs("handover_secs", RedisMode::ring);
}

}  // namespace

std::string_view to_string(OnStoreError rule) noexcept {
  const auto index = static_cast<std::size_t>(rule);
  return index < kOnStoreErrorNames.size() ? kOnStoreErrorNames[index] : "unknown";
}

void read_redis(MapReader reader, bool in_use, std::optional<Redis>& out) {
  constexpr Duration kMillisecond = std::chrono::milliseconds{1};
  Redis redis;
  const std::size_t faults = reader.context().faults.size();
  reader.choice("mode", redis.mode, kRedisModes);
  reader.text("url", redis.url, check_redis_url);
  reader.texts("nodes", redis.nodes, check_node);
  read_shards(reader, redis.shards);
  reader.integer("virtual_nodes", redis.virtual_nodes, 1, 10'000);
  MapReader previous = reader.map("previous");
  read_shards(previous, redis.previous);
  previous.finish();
  reader.duration_in("handover_secs", redis.handover, kSecond, 1, 31'622'400);
  reader.text("username", redis.username);
  reader.secret("password", redis.password);
  reader.integer("database", redis.database, 0, 65'535);
  MapReader tls = reader.map("tls");
  read_client_tls(tls, redis.tls, &redis.tls_enabled);
  read_sentinel_keys(reader, redis);
  reader.duration_in("timeout_ms", redis.timeout, kMillisecond, 1, 60'000);
  reader.boolean("required", redis.required);
  reader.finish();
  // Who is who is known only with the database that holds for all.
  check_distinct(reader, complete(redis.shards, redis));
  check_distinct(previous, complete(redis.previous, redis));
  check_asked_once(reader, redis);
  if (!in_use) return;
  if (reader.context().faults.size() == faults) {
    check_mode(reader, redis);
    const bool by_url = redis.mode == RedisMode::single || redis.mode == RedisMode::ring;
    if (by_url && tls.given("enabled")) {
      tls.fault("enabled", "belongs to the modes sentinel and cluster; a URL says it by rediss://");
    }
  }
  out = std::move(redis);
}

void read_ratelimit(MapReader reader, RateLimit& out) {
  constexpr std::int64_t kMostBuckets = 1'000'000'000;
  reader.choice("backend", out.backend, kBackends);
  MapReader memory = reader.map("memory");
  memory.integer("max_buckets", out.max_buckets, 1, kMostBuckets);
  memory.finish();
  reader.duration_in("concurrency_ttl_secs", out.concurrency_ttl, kSecond, 3, 3600);
  reader.choice("on_store_error", out.on_store_error, kOnStoreErrorNames);
  reader.integer("replicas", out.replicas, 1, 100'000);
  reader.text("key_prefix", out.key_prefix, check_key_prefix);
  reader.integer("media_part_tokens", out.media_part_tokens, 0, kMaxQuantity);
  const bool redis = out.backend == Backend::redis;
  read_redis(reader.map("redis"), redis, out.redis);
  reader.finish();
}

}  // namespace stint::config
