// Which node of a Cluster has which slot, as far as is known: without sockets, timers and clock.
//
//   again and again:  take_question (at next_question) -> learned or failed
//                     moved, asked: what nodes say to a call
//                     hurry: a node is in trouble, and somebody else may have its slots by now
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "redis/slots.h"
#include "stint/time.h"

namespace stint::redis {

// Times are steady. Thread rule: one thread.
class ClusterMap {
 public:
  struct Options {
    Duration watch_every = std::chrono::seconds{15};         // while all is well
    Duration search_every = std::chrono::milliseconds{250};  // while a node is in trouble
    Duration pause = std::chrono::milliseconds{100};         // at least, between two questions
    // Whoever is asked about a slot that it is only being given may have to be asked again.
    Duration keep_asked = std::chrono::seconds{30};
    // Epochs begin anew in a Cluster that was: after so long in vain a lower one is believed.
    Duration forget_after = std::chrono::seconds{10};
  };
  // Nodes are numbered as they become known, and keep their numbers.
  using Node = std::uint32_t;
  static constexpr Node kNobody = ~Node{0};

  ClusterMap() : ClusterMap(Options()) {}
  explicit ClusterMap(Options options);

  [[nodiscard]] Node owner(std::uint16_t slot) const noexcept { return owners_[slot]; }
  [[nodiscard]] std::size_t nodes() const noexcept { return nodes_.size(); }
  [[nodiscard]] const NodePlace& place(Node node) const noexcept { return nodes_[node].place; }
  // How many slots it has.
  [[nodiscard]] std::size_t slots(Node node) const noexcept { return nodes_[node].slots; }
  // Whether calls may go there: it has slots, or is being given one.
  [[nodiscard]] bool needed(Node node, Duration now) const noexcept;
  // How many slots nobody has; all of them until the first answer.
  [[nodiscard]] std::size_t orphans() const noexcept { return orphans_; }
  // Who else is there, by the last answer.
  [[nodiscard]] const std::vector<NodePlace>& replicas() const noexcept { return replicas_; }

  // Whether somebody is to be asked now. Only one question at a time; `well`: every node does its
  // work.
  [[nodiscard]] bool take_question(Duration now, bool well);
  // When take_question may say so, given that.
  [[nodiscard]] Duration next_question(bool well) const noexcept;
  void hurry() noexcept { hurried_ = true; }

  // True: it was believed. A node that has not heard of the last change, or is cut off from the
  // others, is not.
  bool learned(const SlotsAnswer& answer, Duration now);
  void failed() noexcept { asking_ = false; }
  // The node that a call is to go to.
  Node moved(const Redirection& to);
  Node asked(const Redirection& to, Duration now);

 private:
  struct Known {
    NodePlace place{};
    std::size_t slots = 0;
    Duration asked_until{};
  };

  [[nodiscard]] Node node_at(const NodePlace& place);
  void give(std::uint16_t slot, Node node);

  Options options_;
  std::vector<Node> owners_;
  std::vector<Known> nodes_;
  std::vector<NodePlace> replicas_;
  std::size_t orphans_ = kSlots;
  std::int64_t epoch_ = 0;
  bool known_ = false;
  bool asking_ = false;
  bool hurried_ = true;
  Duration asked_at_ = -std::chrono::hours{1};
  std::optional<Duration> doubted_since_{};  // when the first of a row of answers was not believed
};

}  // namespace stint::redis
