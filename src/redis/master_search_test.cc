#include "redis/master_search.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace stint::redis {
namespace {

Duration ms(std::int64_t count) { return std::chrono::milliseconds(count); }

CallResult reply(std::string_view resp) { return Reply::parse(resp); }
CallResult error(std::string_view text) { return std::unexpected(classify(text)); }

constexpr std::string_view kMaster =
    "*4\r\n$4\r\nname\r\n$8\r\nmymaster\r\n$12\r\nconfig-epoch\r\n$1\r\n7\r\n";
constexpr std::string_view kAddress = "*2\r\n$9\r\n127.0.0.1\r\n$4\r\n6380\r\n";

TEST(ReadNamedMaster, TakesTheEpochOfOneAndTheAddressOfTheOther) {
  const auto named = read_named_master(reply(kMaster), reply(kAddress));
  ASSERT_TRUE(named) << named.error();
  EXPECT_EQ(named->host, "127.0.0.1");
  EXPECT_EQ(named->port, 6380);
  EXPECT_EQ(named->epoch, 7);
}

TEST(ReadNamedMaster, SaysWhatIsWrong) {
  EXPECT_EQ(read_named_master(error("ERR No such master with that name"), reply("*-1\r\n")).error(),
            "ERR No such master with that name");
  EXPECT_EQ(read_named_master(reply(kMaster), error("NOAUTH Authentication required.")).error(),
            "NOAUTH Authentication required.");
  for (const std::string_view bad :
       {"*-1\r\n", "*2\r\n$0\r\n\r\n$4\r\n6380\r\n", "*2\r\n$1\r\na\r\n$1\r\n0\r\n",
        "*2\r\n$1\r\na\r\n$5\r\n65536\r\n", ":1\r\n"}) {
    EXPECT_EQ(read_named_master(reply(kMaster), reply(bad)).error(),
              "names no master of that name");
  }
  // Another server than a Sentinel.
  EXPECT_FALSE(read_named_master(reply("*0\r\n"), reply(kAddress)));
}

class Search : public ::testing::Test {
 protected:
  using Sentinels = std::vector<std::size_t>;

  static NamedMaster at(std::uint16_t port, std::int64_t epoch) { return {"h", port, epoch}; }
  // What it asks now, without time going on.
  Sentinels asks() { return search.take_questions(now); }
  Sentinels asks_next() {
    now = std::max(now, search.next_question());
    return asks();
  }
  // Asks all, of whom those in `says` answer.
  void round(const std::vector<std::optional<NamedMaster>>& says) {
    for (const std::size_t i : asks_next()) {
      if (says[i]) {
        changed = search.answered(i, *says[i], now) || changed;
      } else {
        search.failed(i, "sentinel " + std::to_string(i) + " is away", now);
      }
    }
  }
  void begin_with(std::uint16_t port, std::int64_t epoch) {
    round({at(port, epoch), at(port, epoch), at(port, epoch)});
    search.usable();
    changed = false;
  }
  [[nodiscard]] int port() const { return search.master() ? search.master()->port : 0; }

