// What somebody else wrote under our keys makes their own admissions undecided, and no others.
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "store/redis/bytes.h"
#include "tests/integration/redis_store_testing.h"

namespace stint::redis_testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string bytes_of(double number) {
  const auto bytes = std::bit_cast<std::array<char, sizeof(number)>>(number);
  return {bytes.begin(), bytes.end()};
}

class RedisHostile : public RedisStoreTest {
 protected:
  static constexpr std::size_t kBuckets = 64;
  static constexpr std::size_t kVictim = 20;
  static constexpr std::string_view kKey = "p:20";

  RedisHostile() {
    StoreRig::Options options = patient();
    options.store.calls_in_flight = 1;
    options.store.hooks = told_.hooks();
    replica_ = rig(std::move(options));
  }

  // One admission of each of 64 buckets, all in one call. Each must have `before` behind it.
  std::deque<Call> batch(OnStoreError rule) {
    std::deque<Call> calls;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      calls.push_back(call_of({{"p:" + std::to_string(i), set_}}, rule));
    }
    Call first = call_of({{"first", set_}});
    const std::int64_t before = script_calls();
    Answers answers;
    server_.pause();
    replica_->store().acquire(first.record(), answers.expect());
    for (Call& call : calls) replica_->store().acquire(call.record(), answers.expect());
    server_.resume();
    answers.wait();
    EXPECT_LE(script_calls() - before, 3) << "they went together";
    return calls;
  }

  static void expect_others_exact(const std::deque<Call>& calls, std::int64_t remaining) {
    for (std::size_t i = 0; i < kBuckets; ++i) {
      if (i == kVictim) continue;
      EXPECT_TRUE(calls[i].admitted()) << i;
      EXPECT_EQ(calls[i].bucket().local, 0U) << i;
      for (std::size_t k = 0; k < set_size(); ++k) {
        EXPECT_EQ(calls[i].slot(k).remaining, remaining) << i << ' ' << k;
      }
    }
  }
  [[nodiscard]] static std::size_t set_size() { return 5; }

  // `spoil` does it to the bucket kKey, of which one admission is held.
  template <class Spoil>
  void expect_only_its_own_are_undecided(Spoil spoil) {
    expect_others_exact(batch(OnStoreError::deny), 99);
    spoil();
    const std::deque<Call> denied = batch(OnStoreError::deny);
    expect_others_exact(denied, 98);
    EXPECT_EQ(denied[kVictim].record().outcome, Outcome::undecided);
    EXPECT_EQ(denied[kVictim].record().error.code, ErrorCode::unavailable);
    const std::deque<Call> local = batch(OnStoreError::local);
    expect_others_exact(local, 97);
    EXPECT_TRUE(local[kVictim].admitted());
    EXPECT_NE(local[kVictim].bucket().local, 0U);
    EXPECT_EQ(told_.warnings_with("cannot be read"), 1U) << told_.warnings();
    expect_settlements_are_harmless();
    EXPECT_EQ(immortal_keys(), spoiled_for_ever_);
  }

  // A settlement and a renewal of the victim beside one of another bucket.
  void expect_settlements_are_harmless() {
    Call other = call_of({{"p:1", set_}});
    EXPECT_EQ(acquire(*replica_, other), Outcome::admitted);
    Call victim = call_of({{std::string(kKey), set_}});
    for (store::LimitSlot& slot : victim.record().slots) slot.charged.amount = 1;
    victim.record().buckets[0].charged = true;
    Answers answers;
    std::vector<store::AdmissionRecord*> records{&victim.record(), &other.record()};
    replica_->store().renew(records, answers.expect());
    bool victim_settled = true;
    bool other_settled = false;
    replica_->store().settle(victim.record(), [&, done = answers.expect()](auto result) mutable {
      victim_settled = result.has_value();
      done();
    });
    replica_->store().settle(other.record(), [&, done = answers.expect()](auto result) mutable {
      other_settled = result.has_value();
      done();
    });
    answers.wait();
    EXPECT_FALSE(victim_settled);
    EXPECT_TRUE(other_settled);
    EXPECT_EQ(leases("p:1"), 3);
  }

  // In place of the counters.
  void put(std::string_view bytes) {
    EXPECT_EQ(server_.command({"SET", counters_key(kKey), bytes, "PX", "3600000"}).text(), "OK");
  }
  // Other bytes at a place in the counters that are there.
  void overwrite(std::size_t at, const std::string& with) {
    const redis::Reply now = server_.command({"GET", counters_key(kKey)});
    std::string bytes(now.text());
    ASSERT_GE(bytes.size(), at + with.size());
    put(bytes.replace(at, with.size(), with));
  }

  const limit::LimitSetPtr set_ =
      limits({requests_per(kLong, 100), requests_per(kLong, 100, Algorithm::sliding_window),
              requests_per(kLong, 100, Algorithm::sliding_log),
              store::token_bucket(100, kLong, 100), in_flight(100)});
  std::string spoiled_for_ever_;  // the key that `spoil` gives no time to live
  Told told_;
  std::unique_ptr<StoreRig> replica_;
};

