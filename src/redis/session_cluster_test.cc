// What a session does for Clusters and for masters that move.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "redis/session.h"
#include "redis/session_testing.h"

namespace stint::redis {
namespace {

using State = Session::State;

class ClusterSession : public SessionFixture {
 protected:
  void call_asking(Outcome& outcome, std::string_view key, Duration timeout = ms(50)) {
    const std::string_view arg = "1";
    session->call(script, {&key, 1}, {&arg, 1}, now, now + timeout, into(outcome),
                  Session::Asking::yes);
  }
  Outcome a;
  Outcome b;
};

TEST_F(ClusterSession, AskingStandsRightInFrontOfItsCall) {
  open_ready();
  call(a, "a");
  call_asking(b, "b");
  EXPECT_EQ(sent(), (Sent{evalsha("a"), "ASKING", evalsha("b")}));
  receive("+one\r\n+OK\r\n");
  EXPECT_EQ(a.text(), "one");
  EXPECT_TRUE(b.pending());
  receive("+two\r\n");
  EXPECT_EQ(b.text(), "two");
  EXPECT_EQ(session->pending(), 0U);
}

TEST_F(ClusterSession, ARefusedAskingIsAnsweredByTheCall) {
  open_ready();
  call_asking(a, "a");
  EXPECT_EQ(sent().size(), 2U);
  receive("-ERR This instance has cluster support disabled\r\n-MOVED 1 h:1\r\n");
  EXPECT_EQ(a.text(), "not_run rejected");
  EXPECT_EQ(a.result->error().code, "MOVED");
  EXPECT_EQ(session->state(), State::ready);
}

TEST_F(ClusterSession, AnUnknownScriptIsAskedForAgainWithItsAsking) {
  open_ready();
  call_asking(a, "a");
  EXPECT_EQ(sent().size(), 2U);
  receive("+OK\r\n-NOSCRIPT No matching script.\r\n");
  EXPECT_EQ(sent(), (Sent{"SCRIPT LOAD return 1", "ASKING", evalsha("a")}));
  receive("$40\r\n" + script.sha1() + "\r\n+OK\r\n+done\r\n");
  EXPECT_EQ(a.text(), "done");
}

TEST_F(ClusterSession, ADroppedCallTakesItsAskingAlong) {
  open_ready();
  const std::string_view first(session->begin_write(now));
  EXPECT_TRUE(first.empty());
  call_asking(a, "a", ms(5));
  call(b, "b");
  advance(ms(10));
  EXPECT_EQ(a.text(), "not_run timed_out");
  // Else the call behind it would be taken by a node that has only a part of the slot.
  EXPECT_EQ(sent(), Sent{evalsha("b")});
}

TEST_F(ClusterSession, ALateReplyIsThatOfBoth) {
  open_ready();
  call_asking(a, "a");
  EXPECT_EQ(sent().size(), 2U);
  advance(ms(50));
  EXPECT_EQ(a.text(), "unknown timed_out");
  call(b, "b");
  EXPECT_EQ(sent(), Sent{evalsha("b")});
  receive("+OK\r\n+late\r\n+two\r\n");
  EXPECT_EQ(b.text(), "two");
}

TEST_F(ClusterSession, AMasterIsAskedForItsRole) {
  SessionOptions with = options();
  with.must_be_master = true;
  with.scripts = {&script};
  open(with);
  EXPECT_EQ(sent(), (Sent{"TIME", "ROLE", "SCRIPT LOAD return 1"}));
  receive("*2\r\n$1\r\n1\r\n$1\r\n5\r\n*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n$1\r\nx\r\n");
  EXPECT_EQ(session->state(), State::ready);
}

TEST_F(ClusterSession, AReplicaIsOfNoUse) {
  SessionOptions with = options();
  with.must_be_master = true;
  open(with);
  EXPECT_EQ(sent().size(), 2U);
  receive(
      "*2\r\n$1\r\n1\r\n$1\r\n5\r\n"
      "*5\r\n$5\r\nslave\r\n$1\r\nh\r\n:6379\r\n$9\r\nconnected\r\n:1\r\n");
  EXPECT_EQ(session->state(), State::broken);
  EXPECT_EQ(session->fault().text, "ROLE: it is no master, but a slave");
  EXPECT_TRUE(configuration.empty()) << "nobody has to mend that";
}

TEST_F(ClusterSession, AForbiddenRoleIsAFaultOfConfiguration) {
  SessionOptions with = options();
  with.must_be_master = true;
  open(with);
  EXPECT_EQ(sent().size(), 2U);
  receive(
      "*2\r\n$1\r\n1\r\n$1\r\n5\r\n"
      "-NOPERM this user has no permissions to run the 'role' command\r\n");
  EXPECT_EQ(session->state(), State::broken);
  ASSERT_EQ(configuration.size(), 1U);
  EXPECT_EQ(configuration[0],
            "ROLE: NOPERM this user has no permissions to run the 'role' command");
}

TEST_F(ClusterSession, ASentinelIsNotAskedForItsTime) {
  SessionOptions with = options();
  with.ask_time = false;
  with.password = "secret";
  open(with);
  EXPECT_EQ(sent(), (Sent{"AUTH secret", "PING"}));
  receive("+OK\r\n+PONG\r\n");
  EXPECT_EQ(session->state(), State::ready);
  EXPECT_FALSE(session->server_time());
}

}  // namespace
}  // namespace stint::redis