  MasterSearch search{[] {
    MasterSearch::Options options;
    options.sentinels = 3;
    return options;
  }()};
  Duration now = ms(1'000'000);
  bool changed = false;
};

TEST_F(Search, BeginsWithAllAndTakesTheFirstAnswer) {
  EXPECT_EQ(asks(), (Sentinels{0, 1, 2}));
  EXPECT_EQ(port(), 0);
  EXPECT_TRUE(asks().empty());
  EXPECT_TRUE(search.answered(1, at(1, 5), now));
  EXPECT_EQ(port(), 1);
  EXPECT_FALSE(search.answered(0, at(1, 5), now));
  // Whoever has not answered is not asked a second time.
  EXPECT_EQ(asks_next(), (Sentinels{0, 1}));
}

TEST_F(Search, AsksOneInTurnWhileAllIsWell) {
  begin_with(1, 5);
  const Duration began = now;
  for (const std::size_t expected : {0U, 1U, 2U, 0U}) {
    const Sentinels asked = asks_next();
    EXPECT_EQ(asked, Sentinels{expected});
    EXPECT_FALSE(search.answered(asked[0], at(1, 5), now));
  }
  EXPECT_EQ(now - began, ms(250 + 3 * 500));
}

TEST_F(Search, ANewerEpochIsBelievedAtOnce) {
  begin_with(1, 5);
  const Sentinels asked = asks_next();
  EXPECT_TRUE(search.answered(asked[0], at(2, 6), now));
  EXPECT_EQ(port(), 2);
  EXPECT_EQ(search.master()->epoch, 6);
}

TEST_F(Search, AnElectionThatChangedNothingIsNotAMove) {
  begin_with(1, 5);
  EXPECT_FALSE(search.answered(asks_next()[0], at(1, 6), now));
  EXPECT_EQ(search.master()->epoch, 6);
  EXPECT_FALSE(search.answered(asks_next()[0], at(9, 5), now));  // stale by now
  EXPECT_EQ(port(), 1);
}

TEST_F(Search, AStaleAnswerIsIgnored) {
  begin_with(1, 5);
  ASSERT_TRUE(search.answered(asks_next()[0], at(2, 6), now));
  search.usable();
  // It has not heard of the election.
  EXPECT_FALSE(search.answered(asks_next()[0], at(1, 5), now));
  EXPECT_EQ(port(), 2);
  // Nor when the new one is in trouble.
  search.lost(now);
  round({at(2, 6), at(1, 5), std::nullopt});
  EXPECT_EQ(port(), 2);
}

TEST_F(Search, ALostMasterIsLookedForAtOnceAndByAll) {
  begin_with(1, 5);
  (void)asks_next();
  now += ms(10);
  EXPECT_TRUE(asks().empty());
  search.lost(now);
  EXPECT_EQ(search.next_question(), now);
  EXPECT_EQ(asks(), (Sentinels{1, 2}));  // the first was asked just before
  // Once is enough: while it stays away they are asked at their time.
  search.lost(now);
  EXPECT_EQ(search.next_question(), now + ms(250));
  search.failed(0, "no", now);
  EXPECT_EQ(search.next_question(), now + ms(250));
}

TEST_F(Search, IsAtRestAgainWhenTheMasterIsUsable) {
  begin_with(1, 5);
  search.lost(now);
  round({at(1, 5), at(1, 5), at(1, 5)});
  EXPECT_FALSE(changed);
  EXPECT_EQ(asks_next().size(), 3U);
  for (const std::size_t i : {0U, 1U, 2U}) (void)search.answered(i, at(1, 5), now);
  search.usable();
  EXPECT_EQ(asks_next().size(), 1U);
}

TEST_F(Search, TheNextIsAskedAtOnceIfOneIsAway) {
  begin_with(1, 5);
  EXPECT_EQ(asks_next(), Sentinels{0});
  search.failed(0, "no", now);
  EXPECT_EQ(asks(), Sentinels{1});
  search.failed(1, "no", now);
  EXPECT_EQ(asks(), Sentinels{2});
  EXPECT_EQ(search.silence(), "");
  search.failed(2, "not either", now);
  // All are away: no faster than usual.
  EXPECT_EQ(search.silence(), "no; no; not either");
  EXPECT_TRUE(asks().empty());
  EXPECT_EQ(search.next_question(), now + ms(500));
  EXPECT_EQ(port(), 1);
}

TEST_F(Search, OneThatIsSlowHoldsNobodyUp) {
  begin_with(1, 5);
  EXPECT_EQ(asks_next(), Sentinels{0});
  EXPECT_EQ(asks_next(), Sentinels{1});
  EXPECT_FALSE(search.answered(1, at(1, 5), now));
  EXPECT_EQ(asks_next(), Sentinels{2});
  EXPECT_FALSE(search.answered(2, at(1, 5), now));
  EXPECT_EQ(asks_next(), Sentinels{1});
}

TEST_F(Search, AReachableSentinelIsAskedAtOnceInTrouble) {
  round({std::nullopt, std::nullopt, std::nullopt});
  EXPECT_EQ(search.silence(), "sentinel 0 is away; sentinel 1 is away; sentinel 2 is away");
  EXPECT_TRUE(asks().empty());
  search.reachable(now);
  EXPECT_EQ(asks().size(), 3U);
}

TEST_F(Search, OfTwoOfTheSameEpochTheOneThatWorksIsKept) {
  begin_with(1, 0);
  EXPECT_FALSE(search.answered(asks_next()[0], at(2, 0), now));
  EXPECT_EQ(port(), 1);
  // Somebody has told most of the Sentinels to watch another one.
  EXPECT_TRUE(search.answered(asks_next()[0], at(2, 0), now));
  EXPECT_EQ(port(), 2);
}

TEST_F(Search, OfTwoOfTheSameEpochTheOtherIsTriedInTrouble) {
  begin_with(1, 0);
  search.lost(now);
  round({at(1, 0), at(2, 0), std::nullopt});
  EXPECT_EQ(port(), 2);
}

TEST_F(Search, EpochsThatBeganAnewAreBelievedAfterAWhile) {
  begin_with(1, 50);
  search.lost(now);
  const Duration lost = now;
  while (now < lost + ms(9'700)) round({at(2, 0), at(2, 0), std::nullopt});
  EXPECT_EQ(port(), 1);
  while (now < lost + ms(10'000)) round({at(2, 0), at(2, 0), std::nullopt});
  EXPECT_EQ(port(), 2);
  EXPECT_EQ(search.master()->epoch, 0);
}

TEST_F(Search, ALoneSentinelDoesNotMakeUsForgetAnEpoch) {
  begin_with(1, 50);
  search.lost(now);
  const Duration lost = now;
  while (now < lost + ms(30'000)) round({at(2, 49), std::nullopt, std::nullopt});
  EXPECT_EQ(port(), 1);
}

TEST_F(Search, AnOldAnswerOfOneThatIsAwayIsNoVote) {
  begin_with(1, 5);
  EXPECT_FALSE(search.answered(asks_next()[0], at(2, 5), now));
  EXPECT_EQ(asks_next(), Sentinels{1});
  search.failed(1, "no", now);
  EXPECT_EQ(asks(), Sentinels{2});
  EXPECT_FALSE(search.answered(2, at(1, 5), now));
  EXPECT_EQ(asks_next(), Sentinels{0});
  search.failed(0, "no", now);
  EXPECT_EQ(asks(), Sentinels{1});
  EXPECT_FALSE(search.answered(1, at(2, 5), now)) << "one of three";
  EXPECT_EQ(port(), 1);
}

}  // namespace
}  // namespace stint::redis