// version, flags, birth, number of limits; of the first: name, quota, start, used
constexpr std::size_t kBirth = 2;
constexpr std::size_t kCount = 10;
constexpr std::size_t kName = 11;
constexpr std::size_t kQuota = kName + 8;
constexpr std::size_t kStart = kQuota + 8;
constexpr std::size_t kUsed = kStart + 8;

TEST_F(RedisHostile, AList) {
  spoiled_for_ever_ = counters_key(kKey);
  expect_only_its_own_are_undecided([&] {
    server_.command({"DEL", counters_key(kKey)});
    server_.command({"RPUSH", counters_key(kKey), "x"});
  });
}

TEST_F(RedisHostile, AText) {
  expect_only_its_own_are_undecided([&] { put("somebody else's value, which is long enough"); });
}

TEST_F(RedisHostile, AnEmptyString) {
  expect_only_its_own_are_undecided([&] { put(""); });
}

TEST_F(RedisHostile, ANumber) {
  expect_only_its_own_are_undecided([&] { put("1e999"); });
}

TEST_F(RedisHostile, TruncatedBytes) {
  expect_only_its_own_are_undecided([&] {
    const redis::Reply now = server_.command({"GET", counters_key(kKey)});
    put(now.text().substr(0, now.text().size() - 3));
  });
}

TEST_F(RedisHostile, BytesTooMany) {
  expect_only_its_own_are_undecided([&] {
    const redis::Reply now = server_.command({"GET", counters_key(kKey)});
    put(std::string(now.text()) + "x");
  });
}

TEST_F(RedisHostile, AnotherVersion) {
  expect_only_its_own_are_undecided([&] { overwrite(0, "\x02"); });
}

TEST_F(RedisHostile, MoreLimitsThanThereAre) {
  expect_only_its_own_are_undecided([&] { overwrite(kCount, "\xFF"); });
}

struct Number {
  const char* name;
  std::size_t at;
  double value;
};

class RedisHostileNumbers : public RedisHostile, public ::testing::WithParamInterface<Number> {};

TEST_P(RedisHostileNumbers, OfACounter) {
  expect_only_its_own_are_undecided([&] { overwrite(GetParam().at, bytes_of(GetParam().value)); });
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, RedisHostileNumbers,
    ::testing::Values(Number{"InfiniteUse", kUsed, kInfinity}, Number{"UseThatIsNone", kUsed, kNan},
                      Number{"NegativeUse", kUsed, -1}, Number{"FractionOfUse", kUsed, 0.5},
                      Number{"HugeUse", kUsed, 1e300}, Number{"InfiniteStart", kStart, kInfinity},
                      Number{"StartThatIsNone", kStart, kNan}, Number{"NegativeBirth", kBirth, -7},
                      Number{"NamelessLimit", kName, kNan},
                      Number{"UnknownAlgorithm", kName, 64 * 1000 + 5},
                      Number{"NoWindow", kName, 0}, Number{"InfiniteQuota", kQuota, kInfinity}),
    [](const auto& info) { return info.param.name; });

TEST_F(RedisHostile, ATextInPlaceOfTheLeases) {
  spoiled_for_ever_ = leases_key(kKey);
  expect_only_its_own_are_undecided([&] { server_.command({"SET", leases_key(kKey), "x"}); });
}

// It is taken for one that was made while the time was ahead.
TEST_F(RedisHostile, ALeaseForEver) {
  expect_others_exact(batch(OnStoreError::deny), 99);
  for (const char* score : {"inf", "9e18", "1e300"}) {
    server_.command({"ZADD", leases_key(kKey), score, "0123456789abcdef"});
    Call held = call_of({{std::string(kKey), set_}});
    for (store::LimitSlot& slot : held.record().slots) slot.charged.amount = 1;
    held.record().buckets[0].charged = true;
    held.record().buckets[0].birth = 0;
    renew(*replica_, held);
    EXPECT_TRUE(give_back(*replica_, held)) << "there is nobody whose ttl it could be cut to";
    Call call = call_of({{std::string(kKey), set_}}, OnStoreError::deny, kMinute);
    ASSERT_EQ(acquire(*replica_, call), Outcome::admitted) << score;
    EXPECT_EQ(call.slot(4).remaining, 97);
    const redis::Reply last =
        server_.command({"ZREVRANGE", leases_key(kKey), "0", "0", "WITHSCORES"});
    EXPECT_LE(last[1].number().value(), (call.record().now + kMinute).time_since_epoch().count());
    EXPECT_TRUE(give_back(*replica_, call));
  }
  EXPECT_EQ(immortal_keys(), "");
}

