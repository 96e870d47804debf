#include "net/stream.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "net/stream_testing.h"

namespace stint::net {
namespace {

using std::chrono::milliseconds;

class StreamTest : public testing::Test {
 protected:
  EventLoop loop_;
  StreamPair pair_ = make_pair(loop_);
  TaskGroup tasks_{loop_};

  NetResult<void> write(Stream& stream, std::string_view first, std::string_view second = {}) {
    return run(loop_, stream.write(first, second, kLong));
  }
};

TEST_F(StreamTest, BytesArriveInOrder) {
  ASSERT_TRUE(write(pair_.client, "ab", "cd"));
  ASSERT_TRUE(run(loop_, pair_.client.write("e", "", "f", kLong)));
  EXPECT_EQ(run(loop_, read_exactly(pair_.server, 6)), "abcdef");
}

TEST_F(StreamTest, KnowsItsPeer) {
  EXPECT_EQ(pair_.server.peer_address(), "127.0.0.1");
  EXPECT_EQ(pair_.client.peer_address(), "127.0.0.1");
}

TEST_F(StreamTest, ALongWriteWaitsForItsReader) {
  const std::string sent(8 * 1024 * 1024, 'x');
  const auto writer = [](Stream& stream, const std::string& text) -> Task<> {
    const std::string_view view = text;
    const auto written = co_await stream.write(view.substr(0, 5), view.substr(5), kLong);
    EXPECT_TRUE(written.has_value());
    stream.close();
  };
  tasks_.start(writer(pair_.client, sent));
  EXPECT_EQ(run(loop_, read_exactly(pair_.server, sent.size())), sent);
  EXPECT_EQ(run(loop_, read_error(pair_.server, kLong)), NetErrc::closed);
  run(loop_, tasks_.join());
}

TEST_F(StreamTest, AnOrderlyEndIsClosed) {
  pair_.client.close();
  EXPECT_EQ(run(loop_, read_error(pair_.server, kLong)), NetErrc::closed);
  EXPECT_FALSE(pair_.client.open());
  EXPECT_TRUE(pair_.server.open());
}

TEST_F(StreamTest, AnAbortIsAReset) {
  pair_.client.abort();
  EXPECT_EQ(run(loop_, read_error(pair_.server, kLong)), NetErrc::reset);
}

TEST_F(StreamTest, ClosingTheSendingSideLeavesTheOther) {
  pair_.client.close_sending();
  EXPECT_EQ(run(loop_, read_error(pair_.server, kLong)), NetErrc::closed);
  ASSERT_TRUE(write(pair_.server, "still there"));
  EXPECT_EQ(run(loop_, read_exactly(pair_.client, 11)), "still there");
}

TEST_F(StreamTest, WritingToOneThatIsGoneFails) {
  pair_.server.abort();
  EXPECT_EQ(run(loop_, read_error(pair_.client, kLong)), NetErrc::reset);
  const NetResult<void> written = write(pair_.client, "x");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, NetErrc::reset);
}

TEST_F(StreamTest, AReadThatTimesOutLeavesTheStreamAsItWas) {
  const Duration before = loop_.now();
  EXPECT_EQ(run(loop_, read_error(pair_.server, milliseconds{20})), NetErrc::timed_out);
  EXPECT_GE(loop_.now() - before, milliseconds{20});
  EXPECT_LT(loop_.now() - before, kLong);
  ASSERT_TRUE(write(pair_.client, "late"));
  EXPECT_EQ(run(loop_, read_exactly(pair_.server, 4)), "late");
  // A longer deadline after a shorter one, and the other way round.
  EXPECT_EQ(run(loop_, read_error(pair_.server, milliseconds{30})), NetErrc::timed_out);
  EXPECT_EQ(run(loop_, read_error(pair_.server, milliseconds{5})), NetErrc::timed_out);
}

TEST_F(StreamTest, AWriteTimesOutWhenThePeerTakesNothing) {
  const std::string much(32 * 1024 * 1024, 'x');
  const NetResult<void> written = run(loop_, pair_.client.write(much, "", milliseconds{30}));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, NetErrc::timed_out);
}

TEST_F(StreamTest, AReadThatTimesOutDoesNotEndAWriteBesideIt) {
  const std::string much(16 * 1024 * 1024, 'x');
  std::optional<NetResult<void>> written;
  const auto writer = [](Stream& stream, const std::string& text,
                         std::optional<NetResult<void>>& result) -> Task<> {
    auto done = co_await stream.write(text, "", kLong);
    result = std::move(done);
  };
  tasks_.start(writer(pair_.client, much, written));
  EXPECT_EQ(run(loop_, read_error(pair_.client, milliseconds{10})), NetErrc::timed_out);
  EXPECT_FALSE(written.has_value());
  EXPECT_EQ(run(loop_, read_exactly(pair_.server, much.size())).size(), much.size());
  run(loop_, tasks_.join());
  EXPECT_TRUE(written->has_value());
}

