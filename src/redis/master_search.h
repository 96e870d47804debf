// Who the master is, by what several Sentinels say: without sockets, timers and clock.
//
//   again and again:  take_questions (at next_question) -> answered or failed, for each
//                     lost, usable: how it stands with the master that was named
//                     master, to see whom to use
//
// Sentinels do not learn of a failover at the same instant, and one that is cut off never does.
// Each election has a number that is higher than those before it, the configuration epoch: an
// answer with a lower one than was heard already is stale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/call.h"
#include "stint/time.h"

namespace stint::redis {

// What one Sentinel says.
struct NamedMaster {
  std::string host{};
  std::uint16_t port = 0;
  std::int64_t epoch = 0;

  [[nodiscard]] bool same_place(const NamedMaster& other) const noexcept {
    return host == other.host && port == other.port;
  }
};

// From the answers to SENTINEL MASTER (the epoch) and, asked after it, to
// SENTINEL GET-MASTER-ADDR-BY-NAME (the address: during a failover it is the new one as soon as
// that is a master). Error: why that is no answer, for people.
[[nodiscard]] std::expected<NamedMaster, std::string> read_named_master(const CallResult& master,
                                                                        const CallResult& address);

// Times are steady. Thread rule: one thread.
class MasterSearch {
 public:
  struct Options {
    std::size_t sentinels = 1;
    Duration watch_every = std::chrono::milliseconds{500};   // one of them in turn, if all is well
    Duration search_every = std::chrono::milliseconds{250};  // all of them, if it is not
    // Whoever set the Sentinels up anew made their epochs begin from 0: after so long in vain the
    // majority is believed.
    Duration forget_after = std::chrono::seconds{10};
  };
  explicit MasterSearch(Options options);

  // The Sentinels to be asked now. Each is answered for (`answered`, `failed`) before it is asked
  // again.
  [[nodiscard]] std::vector<std::size_t> take_questions(Duration now);
  [[nodiscard]] Duration next_question() const noexcept { return next_; }

  // True: from now on `master` is another place.
  [[nodiscard]] bool answered(std::size_t sentinel, NamedMaster named, Duration now);
  // No answer that can be used.
  void failed(std::size_t sentinel, std::string why, Duration now);

  // The master cannot be reached, or is none.
  void lost(Duration now);
  // A Sentinel can be asked that could not.
  void reachable(Duration now) noexcept {
    if (!well_) next_ = now;
  }
  // It does its work.
  void usable() noexcept { well_ = true; }

  // Nothing until a Sentinel has named one.
  [[nodiscard]] const std::optional<NamedMaster>& master() const noexcept { return master_; }
  // Why nobody answered when all were asked last; empty: somebody did, or is yet to.
  [[nodiscard]] std::string silence() const;

 private:
  struct Sentinel {
    bool asked = false;
    std::optional<NamedMaster> said{};  // last; nothing if that failed
    std::string failure{};
  };

  [[nodiscard]] bool believes(const NamedMaster& named, Duration now) const;
  [[nodiscard]] bool majority_says(const NamedMaster& named) const;

  Options options_;
  std::vector<Sentinel> sentinels_;
  std::optional<NamedMaster> master_{};
  bool well_ = false;
  Duration lost_at_{};  // if not well
  Duration next_{};
  std::size_t turn_ = 0;
};

}  // namespace stint::redis