TEST_F(RedisHostile, AHashInPlaceOfALog) {
  spoiled_for_ever_ = log_key(kKey, kLong);
  expect_only_its_own_are_undecided([&] {
    server_.command({"DEL", log_key(kKey, kLong)});
    server_.command({"HSET", log_key(kKey, kLong), "a", "b"});
  });
}

TEST_F(RedisHostile, AnEntryMoreInALog) {
  expect_only_its_own_are_undecided(
      [&] { server_.command({"ZADD", log_key(kKey, kLong), "1", "short"}); });
}

// An entry of a log in place of the one that is there, so that their number is right.
class RedisHostileEntries : public RedisHostile, public ::testing::WithParamInterface<Number> {
 protected:
  void replace_entry(const std::string& with) {
    const redis::Reply there =
        server_.command({"ZRANGE", log_key(kKey, kLong), "0", "0", "WITHSCORES"});
    ASSERT_EQ(there.size(), 2U);
    server_.command({"ZADD", log_key(kKey, kLong), there[1].text(), with});
    server_.command({"ZREM", log_key(kKey, kLong), there[0].text()});
  }
};

// Nobody notices until the log is full: then its oldest entries say when there will be room.
TEST_P(RedisHostileEntries, OfAFullLog) {
  const auto log = limits({requests_per(kLong, 1, Algorithm::sliding_log)});
  Call first = call_of({{std::string(kKey), log}});
  ASSERT_EQ(acquire(*replica_, first), Outcome::admitted);
  const bool is_short = GetParam().value == 0;
  replace_entry(is_short ? "short" : "0123456789abcdef" + bytes_of(GetParam().value));
  std::deque<Call> calls;
  for (int i = 0; i < 20; ++i) {
    calls.push_back(call_of({{i == 10 ? std::string(kKey) : "q:" + std::to_string(i), log}}));
  }
  Call before = call_of({{"first", log}});
  Answers answers;
  server_.pause();
  replica_->store().acquire(before.record(), answers.expect());
  for (Call& call : calls) replica_->store().acquire(call.record(), answers.expect());
  server_.resume();
  answers.wait();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i != 10) EXPECT_EQ(calls[i].record().outcome, Outcome::admitted) << i;
  }
  EXPECT_NE(calls[10].record().outcome, Outcome::admitted) << "it is full, whatever is written";
}

INSTANTIATE_TEST_SUITE_P(Kinds, RedisHostileEntries,
                         ::testing::Values(Number{"Short", 0, 0}, Number{"Nan", 0, kNan},
                                           Number{"Infinite", 0, kInfinity},
                                           Number{"Negative", 0, -5}, Number{"Fraction", 0, 0.5}),
                         [](const auto& info) { return info.param.name; });

TEST_F(RedisHostile, InstantsThatAreNoIntegers) {
  expect_others_exact(batch(OnStoreError::deny), 99);
  const auto log = limits({requests_per(kLong, 1, Algorithm::sliding_log)});
  Call first = call_of({{"q:a", log}});
  ASSERT_EQ(acquire(*replica_, first), Outcome::admitted);
  const redis::Reply entry = server_.command({"ZRANGE", log_key("q:a", kLong), "0", "0"});
  const std::string then = std::to_string(first.record().now.time_since_epoch().count()) + ".25";
  server_.command({"ZADD", log_key("q:a", kLong), then, entry[0].text()});
  Call second = call_of({{"q:a", log}});
  EXPECT_EQ(acquire(*replica_, second), Outcome::refused);
  EXPECT_EQ(told_.warnings(), "");
}

TEST_F(RedisHostile, TheListOfReplicas) {
  const std::string key = store::keys_begin("t") + "replicas";
  server_.command({"DEL", key});
  server_.command({"RPUSH", key, "x"});
  server_.command({"CLIENT", "KILL", "TYPE", "normal"});
  ASSERT_TRUE(replica_->wait_until_degraded(true));
  EXPECT_TRUE(replica_->wait_until_degraded(false)) << told_.warnings();
  EXPECT_EQ(replica_->store().replicas(), 1);
  EXPECT_EQ(immortal_keys(), "");
}

}  // namespace
}  // namespace stint::redis_testing