TEST_F(StreamTest, AReaderThatNeverHasToWaitLetsOthersRun) {
  ASSERT_TRUE(write(pair_.client, std::string(10'000, 'x')));
  bool other_ran = false;
  int reads = 0;
  const auto reader = [](Stream& stream, const bool& others, int& count) -> Task<> {
    char byte = 0;
    const std::span<char> room(&byte, 1);
    while (!others && count < 10'000) {
      const auto read = co_await stream.read_some(room, kLong);
      if (!read) break;
      ++count;
    }
  };
  loop_.post([&] {
    tasks_.start(reader(pair_.server, other_ran, reads));
    loop_.post([&] { other_ran = true; });
  });
  run_what_is_ready(loop_);
  EXPECT_TRUE(other_ran);
  EXPECT_LT(reads, 100);
  run(loop_, tasks_.join());
}

TEST_F(StreamTest, WaitReadableTakesNothing) {
  const NetResult<void> nothing = run(loop_, pair_.server.wait_readable(milliseconds{10}));
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, NetErrc::timed_out);
  EXPECT_FALSE(pair_.server.readable());
  ASSERT_TRUE(write(pair_.client, "ab"));
  EXPECT_TRUE(run(loop_, pair_.server.wait_readable(kLong)));
  EXPECT_TRUE(pair_.server.readable());
  EXPECT_EQ(run(loop_, read_exactly(pair_.server, 2)), "ab");
}

TEST_F(StreamTest, WhatIsUnderWayComesBeforeWhatBegins) {
  StreamPair other = make_pair(loop_);
  std::string order;
  const auto begin = [](Stream& stream, std::string& done) -> Task<> {
    const auto readable = co_await stream.wait_readable(kLong);
    EXPECT_TRUE(readable);
    done += "new ";
  };
  const auto go_on = [](Stream& stream, std::string& done) -> Task<> {
    const auto read = co_await read_exactly(stream, 1);
    EXPECT_EQ(read, "b");
    done += "old ";
  };
  for (int round = 0; round < 2; ++round) {  // what was idle once can be under way the next time
    Stream& idle = round == 0 ? pair_.server : other.server;
    Stream& busy = round == 0 ? other.server : pair_.server;
    tasks_.start(begin(idle, order));
    tasks_.start(go_on(busy, order));
    run_what_is_ready(loop_);
    Stream::Parts first{"a", "", ""};
    Stream::Parts second{"b", "", ""};
    ASSERT_TRUE((round == 0 ? pair_.client : other.client).write_now(first));
    ASSERT_TRUE((round == 0 ? other.client : pair_.client).write_now(second));
    run(loop_, tasks_.join());
    EXPECT_EQ(std::exchange(order, ""), "old new ");
    if (round == 0) EXPECT_EQ(run(loop_, read_exactly(pair_.server, 1)), "a");
  }
}

TEST_F(StreamTest, ReadWaitingDoesNotWait) {
  char bytes[8];
  EXPECT_FALSE(pair_.server.read_waiting(bytes).has_value());
  ASSERT_TRUE(write(pair_.client, "ab"));
  ASSERT_TRUE(run(loop_, pair_.server.wait_readable(kLong)));
  EXPECT_EQ(pair_.server.read_waiting(bytes).value().value(), 2U);
}

TEST_F(StreamTest, WriteNowTakesAtOnceWhatTheKernelTakes) {
  Stream::Parts parts{"a", "", "bc"};
  const auto whole = pair_.client.write_now(parts);
  ASSERT_TRUE(whole.has_value());
  EXPECT_TRUE(whole->has_value());
  EXPECT_EQ(run(loop_, read_exactly(pair_.server, 3)), "abc");

  for (const std::size_t size : {2047U, 2048U, 2049U}) {  // where copying them together ends
    const std::string some(size - 4, 'x');
    parts = {"ab", some, "cd"};
    EXPECT_TRUE(pair_.client.write_now(parts).has_value());
    EXPECT_EQ(run(loop_, read_exactly(pair_.server, size)), "ab" + some + "cd");
  }

  const std::string much(16 * 1024 * 1024, 'x');
  parts = {"head", much, "end"};
  EXPECT_FALSE(pair_.client.write_now(parts).has_value());
  const std::size_t left = parts[0].size() + parts[1].size() + parts[2].size();
  EXPECT_LT(left, much.size());
  EXPECT_EQ(parts[2], "end");
  const std::size_t taken = much.size() + 7 - left;
  EXPECT_EQ(run(loop_, read_exactly(pair_.server, taken)).size(), taken);

  pair_.client.close();
  const auto closed = pair_.client.write_now(parts);
  ASSERT_TRUE(closed.has_value());
  EXPECT_EQ(closed->error().code, NetErrc::cancelled);
}

TEST_F(StreamTest, CloseEndsARead) {
  std::optional<NetErrc> ended;
  const auto reader = [](Stream& stream, std::optional<NetErrc>& into) -> Task<> {
    const auto code = co_await read_error(stream, kLong);
    into = code;
  };
  tasks_.start(reader(pair_.server, ended));
  loop_.post([&] { pair_.server.close(); });
  run(loop_, tasks_.join());
  EXPECT_EQ(ended, NetErrc::cancelled);
}

TEST_F(StreamTest, CancellingTheTaskEndsItsRead) {
  std::optional<NetErrc> ended;
  const auto reader = [](Stream& stream, std::optional<NetErrc>& into) -> Task<> {
    const auto code = co_await read_error(stream, kLong);
    into = code;
  };
  tasks_.start(reader(pair_.server, ended));
  loop_.post([&] { tasks_.cancel_all(); });
  run(loop_, tasks_.join());
  EXPECT_EQ(ended, NetErrc::cancelled);
  EXPECT_TRUE(pair_.server.open());
}

class WatchTest : public StreamTest {
 protected:
  // Starts a watch and returns what it ended with, once `act` has been done.
  template <class Act>
  std::optional<bool> watched(Act act) {
    std::optional<bool> result;
    const auto watcher = [](Stream& stream, std::optional<bool>& into) -> Task<> {
      const auto ended = co_await stream.watch_for_end();
      into = ended;
    };
    tasks_.start(watcher(pair_.server, result));
    loop_.post(act);
    run(loop_, tasks_.join());
    return result;
  }
  // The same for the form with a callback; nothing if it was not called.
  template <class Act>
  std::optional<bool> called(Act act) {
    std::optional<bool> result;
    loop_.post([&] {
      pair_.server.watch([&](bool ended) { result = ended; });
      act();
    });
    run_what_is_ready(loop_);
    return result;
  }
};

TEST_F(WatchTest, SeesAnOrderlyEnd) {
  EXPECT_EQ(watched([&] { pair_.client.close(); }), true);
}
TEST_F(WatchTest, SeesAReset) {
  EXPECT_EQ(watched([&] { pair_.client.abort(); }), true);
}
TEST_F(WatchTest, SeesAnEndThatWasThereBefore) {
  pair_.client.close();
  EXPECT_EQ(watched([] {}), true);
}
TEST_F(WatchTest, EndsAtBytesAndLeavesThem) {
  ASSERT_TRUE(write(pair_.client, "next"));
  EXPECT_EQ(watched([] {}), false);
  EXPECT_EQ(run(loop_, read_exactly(pair_.server, 4)), "next");
}
TEST_F(WatchTest, EndsWhenStopped) {
  EXPECT_EQ(watched([&] { pair_.server.stop_watching(); }), false);
  ASSERT_TRUE(write(pair_.client, "ab"));
  EXPECT_EQ(run(loop_, read_exactly(pair_.server, 2)), "ab");
}
TEST_F(WatchTest, EndsWhenClosedHere) {
  EXPECT_EQ(watched([&] { pair_.server.close(); }), false);
}

TEST_F(WatchTest, CallsBackAtTheEnd) {
  EXPECT_EQ(called([&] { pair_.client.close(); }), true);
}
TEST_F(WatchTest, CallsBackAtBytes) {
  ASSERT_TRUE(write(pair_.client, "x"));
  EXPECT_EQ(called([] {}), false);
}
TEST_F(WatchTest, DoesNotCallBackWhenStopped) {
  EXPECT_EQ(called([&] {
              pair_.server.stop_watching();
              pair_.client.close();
            }),
            std::nullopt);
}
TEST_F(WatchTest, DoesNotCallBackWhenClosedHere) {
  EXPECT_EQ(called([&] { pair_.server.close(); }), std::nullopt);
}
TEST_F(WatchTest, MayBeDestroyedWhileWatched) {
  EXPECT_EQ(called([&] {
              const Stream gone = std::move(pair_.server);
              pair_.client.close();
            }),
            std::nullopt);
}
TEST_F(WatchTest, AWriteMayGoOnMeanwhile) {
  const std::string much(8 * 1024 * 1024, 'x');
  std::optional<bool> ended;
  pair_.server.watch([&](bool result) { ended = result; });
  const auto writer = [](Stream& stream, const std::string& text) -> Task<> {
    const auto written = co_await stream.write(text, "", kLong);
    EXPECT_TRUE(written.has_value());
  };
  tasks_.start(writer(pair_.server, much));
  EXPECT_EQ(run(loop_, read_exactly(pair_.client, much.size())).size(), much.size());
  run(loop_, tasks_.join());
  EXPECT_EQ(ended, std::nullopt);
  pair_.client.close();
  run_what_is_ready(loop_);
  EXPECT_EQ(ended, true);
}

TEST_F(WatchTest, SeesTheEndBehindUnreadBytes) {
  ASSERT_TRUE(write(pair_.client, "unread"));
  ASSERT_TRUE(run(loop_, pair_.server.wait_readable(kLong)));
  EXPECT_FALSE(pair_.server.peer_ended());
  pair_.client.close();
  EXPECT_TRUE(pair_.server.peer_ended());
  EXPECT_EQ(run(loop_, read_exactly(pair_.server, 10)), "unread");
}

}  // namespace
}  // namespace stint::net
