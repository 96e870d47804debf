// When to leave a server alone, and for how long.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/entropy.h"
#include "stint/time.h"

namespace stint::redis {

// Pauses between attempts: each about twice the one before, and jittered, so that the clients of
// a server that comes back do not all come at once.
// Thread rule: one thread.
class Backoff {
 public:
  struct Span {
    Duration first = std::chrono::milliseconds{50};
    Duration most = std::chrono::seconds{1};
  };
  explicit Backoff(base::Entropy& entropy) noexcept : Backoff(entropy, Span()) {}
  Backoff(base::Entropy& entropy, Span span) noexcept
      : entropy_(entropy), span_(span), next_(span.first) {}

  // Between half of the pause and all of it; the next one is longer.
  [[nodiscard]] Duration next() {
    const Duration::rep half = next_.count() / 2;
    const auto room = static_cast<std::uint64_t>(next_.count() - half) + 1;
    const auto jitter = static_cast<Duration::rep>(entropy_.next() % room);
    next_ = std::min(next_ * 2, span_.most);
    return Duration(half + jitter);
  }
  // The next pause is the first again.
  void reset() noexcept { next_ = span_.first; }

 private:
  base::Entropy& entropy_;
  Span span_;
  Duration next_;
};

// Closed: calls go to the server. Opens after so many failures in a row; then only probes go there,
// each at its time, and the first that succeeds closes it. Times are those of a steady clock.
// Thread rule: one thread.
class Breaker {
 public:
  // `threshold`: at least 1.
  Breaker(unsigned threshold, base::Entropy& entropy) noexcept
      : threshold_(std::max(threshold, 1U)), backoff_(entropy) {}

  [[nodiscard]] bool closed() const noexcept { return closed_; }
  // When open: not before then is the next probe to be sent.
  [[nodiscard]] Duration probe_at() const noexcept { return probe_at_; }

  // A call, a connection or a probe failed; true if this opened it.
  bool failed(Duration now) {
    if (!closed_) return false;
    if (++failures_ < threshold_) return false;
    closed_ = false;
    probe_at_ = now + backoff_.next();
    return true;
  }
  // A call was answered. While it is open that is the answer to an old call, and proves little.
  void succeeded() noexcept {
    if (closed_) failures_ = 0;
  }

  void probe_failed(Duration now) {
    if (!closed_) probe_at_ = now + backoff_.next();
  }
  // True if this closed it.
  bool probe_succeeded() noexcept {
    failures_ = 0;
    backoff_.reset();
    return !std::exchange(closed_, true);
  }

 private:
  unsigned threshold_;
  Backoff backoff_;
  unsigned failures_ = 0;
  bool closed_ = true;
  Duration probe_at_{};
};

}  // namespace stint::redis
