// What the client itself costs for each call, without the network.
#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>

#include "redis/command.h"
#include "redis/reply.h"
#include "redis/session.h"

namespace stint::redis {
namespace {

const Script& script() {
  static const Script kScript("bench", "return 1");
  return kScript;
}
constexpr std::array<std::string_view, 1> kKeys = {"stint:rl:1:{team:team=red}"};
constexpr std::array<std::string_view, 5> kArgs = {"1", "60000000", "1700000000123456", "100", "0"};

void append_nine_words(benchmark::State& state) {
  std::string out;
  for (auto _ : state) {
    out.clear();
    append_evalsha(out, script().sha1(), kKeys, kArgs);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(append_nine_words);

void read_array(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(0));
  std::string one = "*" + std::to_string(size) + "\r\n";
  for (std::size_t i = 0; i < size; ++i) one += ":123456\r\n";
  std::string bytes;
  for (int i = 0; i < 32; ++i) bytes += one;
  ReplyReader reader;
  for (auto _ : state) {
    reader.feed(bytes);
    for (int i = 0; i < 32; ++i) {
      auto reply = reader.next();
      benchmark::DoNotOptimize(reply);
    }
  }
  state.SetItemsProcessed(state.iterations() * 32);
}
BENCHMARK(read_array)->Arg(2)->Arg(8)->Arg(64);

// From the call to its answer, 16 at a time.
void session_round_trip(benchmark::State& state) {
  Session session{SessionOptions()};
  const Duration now = std::chrono::seconds{1};
  session.open(now, now + std::chrono::seconds{1});
  (void)session.begin_write(now);
  session.end_write();
  session.received("*2\r\n$1\r\n1\r\n$1\r\n5\r\n", now);
  std::string replies;
  for (int i = 0; i < 16; ++i) replies += "*4\r\n:1\r\n:99\r\n:100\r\n:60000000\r\n";
  std::int64_t sum = 0;
  for (auto _ : state) {
    for (int i = 0; i < 16; ++i) {
      session.call(script(), kKeys, kArgs, now, now + std::chrono::milliseconds{50},
                   [&sum](CallResult result) { sum += (*result)[1].integer(); });
    }
    benchmark::DoNotOptimize(session.begin_write(now).data());
    session.end_write();
    session.received(replies, now);
  }
  if (sum != 99 * 16 * static_cast<std::int64_t>(state.iterations())) state.SkipWithError("lost");
  state.SetItemsProcessed(state.iterations() * 16);
}
BENCHMARK(session_round_trip);

}  // namespace
}  // namespace stint::redis
