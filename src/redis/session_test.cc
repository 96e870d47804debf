// Replies, errors, time-outs and losses in every order: each call is answered once, with its own
// reply or with what is certain about its fate.
#include "redis/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "redis/session_testing.h"

namespace stint::redis {
namespace {

using State = Session::State;

class SessionCalls : public SessionFixture {
 protected:
  void SetUp() override { open_ready(); }
  Outcome a, b, c;
};

TEST_F(SessionCalls, RepliesGoToCallsInOrder) {
  call(a, "a");
  ping(b);
  call(c, "c");
  EXPECT_EQ(sent(), (Sent{evalsha("a"), "PING", evalsha("c")}));
  receive("+one\r\n+two\r\n+three\r\n");
  EXPECT_EQ(a.text(), "one");
  EXPECT_EQ(b.text(), "two");
  EXPECT_EQ(c.text(), "three");
  EXPECT_EQ(results, 3);
  EXPECT_EQ(session->pending(), 0U);
  EXPECT_EQ(session->next_tick(), std::nullopt);
}

TEST_F(SessionCalls, RepliesMayComeInAnyPieces) {
  const std::string replies = "+one\r\n*2\r\n:1\r\n$3\r\na\r\n\r\n$-1\r\n";
  for (std::size_t first = 0; first <= replies.size(); ++first) {
    for (std::size_t second = first; second <= replies.size(); ++second) {
      Outcome x, y, z;
      call(x, "x");
      call(y, "y");
      call(z, "z");
      EXPECT_EQ(sent().size(), 3U);
      receive(replies.substr(0, first));
      receive(replies.substr(first, second - first));
      receive(replies.substr(second));
      ASSERT_EQ(x.text(), "one");
      ASSERT_EQ(y.answers, 1);
      ASSERT_EQ((**y.result)[1].text(), "a\r\n");
      ASSERT_EQ(z.answers, 1);
      ASSERT_TRUE((*z.result)->is(Value::Kind::nil));
    }
  }
}

TEST_F(SessionCalls, WhatIsQueuedDuringAWriteGoesWithTheNext) {
  call(a, "a");
  EXPECT_TRUE(session->has_output());
  const std::string_view first = session->begin_write(now);
  call(b, "b");
  EXPECT_EQ(commands_in(first), Sent{evalsha("a")});
  receive("+one\r\n");  // before the write was seen to end
  EXPECT_EQ(a.text(), "one");
  EXPECT_EQ(commands_in(first), Sent{evalsha("a")}) << "bytes were freed while they were written";
  session->end_write();
  EXPECT_EQ(sent(), Sent{evalsha("b")});
  receive("+two\r\n");
  EXPECT_EQ(b.text(), "two");
  EXPECT_FALSE(session->has_output());
}

TEST_F(SessionCalls, ACallMayBeMadeFromAnAnswer) {
  std::vector<std::string> order;
  const std::string_view word = "PING";
  const auto again = [&](CallResult) {
    order.emplace_back("first");
    session->command({&word, 1}, now, now + ms(50),
                     [&](CallResult) { order.emplace_back("third"); });
  };
  session->command({&word, 1}, now, now + ms(50), again);
  session->command({&word, 1}, now, now + ms(50),
                   [&](CallResult) { order.emplace_back("second"); });
  EXPECT_EQ(sent().size(), 2U);
  receive("+x\r\n+x\r\n");
  EXPECT_EQ(order, (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(sent(), Sent{"PING"});
  receive("+x\r\n");
  EXPECT_EQ(order.back(), "third");
}

TEST_F(SessionCalls, ALateReplyIsDroppedAndShiftsNobody) {
  call(a, "a", ms(10));
  call(b, "b", ms(100));
  EXPECT_EQ(sent().size(), 2U);
  EXPECT_EQ(session->next_tick(), now + ms(10));
  advance(ms(9));
  EXPECT_TRUE(a.pending());
  advance(ms(1));
  EXPECT_EQ(a.text(), "unknown timed_out");
  EXPECT_TRUE(b.pending());
  receive("+late\r\n+two\r\n");
  EXPECT_EQ(a.answers, 1);
  EXPECT_EQ(b.text(), "two");
}

TEST_F(SessionCalls, LateErrorsAreDroppedToo) {
  for (const std::string_view late : {"-NOSCRIPT No matching script.\r\n", "-WRONGTYPE x\r\n"}) {
    Outcome x, y;
    call(x, "x", ms(10));
    EXPECT_EQ(sent().size(), 1U);
    advance(ms(10));
    EXPECT_EQ(x.text(), "unknown timed_out");
    receive(late);
    EXPECT_FALSE(session->has_output()) << "a call that nobody waits for was sent again";
    EXPECT_EQ(x.answers, 1);
    call(y, "y");
    EXPECT_EQ(sent().size(), 1U);
    receive("+fine\r\n");
    EXPECT_EQ(y.text(), "fine");
  }
  EXPECT_TRUE(configuration.empty());
}

TEST_F(SessionCalls, WhatIsTooLateBeforeItIsSentIsNeverSent) {
  ping(a, ms(100));
  const std::string_view stuck = session->begin_write(now);
  call(b, "b", ms(10));
  call(c, "c", ms(100));
  Outcome d;
  call(d, "d", ms(10));
  advance(ms(10));
  EXPECT_EQ(commands_in(stuck), Sent{"PING"});
  EXPECT_EQ(b.text(), "not_run timed_out");
  EXPECT_EQ(d.text(), "not_run timed_out");
  EXPECT_TRUE(c.pending());
  session->end_write();
  EXPECT_EQ(sent(), Sent{evalsha("c")});
  receive("+pong\r\n+three\r\n");
  EXPECT_EQ(a.text(), "pong");
  EXPECT_EQ(c.text(), "three");
}

TEST_F(SessionCalls, WhenAllThatIsUnsentIsTooLateNothingIsSent) {
  call(a, "a", ms(10));
  advance(ms(10));
  EXPECT_EQ(a.text(), "not_run timed_out");
  EXPECT_FALSE(session->has_output());
  EXPECT_EQ(session->begin_write(now), "");
  session->end_write();
  call(b, "b");
  EXPECT_EQ(sent(), Sent{evalsha("b")});
}

TEST_F(SessionCalls, ACallWithoutTimeLeftIsNotTaken) {
  call(a, "a", ms(0));
  EXPECT_EQ(a.text(), "not_run timed_out");
  EXPECT_FALSE(session->has_output());
  EXPECT_EQ(results, 0) << "says nothing about the server";
}

TEST_F(SessionCalls, ALossTellsWhatIsCertain) {
  call(a, "a");
  EXPECT_EQ(sent().size(), 1U);
  call(b, "b");
  const std::string_view writing = session->begin_write(now);
  call(c, "c");
  session->lost(Reason::lost, "reset");
  EXPECT_EQ(a.text(), "unknown lost");
  EXPECT_EQ(b.text(), "unknown lost") << "a part of it may have gone out";
  EXPECT_EQ(c.text(), "not_run lost");
  EXPECT_EQ(commands_in(writing), Sent{evalsha("b")});
  session->end_write();
  EXPECT_EQ(session->state(), State::closed);
  EXPECT_FALSE(session->has_output());

  Outcome d;
  call(d, "d");
  EXPECT_EQ(d.text(), "not_run unavailable");
  EXPECT_EQ(d.result->error().text, "reset");
}

TEST_F(SessionCalls, ATimedOutCallIsNotAnsweredAgainByTheLoss) {
  call(a, "a", ms(10));
  EXPECT_EQ(sent().size(), 1U);
  advance(ms(10));
  session->lost(Reason::lost, "reset");
  EXPECT_EQ(a.answers, 1);
  EXPECT_EQ(a.text(), "unknown timed_out");
}

TEST_F(SessionCalls, AfterALossTheNextConnectionStartsClean) {
  call(a, "a");
  EXPECT_EQ(sent().size(), 1U);
  receive("$100\r\nhalf a re");
  session->lost(Reason::lost, "reset");
  session->open(now, now + ms(1000));
  EXPECT_EQ(sent(), Sent{"TIME"});
  receive("*2\r\n$1\r\n1\r\n$1\r\n5\r\n");
  ASSERT_EQ(session->state(), State::ready);
  call(b, "b");
  EXPECT_EQ(sent(), Sent{evalsha("b")});
  receive("+two\r\n");
  EXPECT_EQ(b.text(), "two");
}

TEST_F(SessionCalls, ALossWhileRepliesAreReadEndsTheReading) {
  const std::string_view word = "PING";
  session->command({&word, 1}, now, now + ms(50),
                   [&](CallResult) { session->lost(Reason::stopped, "stopped"); });
  call(b, "b");
  EXPECT_EQ(sent().size(), 2U);
  receive("+one\r\n+two\r\n");
  EXPECT_EQ(b.text(), "unknown stopped");
}

TEST_F(SessionCalls, TheEndOfTheSessionAnswersToo) {
  call(a, "a");
  session.reset();
  EXPECT_EQ(a.text(), "not_run stopped");
}

TEST_F(SessionCalls, WhatIsNoReplyBreaksTheConnection) {
  call(a, "a");
  call(b, "b");
  EXPECT_EQ(sent().size(), 2U);
  call(c, "c");
  receive("+one\r\nHTTP/1.1 400 Bad Request\r\n");
  EXPECT_EQ(a.text(), "one");
  EXPECT_EQ(b.text(), "unknown protocol");
  EXPECT_EQ(c.text(), "not_run protocol");
  EXPECT_EQ(session->state(), State::broken);
  receive("+more\r\n");
  session->tick(now + ms(1000));
  EXPECT_EQ(session->next_tick(), std::nullopt);
  session->lost(Reason::lost, "closed");
  EXPECT_EQ(session->fault().reason, Reason::protocol) << "the cause is kept";
}

TEST_F(SessionCalls, AReplyThatNobodyAskedForBreaksTheConnection) {
  receive("+surprise\r\n");
  EXPECT_EQ(session->state(), State::broken);
  EXPECT_EQ(session->fault().text, "a reply that nobody asked for");
}

TEST_F(SessionCalls, AReplyBeforeItsCallIsSentBreaksTheConnection) {
  call(a, "a");
  receive("+surprise\r\n");
  EXPECT_EQ(a.text(), "not_run protocol");
}

TEST_F(SessionCalls, AReplyAboveTheLimitBreaksTheConnection) {
  SessionOptions with = options();
  with.limits.bytes = 1000;
  open(with);
  EXPECT_EQ(sent(), Sent{"TIME"});
  receive("*2\r\n$1\r\n1\r\n$1\r\n5\r\n");
  call(a, "a");
  EXPECT_EQ(sent().size(), 1U);
  receive("$100000\r\n" + std::string(2000, 'x'));
  EXPECT_EQ(a.text(), "unknown protocol");
  EXPECT_EQ(session->fault().text, "a reply of too many bytes");
}

TEST_F(SessionCalls, ErrorRepliesAreClassified) {
  call(a, "a");
  call(b, "b");
  EXPECT_EQ(sent().size(), 2U);
  receive("-MOVED 3999 127.0.0.1:6381\r\n-WRONGTYPE Operation against a key\r\n");
  EXPECT_EQ(a.text(), "not_run rejected");
  EXPECT_EQ(a.result->error().code, "MOVED");
  EXPECT_EQ(a.result->error().text, "MOVED 3999 127.0.0.1:6381");
  EXPECT_EQ(b.text(), "unknown configuration");
  EXPECT_EQ(configuration, std::vector<std::string>{"WRONGTYPE Operation against a key"});
  EXPECT_EQ(session->state(), State::ready);
}

TEST_F(SessionCalls, ADeadConnectionIsGivenUp) {
  call(a, "a", ms(50));
  EXPECT_EQ(sent().size(), 1U);
  advance(ms(50));
  EXPECT_EQ(a.text(), "unknown timed_out");
  EXPECT_EQ(session->next_tick(), now + ms(150));
  advance(ms(149));
  EXPECT_EQ(session->state(), State::ready);
  call(b, "b");
  EXPECT_EQ(sent().size(), 1U);
  call(c, "c");
  advance(ms(1));
  EXPECT_EQ(session->state(), State::broken);
  EXPECT_EQ(b.text(), "unknown lost");
  EXPECT_EQ(c.text(), "not_run lost");
}

TEST_F(SessionCalls, WhoTimesOutWhenItIsGivenUpIsToldSo) {
  call(a, "a", ms(50));
  call(b, "b", ms(200));
  call(c, "c", ms(1000));
  EXPECT_EQ(sent().size(), 3U);
  advance(ms(50));
  advance(ms(150));
  EXPECT_EQ(a.text(), "unknown timed_out");
  EXPECT_EQ(b.text(), "unknown timed_out");
  EXPECT_EQ(c.text(), "unknown lost");
}

TEST_F(SessionCalls, AConnectionOnWhichAnythingArrivesIsKept) {
  call(a, "a", ms(50));
  call(b, "b", ms(500));
  EXPECT_EQ(sent().size(), 2U);
  advance(ms(50));
  EXPECT_EQ(a.text(), "unknown timed_out");
  now += ms(100);
  receive("$3\r\nab");  // a part of the late reply
  advance(ms(200));
  EXPECT_EQ(session->state(), State::ready);
  receive("c\r\n+two\r\n");
  EXPECT_EQ(b.text(), "two");
}

TEST_F(SessionCalls, PatienceCountsFromTheLastByte) {
  call(a, "a", ms(50));
  EXPECT_EQ(sent().size(), 1U);
  now += ms(40);
  receive("$3\r\n");
  advance(ms(10));
  EXPECT_EQ(a.text(), "unknown timed_out");
  advance(ms(180));
  EXPECT_EQ(session->state(), State::ready);
  advance(ms(10));
  EXPECT_EQ(session->state(), State::broken);
}

TEST_F(SessionCalls, AStandstillOfOurOwnIsNotHeldAgainstTheServer) {
  call(a, "a", ms(50));
  EXPECT_EQ(sent().size(), 1U);
  advance(ms(10'000));
  EXPECT_EQ(a.text(), "unknown timed_out");
  EXPECT_EQ(session->next_tick(), now + ms(50));
  receive("+late\r\n");
  advance(ms(50));
  EXPECT_EQ(session->state(), State::ready);
}

// Three calls; each is answered, times out, or is answered late, and the connection may be lost
// after any of it: whatever the order, each is answered once, and with nobody else's reply.
TEST_F(SessionCalls, EveryOrderOfRepliesAndTimeOuts) {
  // An event is the next reply ('r'), or 10 ms going by ('t'), which is the time of one call each.
  std::string events = "rrrttt";
  int orders = 0;
  do {
    for (std::size_t lost_at = 0; lost_at <= events.size(); ++lost_at) {
      ++orders;
      open_ready();
      std::array<Outcome, 3> calls;
      const std::array<Duration, 3> timeouts{ms(20), ms(10), ms(30)};
      for (std::size_t i = 0; i < 3; ++i) call(calls[i], "k", timeouts[i]);
      EXPECT_EQ(sent().size(), 3U);
      std::array<std::string, 3> expected{"unknown lost", "unknown lost", "unknown lost"};
      std::array<bool, 3> decided{};
      std::size_t replies = 0;
      Duration passed{};
      for (std::size_t i = 0; i < lost_at; ++i) {
        if (events[i] == 'r') {
          receive("+" + std::to_string(replies) + "\r\n");
          if (!std::exchange(decided[replies], true)) expected[replies] = std::to_string(replies);
          ++replies;
        } else {
          advance(ms(10));
          passed += ms(10);
          for (std::size_t j = 0; j < 3; ++j) {
            if (timeouts[j] <= passed && !std::exchange(decided[j], true)) {
              expected[j] = "unknown timed_out";
            }
          }
        }
      }
      session->lost(Reason::lost, "reset");
      for (std::size_t i = 0; i < 3; ++i) {
        ASSERT_EQ(calls[i].text(), expected[i]) << events << " lost after " << lost_at;
      }
      ASSERT_EQ(session->pending(), 0U);
    }
  } while (std::ranges::next_permutation(events).found);
  EXPECT_EQ(orders, 20 * 7);
}

}  // namespace
}  // namespace stint::redis
