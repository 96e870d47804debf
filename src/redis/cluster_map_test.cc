#include "redis/cluster_map.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace stint::redis {
namespace {

Duration ms(std::int64_t count) { return std::chrono::milliseconds(count); }

class Map : public ::testing::Test {
 protected:
  static NodePlace at(std::uint16_t port) { return {"h", port}; }
  static SlotRange range(std::uint16_t first, std::uint16_t last, std::uint16_t port) {
    return {first, last, at(port), {at(static_cast<std::uint16_t>(port + 100))}};
  }
  // Three masters, with all slots.
  static SlotsAnswer whole(std::int64_t epoch) {
    return {{range(0, 5460, 1), range(5461, 10922, 2), range(10923, 16383, 3)}, epoch, true};
  }
  static Redirection to(std::uint16_t slot, std::uint16_t port) { return {false, slot, at(port)}; }

  [[nodiscard]] int port_of(std::uint16_t slot) const {
    const ClusterMap::Node node = map.owner(slot);
    return node == ClusterMap::kNobody ? 0 : map.place(node).port;
  }
  void learn(const SlotsAnswer& answer) { EXPECT_TRUE(map.learned(answer, now)); }

  ClusterMap map;
  Duration now = ms(1'000'000);
};

TEST_F(Map, NobodyHasAnythingAtFirst) {
  EXPECT_EQ(map.orphans(), kSlots);
  EXPECT_EQ(map.owner(0), ClusterMap::kNobody);
  EXPECT_TRUE(map.take_question(now, false));
}

TEST_F(Map, LearnsWhoHasWhat) {
  learn(whole(5));
  EXPECT_EQ(map.orphans(), 0U);
  EXPECT_EQ(port_of(0), 1);
  EXPECT_EQ(port_of(5460), 1);
  EXPECT_EQ(port_of(5461), 2);
  EXPECT_EQ(port_of(16383), 3);
  EXPECT_EQ(map.nodes(), 3U);
  EXPECT_EQ(map.slots(0), 5461U);
  EXPECT_EQ(map.replicas().size(), 3U);
}

TEST_F(Map, SlotsThatNobodyHasAreCounted) {
  learn({{range(0, 16382, 1)}, 5, true});
  EXPECT_EQ(map.orphans(), 1U);
  EXPECT_EQ(port_of(16383), 0);
  map.moved(to(16383, 2));
  EXPECT_EQ(map.orphans(), 0U);
}

TEST_F(Map, ANodeKeepsItsNumber) {
  learn(whole(5));
  const ClusterMap::Node second = map.owner(6000);
  learn({{range(0, 16383, 9)}, 6, true});
  EXPECT_FALSE(map.needed(second, now));
  EXPECT_EQ(port_of(6000), 9);
  learn(whole(7));
  EXPECT_EQ(map.owner(6000), second);
  EXPECT_EQ(map.nodes(), 4U);
}

TEST_F(Map, AMovedSlotIsAnotherNodesFromNowOn) {
  learn(whole(5));
  (void)map.take_question(now, true);
  map.failed();
  const ClusterMap::Node node = map.moved(to(42, 7));
  EXPECT_EQ(map.place(node), at(7));
  EXPECT_EQ(map.owner(42), node);
  EXPECT_EQ(map.slots(node), 1U);
  EXPECT_EQ(map.slots(0), 5460U);
  EXPECT_TRUE(map.needed(node, now));
  // And others may have moved with it.
  EXPECT_EQ(map.next_question(true), now + ms(100));
}

TEST_F(Map, WhatWasKnownAlreadyIsNoReasonToAsk) {
  learn(whole(5));
  (void)map.take_question(now, true);
  map.failed();
  map.moved(to(0, 1));
  EXPECT_EQ(map.next_question(true), now + std::chrono::seconds{15});
}

TEST_F(Map, WhoIsAskedOnceHasNoSlotForThat) {
  learn(whole(5));
  Redirection ask = to(42, 7);
  ask.ask = true;
  const ClusterMap::Node node = map.asked(ask, now);
  EXPECT_EQ(port_of(42), 1);
  EXPECT_EQ(map.slots(node), 0U);
  EXPECT_TRUE(map.needed(node, now));
  // An answer that does not mention it changes nothing.
  learn(whole(5));
  EXPECT_TRUE(map.needed(node, now + ms(29'999)));
  EXPECT_FALSE(map.needed(node, now + ms(30'000)));
}

TEST_F(Map, OneQuestionAtATimeAndNotTooOften) {
  EXPECT_TRUE(map.take_question(now, false));
  EXPECT_FALSE(map.take_question(now + ms(60'000), false));
  map.failed();
  EXPECT_FALSE(map.take_question(now + ms(249), false));
  EXPECT_TRUE(map.take_question(now + ms(250), false));
  learn(whole(5));
  EXPECT_EQ(map.next_question(true), now + ms(250) + std::chrono::seconds{15});
  EXPECT_EQ(map.next_question(false), now + ms(500));
  map.hurry();
  EXPECT_FALSE(map.take_question(now + ms(349), true));
  EXPECT_TRUE(map.take_question(now + ms(350), true));
}

TEST_F(Map, HurryDuringAQuestionIsTheNextOne) {
  EXPECT_TRUE(map.take_question(now, true));
  map.hurry();
  EXPECT_FALSE(map.take_question(now + ms(100), true));
  learn(whole(5));
  EXPECT_TRUE(map.take_question(now + ms(100), true));
}

TEST_F(Map, AnAnswerOfSomebodyWhoHasNotHeardIsIgnored) {
  learn(whole(6));
  EXPECT_FALSE(map.learned({{range(0, 16383, 9)}, 5, true}, now));
  EXPECT_EQ(port_of(0), 1);
  learn({{range(0, 16383, 9)}, 6, true});
  EXPECT_EQ(port_of(0), 9);
}

TEST_F(Map, AnAnswerOfSomebodyWhoIsCutOffIsIgnored) {
  learn(whole(5));
  EXPECT_FALSE(map.learned({{range(0, 16383, 9)}, 7, false}, now));
  EXPECT_FALSE(map.learned({{range(0, 16383, 9)}, 7, false}, now + ms(60'000)));
  EXPECT_EQ(port_of(0), 1);
}

TEST_F(Map, TheFirstAnswerIsBetterThanNone) {
  SlotsAnswer answer = whole(5);
  answer.ok = false;
  learn(answer);
  EXPECT_EQ(port_of(0), 1);
  EXPECT_FALSE(map.learned({{}, 6, true}, now)) << "one that knows of no slot";
  EXPECT_EQ(port_of(0), 1);
}

TEST_F(Map, EpochsThatBeganAnewAreBelievedAfterAWhile) {
  learn(whole(50));
  const SlotsAnswer other{{range(0, 16383, 9)}, 3, true};
  EXPECT_FALSE(map.learned(other, now));
  EXPECT_FALSE(map.learned(other, now + ms(9'999)));
  EXPECT_TRUE(map.learned(other, now + ms(10'000)));
  EXPECT_EQ(port_of(0), 9);
  // One good answer in between, and the doubt is over.
  learn(whole(50));
  EXPECT_FALSE(map.learned(other, now + ms(10'001)));
  learn(whole(50));
  EXPECT_FALSE(map.learned(other, now + ms(30'000)));
}

}  // namespace
}  // namespace stint::redis
